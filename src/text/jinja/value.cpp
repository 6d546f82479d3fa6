#include "text/jinja/value.h"

#include <algorithm>
#include <cmath>

#include "calque/tensor/number_text.h"
#include "text/jinja/operators.h"
#include "text/utf8.h"

namespace calque::jinja {
namespace {

constexpr size_t small_dict = 8;

// Equal keys have equal texts, other keys have others.
std::string key_text(Budget& budget, const Value& key) {
  budget.spend(1);
  switch (key.kind()) {
    case Kind::text: return "t" + key.text().bytes;
    case Kind::none: return "n";
    case Kind::undefined: return "u";
    case Kind::boolean:
    case Kind::integer: return "i" + std::to_string(key.integer());
    case Kind::floating: {
      const double d = key.floating();
      if (d == std::floor(d) && std::fabs(d) < 9e18) return "i" + std::to_string(static_cast<int64_t>(d));
      return "f" + python_repr(d);
    }
    case Kind::tuple: {
      std::string out = "(";
      for (const Value& item : key.list().items) {
        const std::string part = key_text(budget, item);
        budget.spend_bytes(part.size());
        budget.require(2 * (out.size() + part.size()));
        out += std::to_string(part.size()) + ":" + part;
      }
      return out;
    }
    case Kind::list:
    case Kind::dict: type_error(std::string("unhashable type: '") + type_name(key) + "'");
    case Kind::view:
    case Kind::range:
    case Kind::iterator:
    case Kind::names:
    case Kind::function:
    case Kind::loop:
    case Kind::cycler: return "p" + std::to_string(reinterpret_cast<uintptr_t>(key.object().get()));
  }
  return "";
}

}  // namespace

void fail(const std::string& message) { throw UserError(message); }
void type_error(const std::string& message) { fail(message); }

void Object::contains(const Value& value) {
  if (value.depth() >= depth) depth = value.depth() + 1;
  if (depth > deepest_value) fail("values are nested deeper than " + std::to_string(deepest_value));
}

// ---- what a value holds -----------------------------------------------------------------------------------------------

const Text& Value::text() const { return static_cast<const Text&>(*object_); }
const List& Value::list() const { return static_cast<const List&>(*object_); }
const Dict& Value::dict() const { return static_cast<const Dict&>(*object_); }
const Range& Value::range() const { return static_cast<const Range&>(*object_); }
Iterator& Value::iterator() const { return static_cast<Iterator&>(*object_); }
Names& Value::names() const { return static_cast<Names&>(*object_); }
const Function& Value::function() const { return static_cast<const Function&>(*object_); }
Loop& Value::loop() const { return static_cast<Loop&>(*object_); }
Cycler& Value::cycler() const { return static_cast<Cycler&>(*object_); }
const Undefined& Value::undefined() const { return static_cast<const Undefined&>(*object_); }

bool Value::same_as(const Value& other) const {
  if (kind_ != other.kind_) return false;
  if (kind_ == Kind::none) return true;
  if (kind_ == Kind::boolean || kind_ == Kind::integer) return integer_ == other.integer_;
  if (kind_ == Kind::floating) return floating_ == other.floating_;
  // Python shares one object among equal short texts; which ones, it does not say.
  if (kind_ == Kind::text) return text().bytes == other.text().bytes;
  return object_ == other.object_;
}

Text::Text(Budget& budget, std::string value, bool is_safe)
    : Object(budget, value.size()), bytes(std::move(value)), length(count_utf8(bytes)), safe(is_safe) {}

List::List(Budget& budget, std::vector<Value> values, Style s)
    : Object(budget, values.size() * sizeof(Value)), items(std::move(values)), style(s) {
  for (const Value& item : items) contains(item);
}

Cycler::Cycler(Budget& budget, std::vector<Value> values)
    : Object(budget, values.size() * sizeof(Value)), items(std::move(values)) {
  for (const Value& item : items) contains(item);
}

int64_t Range::size() const {
  if (step > 0 ? start >= stop : start <= stop) return 0;
  const auto distance = step > 0 ? static_cast<uint64_t>(stop) - static_cast<uint64_t>(start)
                                 : static_cast<uint64_t>(start) - static_cast<uint64_t>(stop);
  const uint64_t by = step > 0 ? static_cast<uint64_t>(step) : ~static_cast<uint64_t>(step) + 1;
  return static_cast<int64_t>(std::min<uint64_t>((distance - 1) / by + 1, INT64_MAX));
}

const Value* Dict::find(std::string_view key) const {
  if (items.size() > small_dict) {
    const auto found = places_.find("t" + std::string(key));
    return found == places_.end() ? nullptr : &items[found->second].second;
  }
  for (const auto& [k, v] : items)
    if (k.is(Kind::text) && k.text().bytes == key) return &v;
  return nullptr;
}

const Value* Dict::find(const Value& key) const {
  if (key.is(Kind::text)) return find(key.text().bytes);
  const std::string wanted = key_text(budget_, key);
  if (items.size() > small_dict) {
    const auto found = places_.find(wanted);
    return found == places_.end() ? nullptr : &items[found->second].second;
  }
  for (const auto& [k, v] : items)
    if (key_text(budget_, k) == wanted) return &v;
  return nullptr;
}

void Dict::set(const Value& key, const Value& value) {
  contains(key);
  contains(value);
  if (const Value* found = find(key)) {
    const_cast<Value&>(*found) = value;
    return;
  }
  grow(2 * sizeof(Value));
  items.emplace_back(key, value);
  if (items.size() == small_dict + 1)
    for (size_t i = 0; i < items.size(); ++i) places_.emplace(key_text(budget_, items[i].first), i);
  else if (items.size() > small_dict)
    places_.emplace(key_text(budget_, key), items.size() - 1);
}

// ---- loops ------------------------------------------------------------------------------------------------------------

const Value* Loop::peek() {
  if (after) return &*after;
  Value item;
  if (ended_ || !iterator->next(item)) {
    ended_ = true;
    return nullptr;
  }
  after = std::move(item);
  return &*after;
}

bool Loop::advance(Value& item) {
  if (!peek()) return false;
  before = std::move(current);
  current = std::move(after);
  after.reset();
  ++index0;
  item = *current;
  return true;
}

int64_t Loop::length() {
  if (known_length) return *known_length;
  if (const auto size = size_of(iterable)) {
    known_length = static_cast<int64_t>(*size);
  } else {
    auto rest = std::make_shared<std::vector<Value>>();
    for (Value item; iterator->next(item);) rest->push_back(item);
    known_length = static_cast<int64_t>(rest->size()) + index0 + 1 + (after ? 1 : 0);
    iterator->next = [rest, at = size_t{0}](Value& item) mutable {
      if (at == rest->size()) return false;
      item = (*rest)[at++];
      return true;
    };
  }
  return *known_length;
}

// ---- arguments --------------------------------------------------------------------------------------------------------

const Value* Arguments::find(std::string_view name) const {
  for (const auto& [key, value] : named)
    if (key == name) return &value;
  return nullptr;
}

Bound::Bound(const char* function, const Arguments& arguments, std::initializer_list<const char*> parameters,
             size_t required) {
  const std::string called = std::string(function) + "()";
  if (arguments.positional.size() > parameters.size())
    type_error(called + " takes at most " + std::to_string(parameters.size()) + " arguments (" +
               std::to_string(arguments.positional.size()) + " given)");
  for (const Value& value : arguments.positional) values_.push_back(&value);
  values_.resize(parameters.size());
  for (const auto& [name, value] : arguments.named) {
    const auto found = std::find_if(parameters.begin(), parameters.end(), [&](const char* p) { return name == p; });
    if (found == parameters.end()) type_error(called + " got an unexpected keyword argument '" + name + "'");
    const auto i = static_cast<size_t>(found - parameters.begin());
    if (values_[i]) type_error(called + " got multiple values for argument '" + name + "'");
    values_[i] = &value;
  }
  for (size_t i = 0; i < required; ++i)
    if (!values_[i]) type_error(called + " missing required argument '" + parameters.begin()[i] + "'");
}

// ---- questions --------------------------------------------------------------------------------------------------------

const char* type_name(const Value& value) {
  switch (value.kind()) {
    case Kind::undefined: return "Undefined";
    case Kind::none: return "NoneType";
    case Kind::boolean: return "bool";
    case Kind::integer: return "int";
    case Kind::floating: return "float";
    case Kind::text: return value.text().safe ? "Markup" : "str";
    case Kind::list: return "list";
    case Kind::tuple: return "tuple";
    case Kind::view:
      switch (value.list().style) {
        case List::Style::keys: return "dict_keys";
        case List::Style::values: return "dict_values";
        case List::Style::items: return "dict_items";
        case List::Style::plain:
        case List::Style::group: return "tuple";
      }
      return "";
    case Kind::dict: return "dict";
    case Kind::range: return "range";
    case Kind::iterator: return "generator";
    case Kind::names: return "Namespace";
    case Kind::function: return "function";
    case Kind::loop: return "LoopContext";
    case Kind::cycler: return "Cycler";
  }
  return "";
}

std::optional<size_t> size_of(const Value& value) {
  switch (value.kind()) {
    case Kind::undefined: return 0;
    case Kind::text: return value.text().length;
    case Kind::list:
    case Kind::tuple:
    case Kind::view: return value.list().items.size();
    case Kind::dict: return value.dict().items.size();
    case Kind::range: return static_cast<size_t>(value.range().size());
    case Kind::loop: return static_cast<size_t>(value.loop().length());
    case Kind::none:
    case Kind::boolean:
    case Kind::integer:
    case Kind::floating:
    case Kind::iterator:
    case Kind::names:
    case Kind::function:
    case Kind::cycler: return std::nullopt;
  }
  return std::nullopt;
}

bool truth(const Value& value) {
  if (value.is(Kind::none)) return false;
  if (value.is(Kind::floating)) return value.floating() != 0;
  if (value.is_integral()) return value.integer() != 0;
  const auto size = size_of(value);
  return !size || *size != 0;
}

// ---- making -----------------------------------------------------------------------------------------------------------

Value make_text(Budget& budget, std::string bytes, bool safe) {
  budget.spend_bytes(bytes.size());
  return {Kind::text, std::make_shared<Text>(budget, std::move(bytes), safe)};
}
Value make_list(Budget& budget, std::vector<Value> items) {
  return {Kind::list, std::make_shared<List>(budget, std::move(items), List::Style::plain)};
}
Value make_tuple(Budget& budget, std::vector<Value> items, List::Style style) {
  return {Kind::tuple, std::make_shared<List>(budget, std::move(items), style)};
}
Value make_undefined(Budget& budget, std::string message) {
  return {Kind::undefined, std::make_shared<Undefined>(budget, std::move(message))};
}
Value make_function(Budget& budget, std::string name, Function::Call call, const Value& self) {
  return {Kind::function, std::make_shared<Function>(budget, std::move(name), std::move(call), self)};
}
Value make_iterator(Budget& budget, std::function<bool(Value&)> next, const Value& over) {
  auto iterator = std::make_shared<Iterator>(budget, std::move(next));
  iterator->contains(over);
  return {Kind::iterator, std::move(iterator)};
}

// ---- walking ----------------------------------------------------------------------------------------------------------

namespace {

// The items of what has so many, by number.
template <class At>
std::shared_ptr<Iterator> numbered(Budget& budget, const Value& value, size_t size, At at) {
  auto out = std::make_shared<Iterator>(budget, [&budget, value, size, at, i = size_t{0}](Value& item) mutable {
    if (i == size) return false;
    budget.spend(1);
    item = at(value, i++);
    return true;
  });
  out->contains(value);
  return out;
}

}  // namespace

std::shared_ptr<Iterator> iterate(Budget& budget, const Value& value) {
  const auto sized = [&](auto at) { return numbered(budget, value, size_of(value).value_or(0), at); };
  switch (value.kind()) {
    case Kind::undefined: return std::make_shared<Iterator>(budget, [](Value&) { return false; });
    case Kind::list:
    case Kind::tuple:
    case Kind::view: return sized([](const Value& v, size_t i) { return v.list().items[i]; });
    case Kind::dict: return sized([](const Value& v, size_t i) { return v.dict().items[i].first; });
    case Kind::range: return sized([](const Value& v, size_t i) { return v.range().at(static_cast<int64_t>(i)); });
    case Kind::text: {
      auto out = std::make_shared<Iterator>(budget, [&budget, value, at = size_t{0}](Value& item) mutable {
        const std::string& bytes = value.text().bytes;
        if (at == bytes.size()) return false;
        const Utf8Char c = decode_utf8(bytes.data() + at);
        item = make_text(budget, bytes.substr(at, c.size));
        at += c.size;
        return true;
      });
      out->contains(value);
      return out;
    }
    case Kind::iterator: return std::static_pointer_cast<Iterator>(value.object());
    case Kind::loop:
    case Kind::none:
    case Kind::boolean:
    case Kind::integer:
    case Kind::floating:
    case Kind::names:
    case Kind::function:
    case Kind::cycler: break;
  }
  type_error(std::string("'") + type_name(value) + "' object is not iterable");
}

void push(Budget& budget, std::vector<Value>& items, Value value) {
  if (items.size() == items.capacity()) budget.require(3 * items.size() * sizeof(Value));
  items.push_back(std::move(value));
}

std::vector<Value> collect(Budget& budget, const Value& value) {
  if (value.is(Kind::list) || value.is(Kind::tuple) || value.is(Kind::view)) {
    const auto& items = value.list().items;
    budget.spend(items.size());
    budget.require(items.size() * sizeof(Value));
    return items;
  }
  std::vector<Value> out;
  const auto iterator = iterate(budget, value);
  for (Value item; iterator->next(item);) push(budget, out, std::move(item));
  return out;
}

}  // namespace calque::jinja
