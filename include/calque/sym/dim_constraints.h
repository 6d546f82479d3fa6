// DimConstraints: solves what guards say about input dimensions. Conditions in one dimension become values it is forced
// to, bounds and congruences; those in several are simplified by what is forced. The results are text in PyTorch's
// words, and fixes for the user's `Dim`s. Needs a ShapeEnv only to read expressions; guards nothing.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "calque/sym/shape_env.h"
#include "calque/sym/source.h"

namespace calque {

// What the user said of a dimension: a name with bounds, or (derived) a multiple of another one plus a number.
struct NamedDim {
  std::string name;  // "dx", "2*dx + 1"
  ValueRange range{0, ValueRange::unbounded_above};
  struct Derived {
    std::string root;
    int64_t multiplier = 1;
    int64_t offset = 0;
  };
  std::optional<Derived> derived;
};

class DimConstraints {
 public:
  using SymbolSources = std::map<size_t, std::vector<Source>>;          // by index into ShapeEnv::symbols()
  using DebugNames = std::vector<std::pair<std::string, std::string>>;  // what the user calls sources, by their names
  // marked_dynamic: symbols whose specialisation is unexpected.
  DimConstraints(ShapeEnv& env, SymbolSources sources, std::set<size_t> marked_dynamic = {}, DebugNames debug_names = {});
  ~DimConstraints();
  DimConstraints(DimConstraints&&) noexcept;
  DimConstraints& operator=(DimConstraints&&) noexcept;

  // Returns whether the condition says nothing. It must hold for the symbols' examples.
  bool add(SymBool condition);
  void add_equality(const Source& source, SymInt value);  // the source is this value
  // Once, after everything was added. Conditions that contradict the examples are a UserError.
  void solve();

  const std::set<std::string>& static_results() const;   // "L['x'].size()[0] == 3"
  const std::set<std::string>& dynamic_results() const;  // "2 <= L['x'].size()[0]"
  // "dx = L['x'].size()[0]" (or the source alone, if nothing has a name) to the value it must have.
  std::map<std::string, int64_t> forced_specializations() const;
  // What to tell the user: unexpected specialisations, and how to write the dims instead. Empty if there is nothing to say.
  std::string prettify_results(const std::vector<NamedDim>& dims) const;

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace calque
