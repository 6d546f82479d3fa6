// Dims, hints and the tree they stand in: plain values and their texts.
#include <algorithm>
#include <cctype>

#include "calque/base/error.h"
#include "calque/export/dynamic_shapes.h"
#include "sym/linear_text.h"

namespace calque {

namespace {

constexpr int64_t unbounded = ValueRange::unbounded_above;

std::string text(const std::optional<int64_t>& bound) { return bound ? std::to_string(*bound) : "None"; }

bool is_identifier(std::string_view name) {
  const auto letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || (c & 0x80) != 0; };
  return !name.empty() && letter(name[0]) &&
         std::ranges::all_of(name, [&](char c) { return letter(c) || std::isdigit(static_cast<unsigned char>(c)); });
}

[[noreturn]] void refuse_bound(const Dim& dim, const char* which, const std::string& limit) {
  const Dim& root = dim.root();
  const bool lower = which[1] == 'i';
  throw UserError("Expected derived " + std::string(which) + " value of " + dim.name() + " to be " + limit +
                  ". Please specify an appropriate " + which + " value for " + root.name() + " (currently " +
                  std::to_string(lower ? root.min() : root.max()) + ").");
}

}  // namespace

DimHint DimHint::operator()(std::optional<int64_t> min_size, std::optional<int64_t> max_size) const {
  if (bounded) throw UserError(str() + " has bounds already; give them to Dim::AUTO, Dim::DYNAMIC or Dim::STATIC");
  if (min_size && *min_size < 0) throw UserError("min must be non-negative, got " + std::to_string(*min_size));
  if (max_size && *max_size < 0) throw UserError("max must be non-negative, got " + std::to_string(*max_size));
  if (min_size && max_size && *min_size > *max_size)
    throw UserError("min must be <= max, got min=" + std::to_string(*min_size) + ", max=" + std::to_string(*max_size));
  return {type, min_size, max_size, true};
}

std::string DimHint::str() const {
  std::string out = "DimHint(";
  switch (type) {
    case Type::automatic: out += "AUTO"; break;
    case Type::dynamic: out += "DYNAMIC"; break;
    case Type::fixed: out += "STATIC"; break;
  }
  if (min) out += ", min=" + std::to_string(*min);
  if (max) out += ", max=" + std::to_string(*max);
  return out + ")";
}

Dim::Dim(std::string name, std::optional<int64_t> min, std::optional<int64_t> max)
    : name_(std::move(name)), min_(min.value_or(0)), max_(max.value_or(unbounded)) {
  if (max_ <= min_) throw UserError("Cannot create Dim with inconsistent min=" + text(min) + ", max=" + text(max));
  if (!is_identifier(name_)) throw UserError("Dim name must be a valid identifier, got " + name_);
}

Dim Dim::derive(int64_t multiplier, int64_t offset) const {
  if (multiplier <= 0)
    throw UserError("Attempted to multiply " + std::to_string(multiplier) + " with " + name_ +
                    ", where a positive integer was expected. (Only increasing linear operations with integer coefficients "
                    "are supported.)");
  Dim out;
  out.root_ = root_ ? root_ : std::make_shared<const Dim>(*this);
  if (__builtin_mul_overflow(multiplier_, multiplier, &out.multiplier_) ||
      __builtin_mul_overflow(offset_, multiplier, &out.offset_) || __builtin_add_overflow(out.offset_, offset, &out.offset_))
    throw UserError("the dimension derived from " + name_ + " has coefficients that are too large");
  out.name_ = linear_text({out.root_->name_, out.multiplier_, out.offset_});
  return out;
}

int64_t Dim::min() const {
  if (!root_) return min_;
  int64_t out;
  if (__builtin_mul_overflow(root_->min_, multiplier_, &out) || __builtin_add_overflow(out, offset_, &out) || out < 0)
    refuse_bound(*this, "min", ">= 0");
  return out;
}

int64_t Dim::max() const {
  if (!root_) return max_;
  if (root_->max_ == unbounded) return unbounded;
  int64_t out;
  if (__builtin_mul_overflow(root_->max_, multiplier_, &out) || __builtin_add_overflow(out, offset_, &out) ||
      out > unbounded - 1)
    refuse_bound(*this, "max", "<= " + std::to_string(unbounded - 1));
  return out;
}

