#include "graph/draw/match.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "calque/graph/text.h"
#include "graph/value_print.h"

namespace calque::draw {
namespace {

using Keys = std::vector<uint32_t>;

// Texts as numbers that are equal when the texts are.
class Numbers {
 public:
  uint32_t operator()(std::string text) {
    return known_.try_emplace(std::move(text), static_cast<uint32_t>(known_.size())).first->second;
  }

 private:
  std::unordered_map<std::string, uint32_t> known_;
};

std::string module_of(const Node& n) {
  if (!n.meta.nn_module_stack || n.meta.nn_module_stack->empty()) return "";
  return n.meta.nn_module_stack->back().path;
}

// What a node calls, and where; of a weight its path.
std::string call_text(const Node& n, const DrawOptions& options) {
  if (const auto weight = options.weights.find(n.name()); weight != options.weights.end()) return "weight " + weight->second;
  return std::string(name(n.kind())) + " " + n.target().str() + " " + module_of(n);
}

std::string arguments_text(const Node& n, const ValuePrinter& print) {
  std::string out = print.tuple(n.args());
  for (const auto& [key, v] : n.kwargs()) out += ", " + key + "=" + print(v);
  return out;
}

struct Range {
  size_t a_begin, a_end, b_begin, b_end;
  bool empty() const { return a_begin == a_end || b_begin == b_end; }
};

// Pairs equal keys without crossing. Keys that both have once are sure; what is between them is paired by itself, in the end by the
// longest common subsequence.
class Pairing {
 public:
  Pairing(const Keys& a, const Keys& b, Matched& out) : a_(a), b_(b), out_(out) {}
  void pair(Range first) {
    std::vector<Range> todo = {first};
    while (!todo.empty()) {
      Range r = todo.back();
      todo.pop_back();
      trim(r);
      if (r.empty()) continue;
      const std::vector<std::pair<size_t, size_t>> sure = once_in_both(r);
      if (sure.empty()) {
        longest_common(r);
        continue;
      }
      for (const auto& [i, j] : sure) {
        join(i, j);
        todo.push_back({r.a_begin, i, r.b_begin, j});
        r.a_begin = i + 1;
        r.b_begin = j + 1;
      }
      todo.push_back(r);
    }
  }

 private:
  void join(size_t i, size_t j) {
    out_.partner[i] = static_cast<uint32_t>(j);
    out_.partner_of_b[j] = static_cast<uint32_t>(i);
  }
  void trim(Range& r) {
    for (; !r.empty() && a_[r.a_begin] == b_[r.b_begin]; ++r.a_begin, ++r.b_begin) join(r.a_begin, r.b_begin);
    for (; !r.empty() && a_[r.a_end - 1] == b_[r.b_end - 1]; --r.a_end, --r.b_end) join(r.a_end - 1, r.b_end - 1);
  }
  std::vector<std::pair<size_t, size_t>> once_in_both(const Range& r) const;
  void longest_common(const Range& r);

