// calque profile MODEL: where the time of a call goes, by a plan, and what memory it holds.
#include <fmt/format.h>

#include "calque/base/thread.h"
#include "calque/compile/plan_profile.h"
#include "calque/export/export.h"
#include "calque/file/file_writer.h"
#include "calque/op/tree.h"
#include "calque/run/plan.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "cli/workload.h"

namespace calque::cli {
namespace {

PlanProfile profile_of(const Workload& work, const ProfileOptions& o) {
  std::shared_ptr<const ExportedProgram> program = work.program;
  if (!program) program = std::make_shared<const ExportedProgram>(export_program(*work.module, {}, work.inputs));
  Values inputs;
  for (const auto& [name, value] : work.inputs)
    for (const Value& leaf : tree_leaves(value)) inputs.push_back(leaf);
  PlanOptions options;
  options.optimize = !o.eager;
  return profile_plan(*Plan::make(*program, options), inputs, o.runs);
}

OrderedJson rows_json(const std::vector<ProfileRow>& rows) {
  OrderedJson out = OrderedJson::array();
  for (const ProfileRow& row : rows)
    out.push_back({{"name", row.name}, {"calls", row.calls}, {"ms", row.ms}, {"share", row.share}, {"bytes", row.bytes}});
  return out;
}

OrderedJson steps_json(const PlanProfile& profile) {
  OrderedJson out = OrderedJson::array();
  for (size_t i = 0; i < profile.runs[0].size(); ++i) {
    const ProfiledStep& step = profile.runs[0][i];
    out.push_back({{"name", step.name},
                   {"op", step.op},
                   {"module", step.module},
                   {"ms", profile.median_step_ms(i)},
                   {"bytes", step.bytes},
                   {"memory_bytes", step.memory}});
  }
  return out;
}

OrderedJson profile_json(const ProfileOptions& o, const Workload& work, const PlanProfile& profile) {
  return {{"path", o.path},
          {"ran", o.eager ? "operators" : "plan"},
          {"threads", num_threads()},
          {"inputs", inputs_json(work.inputs)},
          {"runs", profile.runs.size()},
          {"run_ms", profile.median_run_ms()},
          {"peak_memory_bytes", profile.peak_memory()},
          {"operators", rows_json(profile_rows(profile, ProfileBy::op))},
          {"modules", rows_json(profile_rows(profile, ProfileBy::module))},
          {"steps", steps_json(profile)}};
}

std::string rows_table(const std::string& title, const std::vector<ProfileRow>& rows, size_t top) {
  using enum Table::Align;
  Table table({{title}, {"calls", right}, {"ms", right}, {"share", right}, {"bytes given", right}});
  for (size_t i = 0; i < std::min(top, rows.size()); ++i) {
    const ProfileRow& row = rows[i];
    table.add({row.name.empty() ? "(none)" : printable(row.name), with_thousands(static_cast<unsigned long long>(row.calls)),
               fmt::format("{:.4f}", row.ms), fmt::format("{:.1f} %", 100 * row.share),
               human_bytes(static_cast<unsigned long long>(row.bytes))});
  }
  std::string out = "\n" + table.str();
  if (rows.size() > top) out += fmt::format("... and {} more (--top)\n", rows.size() - top);
  return out;
}

}  // namespace

void run_profile(const ProfileOptions& o) {
  require_ending(o.output, "profile: --output", {".json", ".html"});
  const Workload work = load_workload("profile", o);
  const GradModeScope no_grad(false);
  PlanProfile profile;
  {
    const Progress progress("measuring " + o.path);
    profile = profile_of(work, o);
  }
  if (!o.output.empty()) {
    const std::string text = o.output.ends_with(".html") ? profile_html(profile, o.path) : profile_chrome_trace(profile);
    FileWriter file(o.output);
    file.write(text.data(), text.size());
    file.commit();
  }
  if (o.json) return print_json(profile_json(o, work, profile));
  fmt::print("{}: {} steps, {:.4f} ms (the median of {} runs), {} thread{}\n", printable(o.path), profile.runs[0].size(),
             profile.median_run_ms(), profile.runs.size(), num_threads(), num_threads() == 1 ? "" : "s");
  fmt::print("the values of a run hold at most {}, inputs and weights aside\n\n{}",
             human_bytes(static_cast<unsigned long long>(profile.peak_memory())), inputs_table(work.inputs));
  fmt::print("{}{}", rows_table("operator", profile_rows(profile, ProfileBy::op), o.top),
             rows_table("module", profile_rows(profile, ProfileBy::module), o.top));
}

}  // namespace calque::cli
