// calque diff A B: are two tensor files, two model folders or two programs the same?
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "calque/base/error.h"
#include "calque/file/compare.h"
#include "cli/command.h"
#include "cli/models.h"
#include "cli/program.h"
#include "cli/table.h"

namespace calque::cli {
namespace {

using Json = nlohmann::ordered_json;

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
  for (const auto& t : c.tensors) out.push_back(&t);
  const auto distance = [](const NamedComparison* t) {
    return std::isnan(t->result.max_abs) ? INFINITY : t->result.max_abs;
  };
  std::stable_sort(out.begin(), out.end(), [&](const auto* x, const auto* y) {
    return x->result.same != y->result.same ? !x->result.same : distance(x) > distance(y);
  });
  return out;
}

void print_json(const DiffOptions& o, const FileComparison& c, const std::optional<std::string>& program) {
  Json out;
  out["same"] = c.same;
  if (program) out["program"] = *program;
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
  for (size_t i = 0; i < std::min(names.size(), shown); ++i) fmt::print("  {}\n", printable(names[i]));
  if (names.size() > shown) fmt::print("  ... and {} more\n", names.size() - shown);
}

std::string shapes(const NamedComparison& t) {
  const std::string a = str(IntList(t.sizes_a));
  return t.sizes_a == t.sizes_b ? a : a + " | " + str(IntList(t.sizes_b));
}

void print_text(const DiffOptions& o, const FileComparison& c, const std::optional<std::string>& program) {
  if (program) fmt::print("{}\n", *program);
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
  print_diff(o, c);
  if (!c.same) throw ExitStatus{1};
}

// At least one is a checkpoint of torch.save, or holds NumPy's arrays.
void run_tensors_diff(const DiffOptions& o) {
  if (!o.reference.empty())
    throw UserError("diff: --reference compares safetensors files; " + o.a + " or " + o.b + " is another kind of file");
  const auto sorted = [](const std::string& path) {
    NamedTensors out = tensors_of(path);
    std::sort(out.begin(), out.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
    return out;
  };
  const FileComparison c = compare_states(sorted(o.a), sorted(o.b), o.same);
  print_diff(o, c);
  if (!c.same) throw ExitStatus{1};
}

}  // namespace

void print_diff(const DiffOptions& options, const FileComparison& comparison, const std::optional<std::string>& program) {
  options.json ? print_json(options, comparison, program) : print_text(options, comparison, program);
}

void run_diff(const DiffOptions& options) {
  const bool model_a = names_model(options.a), model_b = names_model(options.b);
  if (model_a && model_b) {
    if (!options.output.empty()) draw_diff(options);
    return run_model_diff(options);
  }
  if (model_a != model_b)
    throw UserError("diff: " + (model_a ? options.a : options.b) + " is a model and " + (model_a ? options.b : options.a) +
                    " is a file; expected two of a kind: two models, two programs or two files of tensors");
  refuse_model_options("diff", {options.a, options.model_class, options.dtype, ""});
  const FileKind a = kind_of(options.a), b = kind_of(options.b);
  if ((a == FileKind::program) != (b == FileKind::program))
    throw UserError("diff: " + (a == FileKind::program ? options.a : options.b) + " is a program and " +
                    (a == FileKind::program ? options.b : options.a) +
                    " holds tensors; expected two of a kind: two models, two programs or two files of tensors");
  if (!options.output.empty()) {
    if (a != FileKind::program)
      throw UserError("diff: -o draws the graphs of two programs or of two models; " + options.a + " and " + options.b +
                      " hold tensors");
    draw_diff(options);
  }
  if (a == FileKind::program) return run_program_diff(options);
  if (a != FileKind::safetensors || b != FileKind::safetensors) return run_tensors_diff(options);
  run(options);
}

}  // namespace calque::cli