  const Keys& a_;
  const Keys& b_;
  Matched& out_;
};

std::vector<std::pair<size_t, size_t>> Pairing::once_in_both(const Range& r) const {
  struct Seen {
    uint32_t in_a = 0, in_b = 0;
    size_t at_b = 0;
  };
  std::unordered_map<uint32_t, Seen> seen;
  for (size_t i = r.a_begin; i < r.a_end; ++i) ++seen[a_[i]].in_a;
  for (size_t j = r.b_begin; j < r.b_end; ++j) {
    Seen& s = seen[b_[j]];
    ++s.in_b;
    s.at_b = j;
  }
  std::vector<std::pair<size_t, size_t>> pairs;  // in the order of A
  for (size_t i = r.a_begin; i < r.a_end; ++i)
    if (const Seen& s = seen[a_[i]]; s.in_a == 1 && s.in_b == 1) pairs.emplace_back(i, s.at_b);
  // The longest part of them that is in B's order too.
  std::vector<size_t> tails;  // indices into pairs, by length
  std::vector<size_t> before(pairs.size(), SIZE_MAX);
  for (size_t k = 0; k < pairs.size(); ++k) {
    const auto at = std::ranges::lower_bound(tails, pairs[k].second, {}, [&](size_t t) { return pairs[t].second; });
    if (at != tails.begin()) before[k] = *(at - 1);
    if (at == tails.end())
      tails.push_back(k);
    else
      *at = k;
  }
  std::vector<std::pair<size_t, size_t>> out;
  for (size_t k = tails.empty() ? SIZE_MAX : tails.back(); k != SIZE_MAX; k = before[k]) out.push_back(pairs[k]);
  std::ranges::reverse(out);
  return out;
}

void Pairing::longest_common(const Range& r) {
  const size_t rows = r.a_end - r.a_begin;
  const size_t columns = r.b_end - r.b_begin;
  constexpr size_t most = 16'000'000;  // cells; what is larger has nothing in common that is sure, and stays unpaired
  if (rows > most / columns) return;
  std::vector<uint32_t> length((rows + 1) * (columns + 1));
  const auto at = [&](size_t i, size_t j) -> uint32_t& { return length[i * (columns + 1) + j]; };
  for (size_t i = rows; i-- > 0;)
    for (size_t j = columns; j-- > 0;)
      at(i, j) = a_[r.a_begin + i] == b_[r.b_begin + j] ? at(i + 1, j + 1) + 1 : std::max(at(i + 1, j), at(i, j + 1));
  for (size_t i = 0, j = 0; i < rows && j < columns;) {
    if (a_[r.a_begin + i] == b_[r.b_begin + j])
      join(r.a_begin + i++, r.b_begin + j++);
    else if (at(i + 1, j) >= at(i, j + 1))
      ++i;
    else
      ++j;
  }
}

// What stands between pairs, paired by other keys.
void pair_between(const Keys& a, const Keys& b, Matched& out) {
  size_t from_a = 0;
  size_t from_b = 0;
  std::vector<Range> gaps;
  for (size_t i = 0; i <= a.size(); ++i) {
    if (i < a.size() && out.partner[i] == Matched::nobody) continue;
    const size_t j = i < a.size() ? out.partner[i] : b.size();
    if (from_a < i && from_b < j) gaps.push_back({from_a, i, from_b, j});
    from_a = i + 1;
    from_b = j + 1;
  }
  Pairing pairing(a, b, out);
  for (const Range& gap : gaps) pairing.pair(gap);
}

}  // namespace

Matched match_nodes(const Outline& a, const DrawOptions& options_a, const Outline& b, const DrawOptions& options_b) {
  Matched out;
  out.partner.assign(a.nodes.size(), Matched::nobody);
  out.partner_of_b.assign(b.nodes.size(), Matched::nobody);
  ValuePrinter constants;
  constants.node = [](const Node&) { return "_"; };
  const auto same = [&](const Node& n, const DrawOptions& o) {
    return call_text(n, o) + (n.kind() == NodeKind::placeholder ? n.name() : "") + arguments_text(n, constants) +
           val_text(n.meta.val);
  };
  const auto call = [](const Node& n, const DrawOptions& o) { return call_text(n, o); };
  const auto named = [](const Node& n, const DrawOptions&) { return n.name(); };
  const auto pair_by = [&](const auto& text) {
    Numbers number;
    Keys keys_a;
    Keys keys_b;
    for (const Node* n : a.nodes) keys_a.push_back(number(text(*n, options_a)));
    for (const Node* n : b.nodes) keys_b.push_back(number(text(*n, options_b)));
    pair_between(keys_a, keys_b, out);
  };
  pair_by(same);
  pair_by(call);
  pair_by(named);
  // Arguments are the same when their nodes stand for each other.
  std::unordered_map<const Node*, uint32_t> at;
  for (uint32_t i = 0; i < a.nodes.size(); ++i) at[a.nodes[i]] = i;
  for (uint32_t j = 0; j < b.nodes.size(); ++j) at[b.nodes[j]] = j;
  ValuePrinter in_a;
  in_a.node = [&](const Node& n) { return "%" + std::to_string(at.at(&n)); };
  ValuePrinter in_b;
  in_b.node = [&](const Node& n) {
    const uint32_t j = at.at(&n);
    return out.partner_of_b[j] == Matched::nobody ? "new " + n.name() : "%" + std::to_string(out.partner_of_b[j]);
  };
  out.changed.resize(a.nodes.size());
  for (size_t i = 0; i < a.nodes.size(); ++i) {
    if (out.partner[i] == Matched::nobody) continue;
    const Node& x = *a.nodes[i];
    const Node& y = *b.nodes[out.partner[i]];
    out.changed[i] = call_text(x, options_a) != call_text(y, options_b) ||
                     arguments_text(x, in_a) != arguments_text(y, in_b) || val_text(x.meta.val) != val_text(y.meta.val);
  }
  return out;
}

}  // namespace calque::draw
