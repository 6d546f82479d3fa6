// capture REQUESTS ANSWERS: traces the functions of tests/peers/capture as a JSON file asks for, and writes the graphs,
// guards and results as JSON. tests/peers/capture.py drives it and compares with PyTorch.
#include <bit>
#include <cmath>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "calque/sym/expr.h"
#include "calque/sym/srepr.h"
#include "calque/sym/unbacked.h"
#include "capture/programs.h"

namespace calque::capture {
namespace {

using Json = nlohmann::ordered_json;

// Element i of every argument is the same small exact number on both sides.
Tensor filled(const Json& spec, int64_t seed) {
  std::vector<int64_t> sizes = spec["sizes"].get<std::vector<int64_t>>();
  const std::string dtype = spec["dtype"];
  const Tensor t = make_tensor(IntList(sizes), dtype == "int64" ? DType::int64 : dtype == "bool" ? DType::bool_ : dtype == "float64" ? DType::float64 : DType::float32);
  for (int64_t i = 0; i < t.numel(); ++i) {
    const auto at = static_cast<size_t>(i);
    if (dtype == "int64") t.mutable_data_as<int64_t>()[at] = (i * 7 + seed * 3 + 2) % spec["below"].get<int64_t>();
    else if (dtype == "bool") t.mutable_data_as<bool>()[at] = (i * 5 + seed) % 3 == 0;
    else {
      const double v = static_cast<double>((i * 37 + seed * 11) % 101 - 50) / 16;
      if (dtype == "float64") t.mutable_data_as<double>()[at] = v;
      else t.mutable_data_as<float>()[at] = static_cast<float>(v);
    }
  }
  return dtype == "bfloat16" ? t.to(DType::bfloat16) : t;
}

Value argument(const Json& spec, int64_t& seed) {
  if (spec.is_number_integer()) return spec.get<int64_t>();
  if (spec.is_array()) {
    Values items;
    for (const Json& item : spec) items.push_back(argument(item, seed));
    return list(std::move(items));
  }
  if (spec.contains("dtype")) return filled(spec, seed++);
  std::vector<std::pair<Value, Value>> items;
  for (const auto& [key, item] : spec.items()) items.emplace_back(Value(key), argument(item, seed));
  return dict(std::move(items));
}

Values arguments(const Json& specs) {
  Values out;
  int64_t seed = 0;
  for (const Json& spec : specs) out.push_back(argument(spec, seed));
  return out;
}

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
  Json out{{"tensor", std::string(name(t.dtype()))}, {"sizes", numbers(t.sym_sizes())}, {"strides", numbers(t.sym_strides())}, {"offset", number(t.sym_storage_offset())}};
  if (with_data) out["data"] = data(t);
  return out;
}

Json json(const Value& v, bool with_data) {
  const auto all = [&](const Values& items) {
    Json out = Json::array();
    for (const Value& item : items) out.push_back(json(item, with_data));
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
      for (const auto& [key, item] : v.to_dict().items) out.push_back({json(key, with_data), json(item, with_data)});
      return {{"dict", out}};
    }
    default: return {{"text", v.str()}};
  }
}

Json graph_json(const TracedGraph& g) {
  Json nodes = Json::array();
  for (const Node* n : g.graph().nodes()) {
    Json args = Json::array();
    for (const Value& a : n->args()) args.push_back(json(a, false));
    Json kwargs = Json::object();
    for (const auto& [key, a] : n->kwargs()) kwargs[key] = json(a, false);
    nodes.push_back({{"op", std::string(name(n->kind()))}, {"name", n->name()}, {"target", n->target().str()}, {"args", args}, {"kwargs", kwargs}, {"val", json(n->meta.val, false)}});
  }
  Json out{{"nodes", nodes}, {"attributes", Json::array()}};
  for (const auto& [key, tensor] : g.module->named_parameters()) out["attributes"].push_back({key, describe(tensor, true)});
  for (const auto& [key, tensor] : g.module->named_buffers()) out["attributes"].push_back({key, describe(tensor, true)});
  if (g.env) {
    out["guards"] = Json::array();
    for (const Guard& guard : g.env->guards()) out["guards"].push_back({{"condition", raw(guard.condition)}, {"operator", guard.operator_name}, {"line", guard.where.line()}, {"file", guard.where.file_name()}});
    out["asserts"] = Json::array();
    for (const SymBool condition : g.env->deferred_asserts()) out["asserts"].push_back(raw(condition));
    out["symbols"] = Json::array();
    for (const Symbol& s : g.env->symbols()) {
      const auto stands_for = g.env->replacement(s.name);
      out["symbols"].push_back({{"name", s.name}, {"lower", s.range.lower}, {"upper", s.range.upper}, {"replacement", stands_for ? number(*stands_for) : Json()}});
    }
  }
  return out;
}

Json answer(const Programs& programs, const Json& request) {
  Json out = Json::object();
  const Program& program = programs.at(request["name"]);
  const std::string mode = request["mode"];
  try {
    const Values args = arguments(request["args"]);
    const TracedGraph g = make_fx_values(program, args,
                                         {.mode = mode == "real" ? TracingMode::real : mode == "symbolic" ? TracingMode::symbolic : TracingMode::fake,
                                          .pre_dispatch = mode == "pre_dispatch",
                                          .allow_non_fake_inputs = request.value("allow_non_fake_inputs", false)});
    out["graph"] = graph_json(g);
    out["results"] = Json::array();
    for (const Json& other : request["run"]) {
      try {
        out["results"].push_back({{"result", json(g.run(arguments(other)), true)}});
      } catch (const Error& e) {
        out["results"].push_back({{"error", e.what()}});
      }
    }
  } catch (const Error& e) {
    out["error"] = e.what();
  }
  return out;
}

}  // namespace
}  // namespace calque::capture

int main(int argc, char** argv) {
  using namespace calque::capture;
  if (argc != 3) {
    std::cerr << "usage: capture REQUESTS ANSWERS\n";
    return 2;
  }
  try {
    Programs programs;
    add_pointwise(programs);
    add_layout(programs);
    add_indexing(programs);
    add_reductions(programs);
    add_sizes(programs);
    add_layers(programs);
    add_data_dependent(programs);
    add_modules(programs);
    add_regions(programs);
    std::ifstream in(argv[1]);
    const Json requests = Json::parse(in);
    Json answers = Json::array();
    for (const Json& request : requests) answers.push_back(answer(programs, request));
    std::ofstream(argv[2]) << answers.dump();
  } catch (const std::exception& e) {
    std::cerr << "capture: " << e.what() << '\n';
    return 1;
  }
  return 0;
}
