// Guard cases: a call with every input size symbolic. Each guard that Calque makes must hold wherever all of PyTorch's
// hold, and the output geometry must agree there.

#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "calque/base/error.h"
#include "calque/op/mode.h"
#include "calque/sym/shape_env.h"
#include "op/opcheck_support.h"

namespace calque::opcheck {

using Json = nlohmann::json;

namespace {

class GuardRun {
 public:
  GuardRun(const Json& entry, const Operator& op) : entry_(entry), sym_(entry.at("sym")), op_(op) {
    ShapeEnvOptions options;
    options.duck_shape = false;
    env_ = ShapeEnv::make(options);
    for (const auto& [name, hint] : sym_.at("hints").items()) {
      const SymInt s = env_->create_symbol(hint.get<int64_t>(), {2, std::numeric_limits<int64_t>::max()}, name);
      symbols_[name] = s;
      names_[name] = env_->symbols().back().name;
    }
  }

  std::shared_ptr<ShapeEnv> env() const { return env_; }

  Value run() {
    const auto& schema = op_.schema().arguments;
    Values positional;
    std::vector<std::pair<std::string, Value>> keyword;
    const Json& args = entry_.at("args");
    for (size_t i = 0; i < args.size(); ++i)
      positional.push_back(value(args[i], i < schema.size() && schema[i].type.kind == SchemaType::Kind::tensor));
    // Python walks keyword arguments in the order given; tensors are numbered in that order.
    for (const auto& [key, v] : entry_.at("kwargs").items()) {
      const auto at = op_.schema().find_argument(key);
      keyword.emplace_back(key, value(v, at && schema[*at].type.kind == SchemaType::Kind::tensor));
    }
    return call(op_, std::move(positional), std::move(keyword));
  }

  ShapeEnv::Assignment assignment(const Json& at) const {
    ShapeEnv::Assignment a;
    for (const auto& [name, v] : at.items()) a.emplace_back(names_.at(name), v.get<int64_t>());
    return a;
  }

  std::string python_names(std::string text) const {
    for (const auto& [python, ours] : names_) text += fmt::format(" [{}={}]", ours, python);
    return text;
  }

 private:
  SymInt size(const Json& v) const { return v.is_string() ? symbols_.at(v.get<std::string>()) : SymInt(v.get<int64_t>()); }

  SymInt product_of(const Json& factors) const {
    SymInt p = 1;
    for (const Json& f : factors) p = p * size(f);
    return p;
  }

  Value value(const Json& v, bool tensor_wanted) {
    if (v.is_array()) {
      Values items;
      for (const Json& x : v) items.push_back(value(x, tensor_wanted));
      return list(std::move(items));
    }
    if (v.is_object() && v.contains("s")) return Value(v["s"].is_array() ? product_of(v["s"]) : size(v["s"]));
    if (v.is_object() && v.contains("t")) {
      const auto k = v["t"].get<size_t>();
      Meta meta;
      meta.dtype = dtype_from_name(v["dtype"].get<std::string>()).value();
      for (const Json& s : sym_.at("sizes").at(k)) meta.sizes.push_back(size(s));
      for (const Json& s : sym_.at("strides").at(k)) meta.strides.push_back(product_of(s));
      return Value(make_tensor(meta, true));
    }
    return plain_value(v, tensor_wanted);
  }

  const Json& entry_;
  const Json& sym_;
  const Operator& op_;
  std::shared_ptr<ShapeEnv> env_;
  std::map<std::string, SymInt> symbols_;
  std::map<std::string, std::string> names_;
};

[[noreturn]] void fail(const std::string& what) { throw UserError("guards: " + what); }

std::vector<int64_t> evaluated(const ShapeEnv& env, SymIntList values, const ShapeEnv::Assignment& at) {
  std::vector<int64_t> out;
  for (const SymInt v : values) {
    const auto n = env.evaluate(v, at);
    if (!n) fail("cannot evaluate " + v.str());
    out.push_back(*n);
  }
  return out;
}

std::string text(const Json& at) { return at.dump(); }

}  // namespace

void run_guard_case(const Json& entry, const Operator& op, Report& report) {
  const Json& sym = entry.at("sym");
  if (sym.contains("error")) {  // PyTorch's own fake execution refuses
    ++report.skipped;
    return;
  }
  GuardRun run(entry, op);
  const Value result = run.run();
  if (sym.contains("unbacked")) return;
  Values flat;
  for (const Value& v : results_of(op, result)) flatten_into(v, flat);
  std::vector<const Json*> described;
  const auto flatten_json = [&](const auto& self, const Json& v) -> void {
    if (v.is_array())
      for (const Json& x : v) self(self, x);
    else
      described.push_back(&v);
  };
  flatten_json(flatten_json, sym.at("outputs"));
  if (flat.size() != described.size()) fail(fmt::format("{} results, PyTorch {}", flat.size(), described.size()));
  const ShapeEnv& env = *run.env();
  for (const Json& accepted : sym.at("accept")) {
    const ShapeEnv::Assignment at = run.assignment(accepted.at("at"));
    for (const Guard& g : env.guards()) {
      const auto holds = env.evaluate(g.condition, at);
      if (!holds) fail("cannot evaluate the guard " + g.condition.str());
      if (!*holds)
        fail(fmt::format(
            "{} is a guard of Calque's, made at {}:{}, that PyTorch does not make; it fails at {}; PyTorch's: {}",
            run.python_names(g.condition.str()), g.where.file_name(), g.where.line(), text(accepted.at("at")),
            sym.at("guards").dump()));
    }
    for (size_t i = 0; i < flat.size(); ++i) {
      const Json& want = accepted.at("outputs").at(i);
      const Json& description = *described[i];
      if (flat[i].is_tensor()) {
        const Tensor& t = flat[i].to_tensor();
        if (!want.is_array()) fail(fmt::format("result {}: a tensor, PyTorch none", i));
        if (name(t.dtype()) != description.at("dtype").get<std::string>())
          fail(fmt::format("result {}: dtype {}, PyTorch {}", i, name(t.dtype()), description.at("dtype").dump()));
        const auto sizes = evaluated(env, t.sym_sizes(), at), strides = evaluated(env, t.sym_strides(), at);
        if (sizes != want[0].get<std::vector<int64_t>>())
          fail(fmt::format("result {}: sizes {} at {}, PyTorch {} = {}", i, run.python_names(str(t.sym_sizes())),
                           text(accepted.at("at")), description.at("sizes").dump(), want[0].dump()));
        if (strides != want[1].get<std::vector<int64_t>>())
          fail(fmt::format("result {}: strides {} at {}, PyTorch {} = {}", i, run.python_names(str(t.sym_strides())),
                           text(accepted.at("at")), description.at("strides").dump(), want[1].dump()));
      } else if (flat[i].kind() == Value::Kind::integer && want.is_number_integer()) {
        const auto n = env.evaluate(flat[i].to_sym_int(), at);
        if (!n || *n != want.get<int64_t>()) fail(fmt::format("result {}: {}, PyTorch {}", i, flat[i].str(), want.dump()));
      }
    }
  }
}

}  // namespace calque::opcheck
