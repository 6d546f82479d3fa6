#include "calque/compile/same.h"

#include <algorithm>
#include <cmath>

#include "calque/base/error.h"
#include "calque/op/tree.h"

namespace calque {
namespace {

using Kind = Value::Kind;

bool is_number_or_tensor(const Value& v) { return v.is_tensor() || v.kind() == Kind::floating; }

std::string kind_of(const Value& v) { return std::string(Value::kind_name(v.kind())); }

class SameTrees {
 public:
  explicit SameTrees(const SameOptions& options) : options_(options) {}

  SameResult compare(const Value& a, const Value& b, const Value& reference) {
    if (a.is_sequence()) return compare_sequences(a, b, reference);
    if (a.kind() == Kind::structure) return compare_structures(a, b, reference);
    if (a.kind() == Kind::dict) return compare_dicts(a, b, reference);
    if (is_number_or_tensor(a)) return compare_numbers(a, b, reference);
    if (options_.ignore_non_float || a.equals(b)) return {};
    return differ(a.str() + " against " + b.str());
  }

 private:
  [[noreturn]] void refuse(const std::string& expected, const std::string& found) const {
    throw UserError("same: " + (path_.empty() ? "" : "at " + keystr(path_) + ": ") + "expected " + expected + ", found " +
                    found + "; values of another structure have no difference to measure");
  }
  SameResult differ(std::string reason) const { return {false, keystr(path_), std::move(reason), {}}; }

  SameResult at(TreeKey key, const Value& a, const Value& b, const Value& reference) {
    if (path_.size() > TreeSpec::max_depth) refuse("at most 500 levels", "more");
    path_.push_back(std::move(key));
    SameResult result = compare(a, b, reference);
    path_.pop_back();
    return result;
  }

  // The reference's item, which must be there when there is a reference.
  const Value& item(const Value& reference, size_t i, size_t of) const {
    if (reference.is_none()) return none_;
    const Values* items = reference.is_sequence()               ? &reference.to_items()
                          : reference.kind() == Kind::structure ? &reference.to_struct().items
                                                                : nullptr;
    if (!items || items->size() != of) refuse("a reference of " + std::to_string(of) + " items", reference.str());
    return (*items)[i];
  }

  SameResult compare_sequences(const Value& a, const Value& b, const Value& reference) {
    if (!b.is_sequence()) refuse("a list or a tuple, as the first has it", "a " + kind_of(b));
    const Values &xs = a.to_items(), &ys = b.to_items();
    if (xs.size() != ys.size())
      return differ("length " + std::to_string(xs.size()) + " against " + std::to_string(ys.size()));
    for (size_t i = 0; i < xs.size(); ++i)
      if (SameResult r = at({TreeKey::Kind::index, static_cast<int64_t>(i)}, xs[i], ys[i], item(reference, i, xs.size()));
          !r)
        return r;
    return {};
  }

  SameResult compare_structures(const Value& a, const Value& b, const Value& reference) {
    const StructValue& x = a.to_struct();
    if (b.kind() != Kind::structure || b.to_struct().type != x.type)
      refuse("a " + x.type, b.kind() == Kind::structure ? "a " + b.to_struct().type : "a " + kind_of(b));
    const StructValue& y = b.to_struct();
    if (x.fields != y.fields || x.items.size() != y.items.size()) refuse("the fields of " + a.str(), b.str());
    const bool answers = x.type.ends_with("QuestionAnsweringModelOutput");
    const bool has_loss = answers && !x.fields.empty() && x.fields[0] == "loss" && !x.items[0].is_none();
    for (size_t i = 0; i < x.items.size(); ++i) {
      if (has_loss && i > 0) break;
      const std::string field = i < x.fields.size() ? x.fields[i] : std::to_string(i);
      if (SameResult r = at({TreeKey::Kind::attribute, field}, x.items[i], y.items[i], item(reference, i, x.items.size()));
          !r)
        return r;
    }
    return {};
  }

  SameResult compare_dicts(const Value& a, const Value& b, const Value& reference) {
    if (b.kind() != Kind::dict) refuse("a dict, as the first has it", "a " + kind_of(b));
    const auto find = [](const DictValue& in, const Value& key) -> const Value* {
      const auto found =
          std::find_if(in.items.begin(), in.items.end(), [&](const auto& entry) { return entry.first.equals(key); });
      return found == in.items.end() ? nullptr : &found->second;
    };
    const DictValue &x = a.to_dict(), &y = b.to_dict();
    std::vector<std::pair<std::string, const Value*>> sorted;
    for (const auto& [key, value] : x.items) {
      if (!find(y, key)) refuse("the key " + key.str(), b.str());
      sorted.emplace_back(key.str(), &key);
    }
    if (x.items.size() != y.items.size()) refuse("the keys of " + a.str(), b.str());
    std::sort(sorted.begin(), sorted.end());
    for (const auto& [text, key] : sorted) {
      const Value* expected = &none_;
      if (!reference.is_none()) {
        expected = reference.kind() == Kind::dict ? find(reference.to_dict(), *key) : nullptr;
        if (!expected) refuse("a reference with the key " + text, reference.str());
      }
      if (SameResult r = at({TreeKey::Kind::mapping, *key}, *find(x, *key), *find(y, *key), *expected); !r) return r;
    }
    return {};
  }

  Tensor tensor_of(const Value& v) const {
    if (v.is_tensor()) {
      if (v.to_tensor().is_fake()) refuse("tensors with data", "a fake one");
      return v.to_tensor();
    }
    if (v.kind() != Kind::floating && v.kind() != Kind::integer && v.kind() != Kind::boolean)
      refuse("a tensor or a number", "a " + kind_of(v));
    const DType dtype = v.kind() == Kind::floating  ? DType::float32
                        : v.kind() == Kind::integer ? DType::int64
                                                    : DType::bool_;
    return Tensor(wrapped_scalar(v.to_scalar(), dtype));
  }

  SameResult compare_numbers(const Value& a, const Value& b, const Value& reference) {
    SameResult result;
    result.tensor =
        compare_tensors(tensor_of(a), tensor_of(b), reference.is_none() ? Tensor() : tensor_of(reference), options_);
    if (result.tensor.same) return result;
    result.same = false;
    result.path = keystr(path_);
    result.reason = result.tensor.reason;
    return result;
  }

  const SameOptions& options_;
  const Value none_;
  KeyPath path_;
};

}  // namespace

SameResult same(const Value& a, const Value& b, const Value& reference, const SameOptions& options) {
  return SameTrees(options).compare(a, b, reference);
}

}  // namespace calque
