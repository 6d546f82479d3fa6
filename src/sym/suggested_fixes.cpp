// From solved constraints to what the user should write: dims that are specialised, bounded, or made of others.
#include <algorithm>

#include "base/join.h"
#include "calque/sym/dim_constraints.h"
#include "sym/dim_constraints_impl.h"
#include "sym/linear_text.h"

namespace calque {

namespace {

using Result = DimConstraints::Impl::Result;
using Linear = Result::Linear;
constexpr int64_t unbounded = ValueRange::unbounded_above;

bool says_nothing(const Result& r) { return !r.value && !r.linear && !r.min && !r.max; }

class Fixes {
 public:
  Fixes(const DimConstraints::Impl& solved, const std::vector<NamedDim>& dims) : solved_(solved), results_(solved.results) {
    for (const NamedDim& d : dims) dims_[d.name] = d;
    std::erase_if(results_, [](const auto& entry) { return says_nothing(entry.second); });
  }

  std::string text_of_fixes() {
    introduce_roots();
    settle_roots();
    std::vector<std::string> bounded, equal;
    for (const std::string& name : by_source()) {
      const Result& r = results_.at(name);
      if (r.value) {
        equal.push_back(name + " = " + std::to_string(*r.value));
      } else if (r.linear) {
        equal.push_back(name + " = " + linear_text({r.linear->root, r.linear->multiplier, r.linear->offset}));
      } else {
        std::string limits;
        if (r.min && *r.min != 2) limits += ", min=" + std::to_string(*r.min);
        if (r.max && *r.max != unbounded) limits += ", max=" + std::to_string(*r.max);
        bounded.push_back(name + " = Dim('" + name + "'" + limits + ")");
      }
    }
    bounded.insert(bounded.end(), equal.begin(), equal.end());
    if (bounded.empty()) return "";
    std::string out = "\nSuggested fixes:";
    for (const std::string& line : bounded) out += "\n  " + line;
    return out;
  }

 private:
  const NamedDim* dim(const std::string& name) const {
    const auto at = dims_.find(name);
    return at == dims_.end() ? nullptr : &at->second;
  }

  // A dimension that must be a multiple brings a new dim with it, "dx = 2*_dx"; its bounds become those of the new one, and
  // what was made of the old one is made of the new.
  void introduce_roots() {
    std::vector<std::pair<std::string, std::string>> found;
    for (auto& [name, r] : results_)
      if (r.linear && dim(r.linear->root) == nullptr) found.emplace_back(r.linear->root, name);
    for (const auto& [root, old] : found) {
      Result& r = results_.at(old);
      const Rational multiplier = r.linear->multiplier, offset = r.linear->offset;
      Result fresh;
      fresh.min = ((Rational(r.min.value_or(2)) - offset) / multiplier).ceil();
      if (r.max) fresh.max = ((Rational(*r.max) - offset) / multiplier).floor();
      dims_[root] = {root, {*fresh.min, fresh.max.value_or(unbounded)}, {}};
      r.min.reset();
      r.max.reset();
      results_[root] = fresh;
      introduced_.insert(root);
    }
    for (const auto& [root, old] : found) {
      const Linear by = *results_.at(old).linear;
      for (auto& [name, r] : results_)
        if (r.linear && r.linear->root == old)
          r.linear =
              Linear{by.root, r.linear->multiplier * by.multiplier, r.linear->multiplier * by.offset + r.linear->offset};
    }
  }

  static bool same_range(const Result& r, const NamedDim& d) {
    if (d.derived || (!r.min && !r.max)) return false;
    const int64_t min = r.min.value_or(2);
    return ((d.range.lower < 2 && min == 2) || d.range.lower == min) && d.range.upper == r.max.value_or(unbounded);
  }

  // Only roots are suggested: each is unchanged, bounded, specialised or made of another; derived dims follow from them.
  void settle_roots() {
    std::set<std::string> roots;
    for (const auto& [name, r] : results_) {
      const NamedDim* d = dim(name);
      if (d == nullptr) continue;
      if (!d->derived && (r.min || r.max))
        roots.insert(name);
      else if (r.linear)
        roots.insert(r.linear->root);
    }
    for (const std::string& name : introduced_) roots.erase(name);

    std::map<std::string, Result> settled;
    for (const std::string& root : roots) {
      const NamedDim* own = dim(root);
      if (own == nullptr) continue;
      if (const auto at = results_.find(root);
          at != results_.end() && (at->second.min || at->second.max || at->second.value)) {
        if (!same_range(at->second, *own)) settled[root] = at->second;
        continue;
      }
      // The root itself is now made of something that was derived from it: turn that around.
      for (const auto& [name, r] : results_) {
        const NamedDim* d = dim(name);
        if (d == nullptr || !d->derived || d->derived->root != root || !(r.min || r.max)) continue;
        const auto solved = [&](int64_t v) {
          return (Rational(v) - Rational(d->derived->offset)) / Rational(d->derived->multiplier);
        };
        Result turned;
        if (r.min) turned.min = solved(*r.min).ceil();
        if (r.max) turned.max = solved(*r.max).floor();
        if (!same_range(turned, *own)) {
          settled[root] = turned;
          break;
        }
      }
    }
    std::erase_if(results_, [&](const auto& entry) {
      const NamedDim* d = dim(entry.first);
      return d != nullptr && (d->derived || roots.contains(entry.first));
    });
    for (auto& [name, r] : settled) results_[name] = r;
  }

  std::vector<std::string> by_source() const {
    const auto with_sources = [&](std::string name) {
      for (const auto& [source, debug] : solved_.debug_names)
        for (size_t at = name.find(debug); at != std::string::npos; at = name.find(debug, at + source.size()))
          name.replace(at, debug.size(), source);
      return name;
    };
    std::vector<std::string> names;
    for (const auto& [name, r] : results_) names.push_back(name);
    std::ranges::stable_sort(names, {}, with_sources);
    return names;
  }

  const DimConstraints::Impl& solved_;
  std::map<std::string, Result> results_;
  std::map<std::string, NamedDim> dims_;
  std::set<std::string> introduced_;
};

}  // namespace

std::string DimConstraints::prettify_results(const std::vector<NamedDim>& dims) const {
  if (impl_->debug_names.empty()) return "";
  // By source.
  std::vector<std::pair<std::string, int64_t>> forced;
  for (const auto& entry : forced_specializations()) forced.push_back(entry);
  std::ranges::stable_sort(forced, {}, [](const auto& f) {
    const size_t at = f.first.find(" = ");
    return at == std::string::npos ? f.first : f.first.substr(at + 3);
  });
  std::string out;
  if (!forced.empty()) {
    std::set<std::string> names;
    for (const auto& [name, value] : forced) {
      const std::string debug = name.substr(0, name.find(" = "));
      const auto at = std::ranges::find(dims, debug, &NamedDim::name);
      names.insert(at != dims.end() && at->derived ? at->derived->root : debug);
    }
    const std::string list = join(names, ", ");
    out += "Specializations unexpectedly required (" + list + ")! For more information, see ShapeEnv::explain().\n";
    for (const auto& [name, value] : forced)
      out += "  - solving the guards generated for " + name + " resulted in a specialized value of " +
             std::to_string(value) + ".\n";
  }
  return out + Fixes(*impl_, dims).text_of_fixes();
}

}  // namespace calque