std::string Dim::str() const {
  if (root_) return name_;
  std::string out = "Dim('" + name_ + "'";
  if (min_ != 2) out += ", min=" + std::to_string(min_);  // 2 is what tracing assumes of every size
  if (max_ != unbounded) out += ", max=" + std::to_string(max_);
  return out + ")";
}

std::vector<Dim> dims(const std::vector<std::string>& names, std::optional<int64_t> min, std::optional<int64_t> max) {
  std::vector<Dim> out;
  for (const std::string& name : names) out.emplace_back(name, min, max);
  return out;
}

DynamicShapes DynamicShapes::tuple(Items items) {
  DynamicShapes out;
  out.v_ = std::make_shared<const Sequence>(Sequence{false, std::move(items)});
  return out;
}
DynamicShapes DynamicShapes::list(Items items) {
  DynamicShapes out;
  out.v_ = std::make_shared<const Sequence>(Sequence{true, std::move(items)});
  return out;
}
DynamicShapes DynamicShapes::dict(Entries entries) {
  for (const auto& [key, entry] : entries)
    if (key.kind() != Value::Kind::string && key.kind() != Value::Kind::integer)
      throw UserError("dynamic_shapes: a key must be a string or an integer, found " + key.str());
  DynamicShapes out;
  out.v_ = std::make_shared<const Entries>(std::move(entries));
  return out;
}

DynamicShapes::Kind DynamicShapes::kind() const {
  if (const auto* sequence = std::get_if<std::shared_ptr<const Sequence>>(&v_))
    return (*sequence)->is_list ? Kind::list : Kind::tuple;
  if (std::holds_alternative<std::monostate>(v_)) return Kind::none;
  if (std::holds_alternative<int64_t>(v_)) return Kind::integer;
  if (std::holds_alternative<DimHint>(v_)) return Kind::hint;
  if (std::holds_alternative<Dim>(v_)) return Kind::dim;
  return Kind::dict;
}

const DynamicShapes::Items& DynamicShapes::items() const { return std::get<std::shared_ptr<const Sequence>>(v_)->items; }
const DynamicShapes::Entries& DynamicShapes::entries() const { return *std::get<std::shared_ptr<const Entries>>(v_); }

bool DynamicShapes::empty() const {
  return is_none() || (is_sequence() && items().empty()) || (kind() == Kind::dict && entries().empty());
}

const DynamicShapes* DynamicShapes::find(const Value& key) const {
  for (const auto& [k, entry] : entries())
    if (k.equals(key)) return &entry;
  return nullptr;
}

std::string DynamicShapes::str() const {
  std::string out;
  switch (kind()) {
    case Kind::none: return "None";
    case Kind::integer: return std::to_string(integer());
    case Kind::hint: return hint().str();
    case Kind::dim: return dim().str();
    case Kind::tuple:
    case Kind::list:
      for (const DynamicShapes& item : items()) out += (out.empty() ? "" : ", ") + item.str();
      if (kind() == Kind::list) return "[" + out + "]";
      return "(" + out + (items().size() == 1 ? ",)" : ")");
    case Kind::dict:
      for (const auto& [key, entry] : entries()) out += (out.empty() ? "" : ", ") + key.str() + ": " + entry.str();
      return "{" + out + "}";
  }
  throw InternalError("DynamicShapes: unknown kind");
}

bool DynamicShapes::equals(const DynamicShapes& other) const {
  if (kind() != other.kind()) return false;
  switch (kind()) {
    case Kind::none: return true;
    case Kind::integer: return integer() == other.integer();
    case Kind::hint: return hint() == other.hint();
    case Kind::dim: return dim().name() == other.dim().name() && dim().root().str() == other.dim().root().str();
    case Kind::tuple:
    case Kind::list:
      return std::ranges::equal(items(), other.items(),
                                [](const DynamicShapes& a, const DynamicShapes& b) { return a.equals(b); });
    case Kind::dict:
      return entries().size() == other.entries().size() && std::ranges::all_of(entries(), [&](const auto& entry) {
               const DynamicShapes* same = other.find(entry.first);
               return same != nullptr && same->equals(entry.second);
             });
  }
  throw InternalError("DynamicShapes: unknown kind");
}

}  // namespace calque
