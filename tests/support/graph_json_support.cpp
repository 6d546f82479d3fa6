#include "support/graph_json_support.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "calque/sym/expr.h"
#include "calque/sym/srepr.h"
#include "calque/sym/unbacked.h"

namespace calque {

using Json = nlohmann::ordered_json;

namespace {

Json floating(double v) {
  if (std::isnan(v)) return {{"float", "nan"}};
  if (std::isinf(v)) return {{"float", v > 0 ? "inf" : "-inf"}};
  return {{"float", v}};
}

// Symbolic numbers as srepr has them, which sympy can read.
Json number(SymInt v) { return v.is_symbolic() ? Json{{"int", srepr(v.expr())}} : Json(v.as_int()); }
Json number(SymFloat v) { return v.is_symbolic() ? Json{{"sym_float", srepr(v.expr())}} : floating(v.as_float()); }
Json number(SymBool v) { return v.is_symbolic() ? Json{{"sym_bool", srepr(v.expr())}} : Json(v.plain()); }
std::string raw(SymBool v) { return v.is_symbolic() ? srepr(v.expr()) : srepr(v); }

Json numbers(SymIntList list) {
  Json out = Json::array();
  for (const SymInt v : list) out.push_back(number(v));
  return out;
}

Json data(const Tensor& t) {
  Json out = Json::array();
  const Tensor d = t.to(DType::float64).contiguous();
  for (int64_t i = 0; i < d.numel(); ++i) {
    const double v = d.data_as<double>()[i];
    out.push_back(std::isfinite(v) ? Json(v) : Json(std::isnan(v) ? "nan" : v > 0 ? "inf" : "-inf"));
  }
  return out;
}

Json describe(const Tensor& t, bool with_data) {
  Json out{{"tensor", std::string(name(t.dtype()))},
           {"sizes", numbers(t.sym_sizes())},
           {"strides", numbers(t.sym_strides())},
           {"offset", number(t.sym_storage_offset())}};
  if (with_data) out["data"] = data(t);
  return out;
}

}  // namespace

Json value_json(const Value& v, bool with_data) {
  const auto all = [&](const Values& items) {
    Json out = Json::array();
    for (const Value& item : items) out.push_back(value_json(item, with_data));
    return out;
  };
  switch (v.kind()) {
    case Value::Kind::none: return nullptr;
    case Value::Kind::boolean: return number(v.to_sym_bool());
    case Value::Kind::integer: return number(v.to_sym_int());
    case Value::Kind::floating: return number(v.to_sym_float());
    case Value::Kind::string: return v.to_string();
    case Value::Kind::tensor: return describe(v.to_tensor(), with_data);
    case Value::Kind::node: return {{"node", v.to_node()->name()}};
    case Value::Kind::list: return {{"list", all(v.to_items())}};
    case Value::Kind::tuple: return {{"tuple", all(v.to_items())}};
    case Value::Kind::dict: {
      Json out = Json::array();
      for (const auto& [key, item] : v.to_dict().items)
        out.push_back({value_json(key, with_data), value_json(item, with_data)});
      return {{"dict", out}};
    }
    case Value::Kind::complex:
    case Value::Kind::slice:
    case Value::Kind::dtype:
    case Value::Kind::device:
    case Value::Kind::layout:
    case Value::Kind::memory_format:
    case Value::Kind::generator:
    case Value::Kind::structure: break;
  }
  return {{"text", v.str()}};
}

Json graph_json(const TracedGraph& g) {
  Json nodes = Json::array();
  for (const Node* n : g.graph().nodes()) {
    Json args = Json::array();
    for (const Value& a : n->args()) args.push_back(value_json(a, false));
    Json kwargs = Json::object();
    for (const auto& [key, a] : n->kwargs()) kwargs[key] = value_json(a, false);
    nodes.push_back({{"op", std::string(name(n->kind()))},
                     {"name", n->name()},
                     {"target", n->target().str()},
                     {"args", args},
                     {"kwargs", kwargs},
                     {"val", value_json(n->meta.val, false)}});
  }
  Json out{{"nodes", nodes}, {"attributes", Json::array()}};
  for (const auto& [key, tensor] : g.module->named_parameters()) out["attributes"].push_back({key, describe(tensor, true)});
  for (const auto& [key, tensor] : g.module->named_buffers()) out["attributes"].push_back({key, describe(tensor, true)});
  if (g.env) {
    out["guards"] = Json::array();
    for (const Guard& guard : g.env->guards())
      out["guards"].push_back({{"condition", raw(guard.condition)},
                               {"operator", guard.operator_name},
                               {"line", guard.where.line()},
                               {"file", guard.where.file_name()}});
    out["asserts"] = Json::array();
    for (const SymBool condition : g.env->deferred_asserts()) out["asserts"].push_back(raw(condition));
    out["symbols"] = Json::array();
    for (const Symbol& s : g.env->symbols()) {
      const auto stands_for = g.env->replacement(s.name);
      out["symbols"].push_back({{"name", s.name},
                                {"lower", s.range.lower},
                                {"upper", s.range.upper},
                                {"replacement", stands_for ? number(*stands_for) : Json()}});
    }
  }
  return out;
}

}  // namespace calque
