// What tests/peers/compile.py compares with PyTorch. `compile_peer counts`: captures and graphs after each call of each scenario, as
// JSON. `compile_peer train` trains a function a step, for its trace. `compile_peer npz IN OUT` reads arrays and writes them. `compile_peer same`: lines of JSON with two nested values, a reference and options; a line with the verdict of same() for each.
#include <cmath>
#include <iostream>

#include <nlohmann/json.hpp>

#include "calque/base/error.h"
#include "calque/compile/compile.h"
#include "calque/compile/same.h"
#include "calque/file/npz.h"
#include "calque/grad/autograd.h"
#include "calque/op/ops.h"

namespace calque {
namespace {

using Json = nlohmann::json;

struct Scenario {
  std::shared_ptr<int> graphs = std::make_shared<int>(0);
  std::vector<int> after;
  CompileOptions options() const {
    CompileOptions o;
    o.with = [graphs = graphs](std::shared_ptr<GraphModule> graph, const Values& examples) {
      ++*graphs;
      return lookup_backend("eager")(std::move(graph), examples);
    };
    return o;
  }
  void note() { after.push_back(*graphs); }
};

template <class F>
std::vector<int> scenario(const F& run) {
  reset_compile();
  Scenario s;
  run(s);
  return s.after;
}

void sizes(Scenario& s, std::optional<bool> dynamic, const std::vector<std::vector<int64_t>>& calls) {
  CompileOptions o = s.options();
  o.dynamic = dynamic;
  const auto f = compile([](const Tensor& x) { return x.sin() + 1; }, o);
  for (const auto& c : calls) {
    f(ones(SymInts(c.begin(), c.end())));
    s.note();
  }
}

// What of a tensor asks for another graph.
void count_by_tensor(Json& out) {
  const std::vector<std::vector<int64_t>> growing = {{3, 4}, {4, 4}, {5, 4}, {5, 6}, {7, 8}, {1, 8}, {9, 1}, {6}};
  out["sizes automatic"] = scenario([&](Scenario& s) { sizes(s, std::nullopt, growing); });
  out["sizes static"] = scenario([&](Scenario& s) { sizes(s, false, growing); });
  out["sizes dynamic"] = scenario([&](Scenario& s) { sizes(s, true, growing); });
  out["square then not"] = scenario([&](Scenario& s) { sizes(s, true, {{4, 4}, {5, 5}, {4, 5}, {6, 7}}); });
  out["dtypes"] = scenario([](Scenario& s) {
    const auto f = compile([](const Tensor& x) { return x + 1; }, s.options());
    for (const DType d : {DType::float32, DType::float64, DType::int64, DType::float32, DType::int64}) {
      f(ones({3}, d));
      s.note();
    }
  });
  out["strides"] = scenario([](Scenario& s) {
    const auto f = compile([](const Tensor& x) { return x + 1; }, s.options());
    for (const Tensor& x :
         {ones({4, 4}), ones({4, 4}).t(), ones({4, 4}), ones({8, 4}).slice(0, 0, 8, 2), ones({5, 4}).slice(0, 1)}) {
      f(x);
      s.note();
    }
  });
}

// What else of a call does.
void count_by_call(Json& out) {
  out["integers"] = scenario([](Scenario& s) {
    const auto f = compile([](const Tensor& x, SymInt n) { return x * n; }, s.options());
    for (const int64_t n : {5, 5, 6, 7, 1, 0, -3}) {
      f(ones({3}), n);
      s.note();
    }
  });
  out["strings"] = scenario([](Scenario& s) {
    const auto f =
        compile([](const Tensor& x, const std::string& how) { return how == "sin" ? x.sin() : x.cos(); }, s.options());
    for (const char* how : {"sin", "cos", "sin", "tan"}) {
      f(ones({3}), std::string(how));
      s.note();
    }
  });
  out["lists"] = scenario([](Scenario& s) {
    const auto f = compile([](const std::vector<Tensor>& xs) { return stack(xs).sum(); }, s.options());
    for (const size_t n : {2, 3, 2, 4}) {
      std::vector<Tensor> xs;
      for (size_t i = 0; i < n; ++i) xs.push_back(ones({3}));
      f(xs);
      s.note();
    }
  });
  out["aliases"] = scenario([](Scenario& s) {
    const auto f = compile([](const Tensor& x, const Tensor& y) { return x * y; }, s.options());
    const Tensor a = ones({3}), b = ones({3});
    for (const auto& [x, y] : std::vector<std::pair<Tensor, Tensor>>{{a, b}, {b, a}, {a, a}, {b, b}, {a, b}}) {
      f(x, y);
      s.note();
    }
  });
  out["gradient mode"] = scenario([](Scenario& s) {
    const auto f = compile([](const Tensor& x) { return x + 1; }, s.options());
    for (const bool on : {true, false, true, false}) {
      const GradModeScope mode(on);
      f(ones({3}));
      s.note();
    }
  });
  out["requires_grad"] = scenario([](Scenario& s) {
    const auto f = compile([](const Tensor& x) { return x + 1; }, s.options());
    for (const bool wants : {false, true, false}) {
      f(ones({3}).set_requires_grad(wants));
      s.note();
    }
  });
  out["marks"] = scenario([](Scenario& s) {
    const auto f = compile([](const Tensor& x) { return x.sin(); }, s.options());
    for (const std::vector<int64_t>& marks : std::vector<std::vector<int64_t>>{{0}, {}, {1}, {0}, {0, 1}, {1}}) {
      const Tensor x = ones({3, 4, 5});
      for (const int64_t d : marks) mark_dynamic(x, d);
      f(x);
      s.note();
    }
  });
  out["size questions"] = scenario([](Scenario& s) {
    CompileOptions o = s.options();
    o.dynamic = true;
    const auto f = compile([](const Tensor& x) { return guard(x.sym_size(0) < 6) ? x + 1 : x - 1; }, o);
    for (const int64_t n : {3, 4, 7, 8, 5, 2}) {
      f(ones({n}));
      s.note();
    }
  });
  out["one break"] = scenario([](Scenario& s) {
    const auto f = compile(
        [](const Tensor& x) {
          const Tensor y = x + 1;
          return y.sum().gt(0).item<bool>() ? y.sin() : y.cos();
        },
        s.options());
    for (const double v : {1.0, 2.0, -5.0, -6.0, 1.0}) {
      f(full({3}, v));
      s.note();
    }
  });
}

Json counts() {
  Json out;
  count_by_tensor(out);
  count_by_call(out);
  return out;
}

// ---- same ----------------------------------------------------------------------------------------------------------------

Value value_from(const Json& j) {
  if (j.is_null()) return {};
  const std::string kind = j[0];
  if (kind == "tensor") {
    std::vector<double> numbers;
    for (const Json& n : j[2]) numbers.push_back(n.is_null() ? std::nan("") : n.get<double>());
    Tensor t = tensor_of<double>(numbers, {static_cast<int64_t>(numbers.size())});
    const DType dtype = j[1] == "float64" ? DType::float64
                        : j[1] == "int64" ? DType::int64
                        : j[1] == "bool"  ? DType::bool_
                                          : DType::float32;
    return t.to(dtype);
  }
  if (kind == "float") return j[1].get<double>();
  if (kind == "int") return j[1].get<int64_t>();
  if (kind == "bool") return j[1].get<bool>();
  if (kind == "str") return j[1].get<std::string>();
  if (kind == "dict") {
    std::vector<std::pair<Value, Value>> items;
    for (const auto& [key, item] : j[1].items()) items.emplace_back(key, value_from(item));
    return dict(std::move(items));
  }
  Values items;
  for (const Json& item : j[1]) items.push_back(value_from(item));
  return kind == "list" ? list(std::move(items)) : tuple(std::move(items));
}

std::string verdict(const Json& line) {
  SameOptions o;
  const Json& given = line["options"];
  o.tol = given.value("tol", o.tol);
  o.equal_nan = given.value("equal_nan", false);
  o.cosine = given.value("cos_similarity", false);
  o.exact_dtype = given.value("exact_dtype", true);
  o.larger_multiplier_for_small = given.value("use_larger_multiplier_for_smaller_tensor", false);
  o.max_multiplier = given.value("force_max_multiplier", false);
  try {
    return same(value_from(line["a"]), value_from(line["b"]), value_from(line["reference"]), o) ? "same" : "differ";
  } catch (const UserError&) {
    return "refused";
  }
}

int run(const std::vector<std::string>& words) {
  const std::string what = words.empty() ? "" : words[0];
  if (what == "npz" && words.size() == 3) {
    save_npz(words[2], load_npz(words[1]));
    return 0;
  }
  if (what == "train") {
    const auto f = compile([](const Tensor& x, const Tensor& w) { return x.matmul(w).sin(); });
    const Tensor w = rand({4, 2}).set_requires_grad();
    backward(f(rand({3, 4}), w).sum());
    return 0;
  }
  if (what == "counts") {
    std::cout << counts().dump() << "\n";
    return 0;
  }
  for (std::string line; std::getline(std::cin, line);) std::cout << verdict(Json::parse(line)) << "\n";
  return 0;
}

}  // namespace
}  // namespace calque

int main(int argc, char** argv) try { return calque::run({argv + 1, argv + argc}); } catch (const calque::UserError& error) {
  std::cerr << error.what() << "\n";
  return 2;
}
