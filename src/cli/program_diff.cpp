// calque diff A.pt2 B.pt2: do two programs compute the same, from the same state?
#include <algorithm>

#include "calque/export/pt2.h"
#include "calque/graph/graph.h"
#include "cli/program.h"

namespace calque::cli {
namespace {

NamedTensors sorted_state_of(const ExportedProgram& program) {
  NamedTensors out;
  for (const auto& [name, t] : program.state_dict()) out.emplace_back(name, t);
  for (const auto& [name, v] : program.constants())
    if (v.is_tensor()) out.emplace_back(name, v.to_tensor());
  std::sort(out.begin(), out.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
  return out;
}

std::string ranges(const ExportedProgram& p) {
  std::string out;
  for (const auto& [symbol, range] : p.parts().range_constraints)
    out += (out.empty() ? "" : ", ") + symbol + ": " + str(range);
  return out;
}

// Empty, or the first thing in which the programs differ, their state aside.
std::string difference(const ExportedProgram& a, const ExportedProgram& b) {
  std::string why;
  if (!same_graph(a.graph(), b.graph(), &why, true)) return "graphs differ: " + why;
  if (a.graph_signature().str() != b.graph_signature().str())
    return "signatures differ:\n" + a.graph_signature().str() + "\n" + b.graph_signature().str();
  if (!(a.in_spec() == b.in_spec()))
    return "inputs have another structure: " + a.in_spec().str() + " and " + b.in_spec().str();
  if (!(a.out_spec() == b.out_spec()))
    return "outputs have another structure: " + a.out_spec().str() + " and " + b.out_spec().str();
  if (ranges(a) != ranges(b)) return "ranges of symbols differ: " + ranges(a) + " and " + ranges(b);
  return "";
}

}  // namespace

FileComparison compare_states(const NamedTensors& a, const NamedTensors& b, const SameOptions& options) {
  FileComparison out;
  out.same = true;
  const auto find = [](const NamedTensors& all, const std::string& name) -> const Tensor* {
    const auto it =
        std::lower_bound(all.begin(), all.end(), name, [](const auto& x, const std::string& n) { return x.first < n; });
    return it != all.end() && it->first == name ? &it->second : nullptr;
  };
  for (const auto& [name, t] : b)
    if (!find(a, name)) out.only_in_b.push_back(name);
  for (const auto& [name, t] : a) {
    const Tensor* other = find(b, name);
    if (!other) {
      out.only_in_a.push_back(name);
      continue;
    }
    NamedComparison c;
    c.name = name;
    c.dtype_a = calque::name(t.dtype());
    c.dtype_b = calque::name(other->dtype());
    c.sizes_a.assign(t.sizes().begin(), t.sizes().end());
    c.sizes_b.assign(other->sizes().begin(), other->sizes().end());
    c.result = compare_tensors(t, *other, {}, options);
    out.same &= c.result.same;
    out.tensors.push_back(std::move(c));
  }
  out.same &= out.only_in_a.empty() && out.only_in_b.empty();
  return out;
}

void run_program_diff(const DiffOptions& options) {
  const auto a = load_program(options.a);
  const auto b = load_program(options.b);
  FileComparison c = compare_states(sorted_state_of(*a), sorted_state_of(*b), options.same);
  const std::string why = difference(*a, *b);
  c.same &= why.empty();
  print_diff(options, c, why.empty() ? std::string("the same program") : why);
  if (!c.same) throw ExitStatus{1};
}

}  // namespace calque::cli
