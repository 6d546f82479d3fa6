// opcheck FILE.jsonl...: runs the cases of PyTorch's case files, prints a table and exits 1 when one fails.
// Each operator runs in a child process, so that a crash costs one operator's report and not the whole run.

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "calque/op/gradient.h"
#include "calque/op/operator.h"
#include "op/opcheck_support.h"

namespace {

using calque::opcheck::CaseFile;
using calque::opcheck::Report;
using Json = nlohmann::json;

struct Place {
  const CaseFile* file;
  size_t index;
};

Report run_group(const std::string& op, const std::vector<Place>& places, const calque::opcheck::Options& options,
                 const std::set<std::string>& ids, const std::function<void(const std::string&)>& before) {
  Report report;
  report.op = op;
  for (const Place& p : places) {
    const Json& entry = p.file->at(p.index);
    const auto id = entry.at("id").get<std::string>();
    if (!ids.empty() && !ids.contains(id)) continue;
    before(id);
    calque::opcheck::run_case(*p.file, entry, options, report);
  }
  calque::opcheck::finish(report);
  return report;
}

// The child sends the id of each case before it runs and its report at the end, one line each.
Report run_isolated(const std::string& op, const std::vector<Place>& places, const calque::opcheck::Options& options,
                    const std::set<std::string>& ids) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("pipe failed");
  const pid_t pid = fork();
  if (pid < 0) throw std::runtime_error("fork failed");
  const auto send = [&](const std::string& line) {
    const std::string text = line + "\n";
    for (size_t done = 0; done < text.size();) {
      const ssize_t n = write(ends[1], text.data() + done, text.size() - done);
      if (n <= 0) _exit(3);
      done += static_cast<size_t>(n);
    }
  };
  if (pid == 0) {
    close(ends[0]);
    const Report r = run_group(op, places, options, ids, send);
    send("=" + to_json(r).dump(-1, ' ', false, Json::error_handler_t::replace));
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  char buffer[65536];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(pid, &status, 0);
  std::istringstream lines(text);
  std::string line, last;
  int64_t ran = 0;
  while (std::getline(lines, line)) {
    if (!line.empty() && line[0] == '=') return calque::opcheck::report_from_json(Json::parse(line.substr(1)));
    last = line;
    ++ran;
  }
  Report r;
  r.op = op;
  r.cases = static_cast<int64_t>(places.size());
  std::string call;
  for (const Place& p : places)
    if (p.file->at(p.index).at("id") == last) call = calque::opcheck::describe_call(p.file->at(p.index));
  const std::string how =
      WIFSIGNALED(status) ? fmt::format("signal {}", WTERMSIG(status)) : fmt::format("exit status {}", WEXITSTATUS(status));
  r.failures.push_back(
      {last,
       fmt::format("the process died in this case ({}); {} cases of the operator were not judged", how, r.cases - ran + 1),
       call});
  return r;
}

// How gradients go back through an operator.
const char* way_back(const calque::Operator& op) {
  const calque::OperatorGradient* gradient = op.gradient();
  if (gradient) return gradient->formulas.empty() ? "none" : "formula";
  return op.is_composite() || op.alias_of() || (op.base() && op.base()->is_composite()) ? "composite" : "missing";
}

// What is asked of the table itself. Whether anything was.
bool print_table(bool list, bool schemas, bool gradients) {
  if (list) {
    std::set<std::string> names;
    for (const calque::Operator* op : calque::all_operators()) names.insert(op->name());
    for (const std::string& n : names) fmt::print("{}\n", n);
    return true;
  }
  if (schemas) {
    for (const calque::Operator* op : calque::all_operators()) fmt::print("{}\n", op->schema().str());
    return true;
  }
  if (gradients) {
    for (const calque::Operator* op : calque::all_operators())
      if (!op->has_tag(calque::Tag::out)) fmt::print("{}\t{}\t{}\n", op->name(), op->family(), way_back(*op));
    return true;
  }
  return false;
}

int run(int argc, char** argv) {
  CLI::App app{"Runs operator cases made by PyTorch"};
  std::vector<std::string> files, ops, only;
  std::string exclusions_path, gaps_path;
  bool list = false, schemas = false, gradients = false, json = false, in_process = false, no_rules = false;
  size_t show = 3;
  app.add_option("files", files, "case files, NAME.jsonl with NAME.bin beside it");
  app.add_option("--ops", ops, "only these operators")->delimiter(',');
  app.add_option("--id", only, "only these cases");
  app.add_option("--exclusions", exclusions_path, "operators that may be missing: NAME<tab>reason");
  app.add_option("--gaps", gaps_path, "operators some of whose failures are known: NAME<tab>SHARE<tab>what differs");
  app.add_option("--show", show, "failures to print for each operator");
  app.add_flag("--list", list, "print the operators of Calque's table");
  app.add_flag("--schemas", schemas, "print the schema of each operator of Calque's table");
  app.add_flag("--gradients", gradients, "print how gradients go through each operator of Calque's table");
  app.add_flag("--json", json, "the whole report as JSON");
  app.add_flag("--in-process", in_process, "no child processes (for debuggers and sanitizers)");
  app.add_flag("--no-rules", no_rules, "do not run shape rules on tensors without data");
  CLI11_PARSE(app, argc, argv);
  if (print_table(list, schemas, gradients)) return 0;
  if (files.empty()) {
    fmt::print(stderr, "opcheck: no case file given\n");
    return 2;
  }
  const auto exclusions = calque::opcheck::read_reasons(exclusions_path);
  const auto gaps = calque::opcheck::read_gaps(gaps_path);
  std::vector<CaseFile> loaded;
  for (const std::string& f : files) loaded.emplace_back(f);
  const std::set<std::string> wanted(ops.begin(), ops.end()), ids(only.begin(), only.end());
  std::map<std::string, std::vector<Place>> groups;
  for (const CaseFile& f : loaded)
    for (size_t i = 0; i < f.size(); ++i)
      if (wanted.empty() || wanted.contains(f.operator_at(i))) groups[f.operator_at(i)].push_back({&f, i});

  calque::opcheck::Options options;
  options.rules = !no_rules;
  Json all = Json::array();
  int64_t passed = 0, failed = 0, excluded = 0, skipped = 0, missing_ops = 0, gap_failures = 0;
  std::string table, details, closed;
  for (const auto& [op, places] : groups) {
    const Report r =
        in_process ? run_group(op, places, options, ids, [](const std::string&) {}) : run_isolated(op, places, options, ids);
    const bool is_excluded = exclusions.contains(op);
    passed += r.passed;
    skipped += r.skipped;
    const bool is_listed = gaps.contains(op);
    const bool is_gap = is_listed && gaps.at(op).allows(r.failed(), r.cases);
    if (is_gap) gap_failures += r.failed();
    if (is_listed && r.failed() == 0 && r.missing == 0) closed += "  " + op + "\n";
    const int64_t bad = is_excluded ? 0 : (is_gap ? 0 : r.failed()) + r.missing;
    failed += bad;
    if (is_excluded) excluded += r.failed() + r.missing;
    if (r.missing && !is_excluded) ++missing_ops;
    if (json) {
      Json j = to_json(r);
      if (is_excluded) j["excluded"] = exclusions.at(op);
      all.push_back(std::move(j));
      continue;
    }
    if (r.cases == 0) continue;
    table += fmt::format("{:<56} {:>6} {:>6} {:>6}{}\n", op, r.cases, r.passed, r.failed(),
                         r.missing    ? (is_excluded ? "  excluded" : "  missing")
                         : r.failed() ? (is_gap ? "  known gap" : "  FAILED")
                                      : "");
    for (size_t i = 0; i < std::min(show, r.failures.size()); ++i)
      details += fmt::format("{}\n    {}\n    {}\n", r.failures[i].id, r.failures[i].call, r.failures[i].what);
  }
  if (json) {
    fmt::print("{}\n", all.dump(-1, ' ', false, Json::error_handler_t::replace));
  } else {
    fmt::print("{:<56} {:>6} {:>6} {:>6}\n{}\n{}", "operator", "cases", "passed", "failed", table, details);
    if (missing_ops) fmt::print("{} operators are missing from the table\n", missing_ops);
    if (excluded) fmt::print("{} cases of excluded operators do not count\n", excluded);
    if (gap_failures) fmt::print("{} failures of operators with known gaps do not count\n", gap_failures);
    if (!closed.empty() && !gaps_path.empty()) fmt::print("listed as gaps but without a failure in this run:\n{}", closed);
    if (skipped) fmt::print("{} cases that PyTorch's fake execution refuses were skipped\n", skipped);
    fmt::print("{} passed, {} failed\n", passed, failed);
  }
  return failed == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {
    fmt::print(stderr, "opcheck: {}\n", e.what());
    return 2;
  }
}
