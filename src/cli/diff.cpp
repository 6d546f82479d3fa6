// calque diff A B: are two tensor files the same?
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "calque/file/compare.h"
#include "cli/command.h"
#include "cli/table.h"

namespace calque::cli {
namespace {

using Json = nlohmann::ordered_json;

struct DiffOptions {
  std::string a, b, reference;
  SameOptions same;
  bool any_dtype = false;
  double iou = 0.99;
  size_t worst = 10;
  bool json = false;
};

// NaN and infinities have no JSON number; they are written as strings, and so stay apart from "not computed".
Json number(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v > 0 ? "inf" : "-inf";
  return v;
}
Json number(const std::optional<double>& v) { return v ? number(*v) : Json(nullptr); }

// Different ones first, then by how far apart: NaN, then the largest difference.
std::vector<const NamedComparison*> by_severity(const FileComparison& c) {
  std::vector<const NamedComparison*> out;
  for (const auto& t : c.tensors)
    out.push_back(&t);
  const auto distance = [](const NamedComparison* t) {
    return std::isnan(t->result.max_abs) ? INFINITY : t->result.max_abs;
  };
  std::stable_sort(out.begin(), out.end(), [&](const auto* x, const auto* y) {
    return x->result.same != y->result.same ? !x->result.same : distance(x) > distance(y);
  });
  return out;
}

void print_json(const DiffOptions& o, const FileComparison& c) {
  Json out;
  out["same"] = c.same;
  out["a"] = o.a;
  out["b"] = o.b;
  out["reference"] = o.reference.empty() ? Json(nullptr) : Json(o.reference);
  out["tol"] = o.same.tol;
  out["only_in_a"] = c.only_in_a;
  out["only_in_b"] = c.only_in_b;
  out["tensors"] = Json::array();
  for (const auto* t : by_severity(c)) {
    const TensorComparison& r = t->result;
    out["tensors"].push_back({{"name", t->name},
                              {"same", r.same},
                              {"reason", r.reason},
                              {"dtype_a", t->dtype_a},
                              {"dtype_b", t->dtype_b},
                              {"shape_a", t->sizes_a},
                              {"shape_b", t->sizes_b},
                              {"max_abs", number(r.max_abs)},
                              {"rmse", number(r.rmse)},
                              {"cosine", number(r.cosine)},
                              {"worst", r.worst < 0 ? Json(nullptr) : Json(r.worst)},
                              {"outside_tol", r.outside_tol},
                              {"nan_a", r.nan_a},
                              {"nan_b", r.nan_b},
                              {"a_error", number(r.a_error)},
                              {"b_error", number(r.b_error)},
                              {"multiplier", number(r.multiplier)}});
  }
  fmt::print("{}\n", out.dump(2, ' ', false, Json::error_handler_t::replace));
}

void print_names(const char* title, const std::vector<std::string>& names) {
  if (names.empty()) return;
  fmt::print("\n{} ({})\n", title, names.size());
  constexpr size_t shown = 20;
  for (size_t i = 0; i < std::min(names.size(), shown); ++i)
    fmt::print("  {}\n", printable(names[i]));
  if (names.size() > shown) fmt::print("  ... and {} more\n", names.size() - shown);
}

std::string shapes(const NamedComparison& t) {
  const std::string a = str(IntList(t.sizes_a));
  return t.sizes_a == t.sizes_b ? a : a + " | " + str(IntList(t.sizes_b));
}

void print_text(const DiffOptions& o, const FileComparison& c) {
  const auto different = std::count_if(c.tensors.begin(), c.tensors.end(), [](const auto& t) { return !t.result.same; });
  fmt::print("{}: {} tensors in both, {} different; {} only in A, {} only in B\n", c.same ? "same" : "different",
             c.tensors.size(), different, c.only_in_a.size(), c.only_in_b.size());
  print_names("only in A", c.only_in_a);
  print_names("only in B", c.only_in_b);
  auto order = by_severity(c);
  order.erase(
      std::remove_if(order.begin(), order.end(), [](const auto* t) { return t->result.same && t->result.max_abs == 0; }),
      order.end());
  if (order.empty() || o.worst == 0) return;
  const size_t rows = std::min(order.size(), o.worst);
  using Align = Table::Align;
  Table table({{"tensor"},
               {"dtype"},
               {"shape"},
               {"max abs", Align::right},
               {"rmse", Align::right},
               {"cosine", Align::right},
               {"verdict"}});
  for (size_t i = 0; i < rows; ++i) {
    const NamedComparison& t = *order[i];
    const TensorComparison& r = t.result;
    const bool compared = t.sizes_a == t.sizes_b && !(r.worst < 0 && !r.same);
    table.add({printable(t.name), t.dtype_a == t.dtype_b ? t.dtype_a : t.dtype_a + " | " + t.dtype_b, shapes(t),
               compared ? fmt::format("{:.3g}", r.max_abs) : "-", compared ? fmt::format("{:.3g}", r.rmse) : "-",
               compared ? fmt::format("{:.6f}", r.cosine) : "-", (r.same ? "same: " : "DIFFERENT: ") + r.reason});
  }
  fmt::print("\n{}", table.str());
  if (order.size() > rows) fmt::print("... and {} more that are not equal (--worst N shows more)\n", order.size() - rows);
}

void run(const DiffOptions& o) {
  const SafetensorsFile a = SafetensorsFile::open(o.a);
  const SafetensorsFile b = SafetensorsFile::open(o.b);
  std::optional<SafetensorsFile> reference;
  if (!o.reference.empty()) reference = SafetensorsFile::open(o.reference);
  const FileComparison c = compare_files(a, b, reference ? &*reference : nullptr, o.same);
  o.json ? print_json(o, c) : print_text(o, c);
  if (!c.same) throw ExitStatus{1};
}

}  // namespace

void add_diff(CLI::App& app) {
  auto o = std::make_shared<DiffOptions>();
  CLI::App* command =
      app.add_subcommand("diff", "Are two safetensors files the same? Exit status 0: same, 1: different, 2: bad input");
  command->add_option("a", o->a, "a .safetensors file: what is expected")->required();
  command->add_option("b", o->b, "a .safetensors file: what is judged")->required();
  command->add_option("--tol", o->same.tol, "absolute and relative tolerance")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_option("--reference", o->reference, "the same tensors in float64: B may be about as far from it as A is");
  command->add_flag("--cosine", o->same.cosine, "compare by cosine similarity, at least 0.99");
  command->add_flag("--equal-nan", o->same.equal_nan, "NaN equals NaN");
  command->add_flag("--ignore-non-float", o->same.ignore_non_float, "integers and booleans are the same whatever they hold");
  command->add_flag("--any-dtype", o->any_dtype, "cast A's tensors to B's dtypes instead of asking for equal ones");
  command->add_flag("--larger-multiplier", o->same.larger_multiplier_for_small,
                    "with a reference: up to 10 (8) times A's error for tensors of up to 10 (500) elements");
  command->add_flag("--max-multiplier", o->same.max_multiplier,
                    "with a reference: up to 10 times A's error for all tensors");
  CLI::Option* iou = command->add_option("--iou", o->iou, "booleans agree when intersection over union is at least this")
                         ->check(CLI::Range(0.0, 1.0));
  command->add_option("--worst", o->worst, "rows of the table")->capture_default_str();
  command->add_flag("--json", o->json, "for programs to read, all tensors");
  command->callback([o, iou] {
    o->same.exact_dtype = !o->any_dtype;
    if (iou->count() > 0) o->same.bool_iou = o->iou;
    run(*o);
  });
}

}  // namespace calque::cli
