#include "export/dynamic_shapes_support.h"

#include <fstream>

#include "calque/op/aten/cat.h"
#include "calque/op/aten/masking.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/views.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/index.h"
#include "support/paths.h"

namespace calque {

namespace {

using Json = nlohmann::json;

Tensor t(const Values& args, size_t i) { return args[i].to_tensor(); }
SymInt size(const Tensor& x, int64_t i) { return x.sym_sizes()[static_cast<size_t>(i)]; }
const Tensor& by_key(const Value& v, const char* key) { return v.to_dict().find(key)->to_tensor(); }
Tensor from(const Tensor& x, int64_t start) { return slice(x, 0, start); }

std::optional<int64_t> bound(const Json& j) { return j.is_null() ? std::nullopt : std::optional(j.get<int64_t>()); }

Value key_from(const Json& j) { return j.is_string() ? Value(j.get<std::string>()) : Value(j.get<int64_t>()); }

}  // namespace

const std::map<std::string, ShapeFunction>& shape_functions() {
  static const std::map<std::string, ShapeFunction> all = {
      {"Add", {{"x", "y"}, [](const Values& a, const Kwargs&) { (void)(t(a, 0) + t(a, 1)); }}},
      {"Bmm", {{"x", "y"}, [](const Values& a, const Kwargs&) { (void)bmm(t(a, 0), t(a, 1)); }}},
      {"Sin", {{"x"}, [](const Values& a, const Kwargs&) { (void)t(a, 0).sin(); }}},
      {"AddConstant",
       {{"x"},
        [](const Values& a, const Kwargs&) {
          (void)(t(a, 0) + ones({10, 3}));
        }}},
      {"Branches",
       {{"x", "y"},
        [](const Values& a, const Kwargs&) {
          if (guard(size(t(a, 0), 0) < 16)) (void)guard(size(t(a, 1), 1) % 3 == 0);
        }}},
      {"AtLeast",
       {{"x"},
        [](const Values& a, const Kwargs&) {
          if (guard(size(t(a, 0), 0) >= 4)) (void)guard(size(t(a, 0), 0) <= 12);
          (void)(t(a, 0) + 1);
        }}},
      {"Tail", {{"x", "y"}, [](const Values& a, const Kwargs&) { (void)(t(a, 0) + from(t(a, 1), 1)); }}},
      {"TailThree",
       {{"x", "y", "z"}, [](const Values& a, const Kwargs&) { (void)(t(a, 0) + from(t(a, 1), 1) + from(t(a, 2), 2)); }}},
      {"Strided",
       {{"x", "y"}, [](const Values& a, const Kwargs&) { (void)(slice(t(a, 0), 0, 1, std::nullopt, 4) + t(a, 1)); }}},
      {"Doubled",
       {{"x", "y"},
        [](const Values& a, const Kwargs&) {
          (void)(cat({t(a, 0), t(a, 0)}) + t(a, 1));
        }}},
      {"Pairs",
       {{"x"},
        [](const Values& a, const Kwargs&) {
          (void)reshape(t(a, 0), {-1, 2});
        }}},
      {"Fold",
       {{"x", "y"},
        [](const Values& a, const Kwargs&) {
          (void)reshape(t(a, 0), {-1, 4, size(t(a, 1), 0)});
        }}},
      {"SpecializedRoot",
       {{"x", "y"},
        [](const Values& a, const Kwargs&) {
          if (guard(size(t(a, 0), 0) == 12)) (void)(slice(t(a, 0), 0, std::nullopt, -6) + ones({6}));
        }}},
      {"Nested",
       {{"inputs"},
        [](const Values& a, const Kwargs&) {
          Tensor out = by_key(a[0], "a");
          for (const Value& v : a[0].to_dict().find("b")->to_items()) out = out + v.to_tensor();
          const Values& c = a[0].to_dict().find("c")->to_items();
          (void)(out + c[0].to_tensor() + c[1].to_tensor());
        }}},
      {"ListIn",
       {{"x", "y"},
        [](const Values& a, const Kwargs&) {
          const Values& x = a[0].to_items();
          (void)(x[0].to_tensor() + x[1].to_tensor() + t(a, 1));
        }}},
      {"Kw",
       {{"x", "y", "k", "j"},
        [](const Values& a, const Kwargs& kwargs) {
          for (const auto& [name, value] : kwargs)
            if (name == "k") (void)(t(a, 0) + t(a, 1) + value.to_tensor());
        }}},
      {"IntIn", {{"x", "n"}, [](const Values& a, const Kwargs&) { (void)t(a, 0).mul(a[1].to_scalar()); }}},
      {"IntSlice", {{"x", "n"}, [](const Values& a, const Kwargs&) { (void)guard(a[1].to_sym_int() > 3); }}},
      {"Same", {{"x", "y"}, [](const Values& a, const Kwargs&) { (void)(t(a, 0) + t(a, 1).sum()); }}},
      {"Unrelated", {{"x", "y"}, [](const Values& a, const Kwargs&) { (void)(t(a, 0) * 2), (void)(t(a, 1) + 1); }}},
      {"DivisibleBoth",
       {{"x", "y"},
        [](const Values& a, const Kwargs&) {
          (void)guard((size(t(a, 0), 0) + size(t(a, 1), 0)) % 4 == 0);
          (void)(t(a, 0).sum() + t(a, 1).sum());
        }}},
      {"Nonzero", {{"x"}, [](const Values& a, const Kwargs&) { (void)(nonzero(t(a, 0)) + 1); }}},
      {"Text", {{"x", "s"}, [](const Values& a, const Kwargs&) { (void)(t(a, 0) + 1); }}},
      {"MinusOne",
       {{"x", "y"}, [](const Values& a, const Kwargs&) { (void)(t(a, 0) + slice(t(a, 1), 0, std::nullopt, -1)); }}},
      {"Specialize", {{"x"}, [](const Values& a, const Kwargs&) { (void)size(t(a, 0), 0).guard_int(); }}},
  };
  return all;
}

Value input_from(const Json& j, std::map<std::string, Tensor>& by_id) {
  if (j.is_null()) return {};
  if (j.is_string()) return j.get<std::string>();
  if (j.is_boolean()) return j.get<bool>();
  if (j.is_number_integer()) return j.get<int64_t>();
  if (j.is_number()) return j.get<double>();
  if (j.contains("t")) {
    const auto make = [&] {
      const auto sizes = j["t"].get<std::vector<int64_t>>();
      return zeros(as_sym(sizes));
    };
    if (!j.contains("id")) return make();
    Tensor& known = by_id[j["id"].get<std::string>()];
    if (!known.defined()) known = make();
    return known;
  }
  if (j.contains("dict")) {
    std::vector<std::pair<Value, Value>> entries;
    for (const Json& e : j["dict"]) entries.emplace_back(key_from(e[0]), input_from(e[1], by_id));
    return dict(std::move(entries));
  }
  Values items;
  for (const Json& e : j.contains("list") ? j["list"] : j["tuple"]) items.push_back(input_from(e, by_id));
  return j.contains("list") ? list(std::move(items)) : tuple(std::move(items));
}

DynamicShapes shapes_from(const Json& j) {
  if (j.is_null()) return {};
  if (j.is_number_integer()) return j.get<int64_t>();
  if (j.contains("hint")) {
    const std::string type = j["hint"];
    const DimHint hint = type == "AUTO" ? Dim::AUTO : type == "DYNAMIC" ? Dim::DYNAMIC : Dim::STATIC;
    return j["min"].is_null() && j["max"].is_null() ? hint : hint(bound(j["min"]), bound(j["max"]));
  }
  if (j.contains("dim")) {
    const Json& d = j["dim"];
    Dim dim(d[0].get<std::string>(), bound(d[1]), bound(d[2]));
    if (j.contains("mul")) dim = dim * j["mul"].get<int64_t>() + j["add"].get<int64_t>();
    return dim;
  }
  if (j.contains("dict")) {
    DynamicShapes::Entries entries;
    for (const Json& e : j["dict"]) entries.emplace_back(key_from(e[0]), shapes_from(e[1]));
    return DynamicShapes::dict(std::move(entries));
  }
  DynamicShapes::Items items;
  for (const Json& e : j.contains("list") ? j["list"] : j["tuple"]) items.push_back(shapes_from(e));
  return j.contains("list") ? DynamicShapes::list(std::move(items)) : DynamicShapes::tuple(std::move(items));
}

std::vector<Json> shape_cases() {
  std::ifstream in(test::source_folder() + "/tests/export/golden/dynamic_shapes.jsonl");
  std::vector<Json> out;
  for (std::string line; std::getline(in, line);) out.push_back(Json::parse(line));
  return out;
}

}  // namespace calque
