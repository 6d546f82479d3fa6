// The values of a template, as Python has them: texts are immutable and count code points, lists and dicts are shared and are not
// changed once made (the sandbox forbids it), undefined remembers what was asked for. Values belong to one rendering and its thread.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "text/jinja/budget.h"

namespace calque::jinja {

class Render;
class Value;
struct Arguments;

enum class Kind : uint8_t {
  undefined,
  none,
  boolean,
  integer,
  floating,
  text,
  list,
  tuple,
  view,  // of a dict: its keys, values or items
  dict,
  range,
  iterator,  // what is there once: a generator
  names,     // a namespace
  function,  // also a method with its object, a macro
  loop,
  cycler,
};

// Deeper nesting is refused, so that walking and destroying need no more stack than there is.
constexpr uint32_t deepest_value = 400;

struct Object {
  Object(Budget& budget, size_t bytes) : budget_(budget), bytes_(bytes + 64) { budget_.take(bytes_); }
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  virtual ~Object() { budget_.give(bytes_); }
  uint32_t depth = 1;
  void contains(const Value& value);  // sets depth
  void grow(size_t bytes) {
    budget_.take(bytes);
    bytes_ += bytes;
  }

 protected:
  Budget& budget_;

 private:
  size_t bytes_;
};

struct Text;
struct List;
struct Dict;
struct Range;
struct Iterator;
struct Names;
struct Function;
struct Loop;
struct Cycler;
struct Undefined;

class Value {
 public:
  Value() : kind_(Kind::none), integer_(0) {}
  explicit Value(bool truth) : kind_(Kind::boolean), integer_(truth) {}
  explicit Value(int64_t number) : kind_(Kind::integer), integer_(number) {}
  explicit Value(double number) : kind_(Kind::floating), floating_(number) {}
  Value(Kind kind, std::shared_ptr<Object> object) : kind_(kind), integer_(0), object_(std::move(object)) {}

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool is_number() const { return kind_ == Kind::boolean || kind_ == Kind::integer || kind_ == Kind::floating; }
  bool is_integral() const { return kind_ == Kind::boolean || kind_ == Kind::integer; }
  // Of the kind that each says; integer also of a boolean, floating of any number.
  bool boolean() const { return integer_ != 0; }
  int64_t integer() const { return integer_; }
  double floating() const { return kind_ == Kind::floating ? floating_ : static_cast<double>(integer_); }
  const Text& text() const;
  const List& list() const;  // of a list, tuple or view
  const Dict& dict() const;
  const Range& range() const;
  Iterator& iterator() const;
  Names& names() const;
  const Function& function() const;
  Loop& loop() const;
  Cycler& cycler() const;
  const Undefined& undefined() const;
  const std::shared_ptr<Object>& object() const { return object_; }
  uint32_t depth() const { return object_ ? object_->depth : 0; }
  bool same_as(const Value& other) const;  // Python's "is"

 private:
  Kind kind_;
  union {
    int64_t integer_;
    double floating_;
  };
  std::shared_ptr<Object> object_;
};

struct Text : Object {
  Text(Budget& budget, std::string value, bool is_safe);
  std::string bytes;  // UTF-8
  size_t length;      // in code points
  bool safe;          // markup: not escaped again
  bool ascii() const { return length == bytes.size(); }
};

struct List : Object {
  enum class Style : uint8_t { plain, group, keys, values, items };  // group: of groupby, with names for its two parts
  List(Budget& budget, std::vector<Value> values, Style s);
  std::vector<Value> items;
  Style style;
};

struct Dict : Object {
  explicit Dict(Budget& budget) : Object(budget, 0) {}
  std::vector<std::pair<Value, Value>> items;
  const Value* find(std::string_view key) const;
  const Value* find(const Value& key) const;  // a TypeError when it cannot be a key
  void set(const Value& key, const Value& value);

 private:
  std::unordered_map<std::string, size_t> places_;  // by key, of a dict that is not small
};

struct Range : Object {
  Range(Budget& budget, int64_t from, int64_t to, int64_t by) : Object(budget, 0), start(from), stop(to), step(by) {}
  int64_t start, stop, step;
  int64_t size() const;
  Value at(int64_t i) const { return Value(start + i * step); }
};

struct Iterator : Object {
  Iterator(Budget& budget, std::function<bool(Value&)> step) : Object(budget, 64), next(std::move(step)) {}
  std::function<bool(Value&)> next;  // false at the end
};

struct Names : Object {
  explicit Names(Budget& budget) : Object(budget, 0) {}
  void set(const std::string& name, const Value& value) {
    const auto [place, is_new] = values.insert_or_assign(name, value);
    if (is_new) grow(name.size() + 100);
  }
  std::map<std::string, Value, std::less<>> values;
};

struct Function : Object {
  using Call = std::function<Value(Render&, const Arguments&)>;
  Function(Budget& budget, std::string its_name, Call its_call, const Value& self = {})
      : Object(budget, 64), name(std::move(its_name)), call(std::move(its_call)) {
    contains(self);
  }
  std::string name;
  Call call;
  std::string shown;  // how it prints
};

// Of {% for %}.
struct Loop : Object {
  Loop(Budget& budget, Value over, std::shared_ptr<Iterator> items, int64_t depth_0)
      : Object(budget, 0), iterable(std::move(over)), iterator(std::move(items)), depth0(depth_0) {
    contains(iterable);
  }
  bool advance(Value& item);
  int64_t length();
  const Value* peek();
  Value iterable;
  std::shared_ptr<Iterator> iterator;
  int64_t index0 = -1, depth0;
  std::optional<int64_t> known_length;
  std::optional<Value> after, current, before;
  std::optional<Value> changed;
  std::function<Value(Render&, const Value&)> recurse;

 private:
  bool ended_ = false;
};

struct Cycler : Object {
  Cycler(Budget& budget, std::vector<Value> values);
  std::vector<Value> items;
  size_t at = 0;
};

struct Undefined : Object {
  Undefined(Budget& budget, std::string its_message) : Object(budget, its_message.size()), message(std::move(its_message)) {}
  std::string message;
};

// What a call is given.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
  const Value* find(std::string_view name) const;
};

// The arguments of a call in the order of the parameters; null where none was given. A TypeError when they do not fit.
class Bound {
 public:
  Bound(const char* function, const Arguments& arguments, std::initializer_list<const char*> parameters,
        size_t required = 0);
  const Value* operator[](size_t i) const { return values_[i]; }
  bool has(size_t i) const { return values_[i] != nullptr; }

 private:
  std::vector<const Value*> values_;
};

[[noreturn]] void type_error(const std::string& message);
[[noreturn]] void fail(const std::string& message);

const char* type_name(const Value& value);  // Python's: "str", "dict", "NoneType", ...
bool truth(const Value& value);
std::optional<size_t> size_of(const Value& value);  // len(), where there is one

// Making values.
Value make_text(Budget& budget, std::string bytes, bool safe = false);
Value make_list(Budget& budget, std::vector<Value> items);
Value make_tuple(Budget& budget, std::vector<Value> items, List::Style style = List::Style::plain);
Value make_undefined(Budget& budget, std::string message);
Value make_function(Budget& budget, std::string name, Function::Call call, const Value& self = {});
Value make_iterator(Budget& budget, std::function<bool(Value&)> next, const Value& over);

// Walking. Undefined is empty; a TypeError when the value cannot be walked.
std::shared_ptr<Iterator> iterate(Budget& budget, const Value& value);
std::vector<Value> collect(Budget& budget, const Value& value);
void push(Budget& budget, std::vector<Value>& items, Value value);

}  // namespace calque::jinja
