// Knowledge: what one environment knows about its symbols. Ranges, what guards and checks have taught, and which symbol
// stands for which expression. Everything learnt only narrows what was known; each change starts a new epoch, which
// is how results cached on the nodes are told to be old. It records no guards: that is ShapeEnv's.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "calque/sym/expr.h"
#include "calque/sym/shape_env.h"
#include "sym/evaluate.h"
#include "sym/expr_pool.h"
#include "sym/range.h"

namespace calque {

// Told of every change, so that it can be explained later.
class KnowledgeListener {
 public:
  virtual void narrowed(size_t symbol, ValueRange before) = 0;
  virtual void replaced(size_t symbol, const Expr* target) = 0;

 protected:
  ~KnowledgeListener() = default;
};

class Knowledge {
 public:
  explicit Knowledge(ExprPool& pool) : pool_(pool) {}
  void set_listener(KnowledgeListener* listener) { listener_ = listener; }
  // Only symbols and their multiples plus a number may replace a symbol; for programs whose inputs keep their names.
  void set_simple_replacements_only(bool only) { simple_replacements_only_ = only; }

  const Expr* new_symbol(Symbol symbol, bool unbacked);
  const std::vector<Symbol>& symbols() const { return symbols_; }
  const Expr* node(size_t symbol) const { return nodes_[symbol]; }
  const Expr* replacement(size_t symbol) const { return replacements_[symbol]; }  // null: stands for itself
  Symbol& symbol(size_t index) { return symbols_[index]; }
  std::optional<Number> hint(size_t symbol) const;

  // What a question may build on: everything (no premises), or this. Ranges found under it are kept in it.
  struct Premises {
    bool size_oblivious = false;  // data that is a size is at least 2
    bool use_facts = true;        // false: only the ranges of symbols, not what guards say of other expressions
    std::unordered_map<const Expr*, ValueRange> ranges = {};
  };
  ValueRange range(const Expr* e);
  FloatRange float_range(const Expr* e, Premises* premises);  // see range(e, premises)
  // With symbols replaced by what they are known to equal. Multiplied out if anything changed.
  const Expr* replace(const Expr* e);
  // Replaced, multiplied out, and simplified by ranges and divisibility.
  const Expr* simplify(const Expr* e);
  std::optional<bool> decide(const Expr* boolean);
  // The same under premises; with nothing but symbols' ranges and replacements this tells whether a guard says more.
  std::optional<bool> decide_under(const Expr* boolean, Premises& premises);
  // Symbols replaced, without asking whether what was learnt makes the condition true.
  const Expr* replace_undecided(const Expr* boolean);

  // An inequality as < or <= with no negative term on either side and no common divisor, as PyTorch writes its runtime
  // asserts; connectives part by part.
  const Expr* canonical(const Expr* boolean);

  void learn(const Expr* boolean);  // from now on it holds
  void learn_range(const Expr* e, ValueRange range);
  void restrict_symbol(size_t symbol, ValueRange range);
  // From now on the symbol stands for the target, unless that would forget what is known of the symbol.
  void set_replacement(size_t symbol, const Expr* target);

  std::vector<size_t> free_symbols(const Expr* e) const;  // ascending
  uint32_t epoch() const { return epoch_; }               // another one whenever more is known

 private:
  struct Fact {
    ValueRange range;
    std::vector<int64_t> excluded;
  };
  // expression = factor * core + constant; core has no constant, no common divisor, and a positive first coefficient.
  struct Linear {
    const Expr* core;  // null for a constant
    int64_t factor;
    int64_t constant;
  };
  // A comparison of integers as a statement about a core.
  struct Statement {
    enum Kind { always, never, equal, unequal, at_least, at_most } kind = always;
    const Expr* core = nullptr;
    int64_t bound = 0;
  };

  Linear linear(const Expr* expanded);
  Statement statement(ExprKind relation, const Expr* difference);
  ValueRange range(const Expr* e, Premises* premises);
  ValueRange compute_range(const Expr* e, Premises* premises);
  ValueRange bounds(const Expr* core, Premises* premises = nullptr);  // the best that is known
  ValueRange shifted_range(const Expr* core, Premises* premises);     // every factor measured from its lower bound
  const Expr* rewrite(const Expr* e);
  bool leaves_no_remainder(const Expr* a, const Expr* b);
  std::optional<bool> decide_uncached(const Expr* e);
  std::optional<bool> decide_relation(const Expr* e, Premises* premises = nullptr);
  void learn_relation(const Expr* e);
  void learn_core_range(const Expr* core, ValueRange range);
  void refine(const Expr* core, ValueRange range);
  void solve(const Expr* relation, const Expr* difference);
  bool may_replace(size_t symbol, const Expr* target) const;
  bool only_input_data(const Expr* e) const;
  void remap_facts();

  ExprPool& pool_;
  KnowledgeListener* listener_ = nullptr;
  bool simple_replacements_only_ = false;
  std::vector<Symbol> symbols_;
  std::vector<const Expr*> nodes_;
  std::vector<const Expr*> replacements_;
  std::unordered_map<const Expr*, Fact> facts_;
  std::unordered_map<const Expr*, bool> known_booleans_;
  uint64_t replaced_mask_ = 0;
  uint32_t epoch_ = 1;
  uint32_t replacement_epoch_ = 1;
  bool knows_remainders_ = false;
};

}  // namespace calque
