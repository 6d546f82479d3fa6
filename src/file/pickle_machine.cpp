#include "file/pickle_machine.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "calque/base/error.h"

namespace calque {
namespace {

using Kind = PickleObject::Kind;

// More than what torch.save writes ever needs (about one for seven bytes); bounds the memory that a hostile file can
// ask for. A file without a zip has its storages behind the pickle, so that its size alone bounds nothing.
size_t max_objects(size_t bytes) { return 500'000 + std::min<size_t>(bytes / 4, 9'500'000); }

// The plain objects that a pickle names with a byte or two, each made once, as Python does: nobody changes them.
struct Shared {
  PickleObject none, no, yes, numbers[256];
  Shared() {
    no.kind = yes.kind = Kind::boolean;
    yes.boolean = true;
    for (int i = 0; i < 256; ++i) {
      numbers[i].kind = Kind::integer;
      numbers[i].integer = i;
    }
  }
};
Shared& shared() {
  static Shared objects;
  return objects;
}

double big_endian_double(std::string_view s) {
  uint64_t bits = 0;
  for (const char c : s) bits = bits << 8 | static_cast<unsigned char>(c);
  double value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// Longer numbers than this say nothing more.
double decimal_double(std::string_view s) { return std::strtod(std::string(s.substr(0, 64)).c_str(), nullptr); }

}  // namespace

void PickleMachine::fail(const std::string& why) const {
  throw UserError(ErrorKind::bad_file,
                  what_ + ": not a pickle that can be read, at byte " + std::to_string(at_) + ": " + why);
}

PickleObject* PickleMachine::make(Kind kind) {
  if (objects_.size() >= max_objects(bytes_.size()))
    fail("it has more than " + std::to_string(objects_.size()) + " objects");
  PickleObject& o = objects_.emplace_back();
  o.kind = kind;
  return &o;
}
PickleObject* PickleMachine::make_text(Kind kind, std::string_view text) {
  PickleObject* o = make(kind);
  o->text = text;
  return o;
}

std::string_view PickleMachine::take(uint64_t count) {
  if (count > bytes_.size() - at_)
    fail("it needs " + std::to_string(count) + " bytes more, " + std::to_string(bytes_.size() - at_) + " are left");
  const auto* p = reinterpret_cast<const char*>(bytes_.data()) + at_;
  at_ += count;
  return {p, count};
}
template <class T>
T PickleMachine::read() {
  T value;
  std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
  return value;
}
template int64_t PickleMachine::read<int64_t>();
void PickleMachine::skip(size_t count) { take(count); }

std::string_view PickleMachine::line() {
  const auto* begin = reinterpret_cast<const char*>(bytes_.data()) + at_;
  const void* end = bytes_.size() == at_ ? nullptr : std::memchr(begin, '\n', bytes_.size() - at_);
  if (!end) fail("a line without an end");
  const std::string_view text(begin, static_cast<size_t>(static_cast<const char*>(end) - begin));
  at_ += text.size() + 1;
  return text;
}

PickleObject* PickleMachine::top() {
  if (stack_.empty() || (!marks_.empty() && marks_.back() == stack_.size())) fail("the stack is empty");
  return stack_.back();
}
PickleObject* PickleMachine::pop() {
  PickleObject* o = top();
  stack_.pop_back();
  return o;
}
std::vector<PickleObject*> PickleMachine::pop_to_mark() {
  if (marks_.empty()) fail("a mark is missing");
  std::vector<PickleObject*> items(stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back()), stack_.end());
  stack_.resize(marks_.back());
  marks_.pop_back();
  return items;
}
std::vector<PickleObject*> PickleMachine::pop_last(size_t count) {
  std::vector<PickleObject*> items(count);
  for (size_t i = count; i-- > 0;) items[i] = pop();
  return items;
}
void PickleMachine::to_tuple(size_t count) {
  PickleObject* o = make(Kind::tuple);
  o->items = pop_last(count);
  push(o);
}

void PickleMachine::put(uint64_t index) { memo_[index] = top(); }
void PickleMachine::get(uint64_t index) {
  const auto it = memo_.find(index);
  if (it == memo_.end()) fail("it refers to object " + std::to_string(index) + ", which it has not kept");
  push(it->second);
}

void PickleMachine::long_integer(std::string_view little_endian) {
  if (little_endian.size() > 8) fail("an integer of " + std::to_string(little_endian.size()) + " bytes; 8 are supported");
  uint64_t bits = 0;
  for (size_t i = 0; i < little_endian.size(); ++i)
    bits |= uint64_t{static_cast<unsigned char>(little_endian[i])} << (8 * i);
  const size_t width = 8 * little_endian.size();
  if (width > 0 && width < 64 && (bits >> (width - 1) & 1U) != 0) bits |= ~uint64_t{0} << width;
  push_integer(static_cast<int64_t>(bits));
}

void PickleMachine::add_items(const std::vector<PickleObject*>& items) {
  PickleObject* o = top();
  if (o->kind == Kind::reduced) {  // a subclass of list or dict, or an object with items of its own
    PickleObject* more = make(Kind::list);
    more->items = items;
    o->items.push_back(more);
    return;
  }
  o->items.insert(o->items.end(), items.begin(), items.end());
}

void PickleMachine::reduce(bool is_class) {
  PickleObject* args = pop();
  PickleObject* callable = pop();
  if (args->kind != Kind::tuple) fail("a call whose arguments are no tuple");
  if (callable->kind != Kind::global) fail("a call of something that is no name");
  PickleObject* o = make(Kind::reduced);
  o->made_by_class = is_class;
  o->items = {callable, args};
  push(o);
}
void PickleMachine::build() {
  PickleObject* state = pop();
  PickleObject* o = top();
  // What a state dict carries beside its items is of no use here.
  if (o->kind == Kind::reduced)
    o->items.push_back(state);
  else if (o->kind != Kind::dict)
    fail("it sets the state of something that has none");
}

void PickleMachine::global(std::string_view module, std::string_view name) {
  if (module.size() + name.size() > max_pickled_name) fail("a name of more than 1000 characters");
  push(make_text(Kind::global, texts_.emplace_back(std::string(module) + " " + std::string(name))));
}

void PickleMachine::push_integer(int64_t value) {
  PickleObject* o = make(Kind::integer);
  o->integer = value;
  push(o);
}
void PickleMachine::push_floating(double value) {
  PickleObject* o = make(Kind::floating);
  o->floating = value;
  push(o);
}
void PickleMachine::push_text(Kind kind, uint64_t size) { push(make_text(kind, take(size))); }

// Protocol 0 writes numbers in decimal, and the booleans as 00 and 01.
void PickleMachine::decimal_integer() {
  std::string_view s = line();
  if (s.ends_with('L')) s.remove_suffix(1);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), value);
  if (error != std::errc() || end != s.data() + s.size()) fail("a decimal integer that is not a number of 64 bits");
  push_integer(value);
}
void PickleMachine::decimal_integer_or_boolean() {
  const size_t before = at_;
  const std::string_view s = line();
  if (s == "00" || s == "01") return push(s == "01" ? &shared().yes : &shared().no);
  at_ = before;
  decimal_integer();
}
uint64_t PickleMachine::decimal_index() {
  const std::string_view s = line();
  uint64_t index = 0;
  if (std::from_chars(s.data(), s.data() + s.size(), index).ec != std::errc()) fail("a place in the memo that is no number");
  return index;
}

void PickleMachine::collect(Kind kind) {
  std::vector<PickleObject*> items = pop_to_mark();
  if (kind == Kind::dict && items.size() % 2 != 0) fail("a dict with a key that has no value");
  PickleObject* o = make(kind);
  o->items = std::move(items);
  push(o);
}
void PickleMachine::append(const std::vector<PickleObject*>& items) {
  if (top()->kind != Kind::list && top()->kind != Kind::reduced) fail("it appends to something that is no list");
  add_items(items);
}
void PickleMachine::set_items(const std::vector<PickleObject*>& items) {
  if (items.size() % 2 != 0) fail("a dict with a key that has no value");
  if (top()->kind != Kind::dict && top()->kind != Kind::reduced) fail("it sets items of something that is no dict");
  add_items(items);
}
void PickleMachine::add_to_set(const std::vector<PickleObject*>& items) {
  if (top()->kind != Kind::set) fail("it adds to something that is no set");
  add_items(items);
}
void PickleMachine::drop() {
  if (!marks_.empty() && marks_.back() == stack_.size())
    marks_.pop_back();
  else
    pop();
}

void PickleMachine::global_from_lines() {
  const std::string_view module = line();
  global(module, line());
}
void PickleMachine::global_from_stack() {
  const PickleObject* name = pop();
  const PickleObject* module = pop();
  if (name->kind != Kind::string || module->kind != Kind::string) fail("a name that is no text");
  global(module->text, name->text);
}
void PickleMachine::persistent() {
  PickleObject* id = pop();
  PickleObject* o = make(Kind::persistent);
  o->items = {id};
  push(o);
}

void PickleMachine::refuse(unsigned char opcode) {
  char text[8];
  std::snprintf(text, sizeof text, "0x%02x", opcode);
  --at_;
  fail(std::string("the opcode ") + text + " is not among those that make plain data");
}

PickleObject* PickleMachine::run() {
  stack_.clear();
  marks_.clear();
  memo_.clear();
  while (true) {
    const unsigned char opcode = read<unsigned char>();
    if (opcode == '.') return pop();  // STOP
    execute(opcode);
  }
}

// The comments are the names that Python's pickletools gives.
void PickleMachine::execute(unsigned char opcode) {
  const auto byte = [&] { return read<unsigned char>(); };
  switch (opcode) {
    case 0x80:  // PROTO
      if (byte() > 5) fail("a protocol above 5");
      return;
    case 0x95: return skip(8);                                    // FRAME
    case '(': return marks_.push_back(stack_.size());             // MARK
    case '0': return drop();                                      // POP
    case '1': return static_cast<void>(pop_to_mark());            // POP_MARK
    case '2': return push(top());                                 // DUP
    case 'N': return push(&shared().none);                        // NONE
    case 0x88: return push(&shared().yes);                        // NEWTRUE
    case 0x89: return push(&shared().no);                         // NEWFALSE
    case 'J': return long_integer(take(4));                       // BININT
    case 'K': return push(&shared().numbers[byte()]);             // BININT1
    case 'M': return push_integer(read<uint16_t>());              // BININT2
    case 'I': return decimal_integer_or_boolean();                // INT
    case 'L': return decimal_integer();                           // LONG
    case 0x8a: return long_integer(take(byte()));                 // LONG1
    case 0x8b: return long_integer(take(read<uint32_t>()));       // LONG4
    case 'G': return push_floating(big_endian_double(take(8)));   // BINFLOAT
    case 'F': return push_floating(decimal_double(line()));       // FLOAT
    case 'V': return push(make_text(Kind::string, line()));       // UNICODE
    case 'X': return push_text(Kind::string, read<uint32_t>());   // BINUNICODE
    case 0x8c: return push_text(Kind::string, byte());            // SHORT_BINUNICODE
    case 0x8d: return push_text(Kind::string, read<uint64_t>());  // BINUNICODE8
    case 'T': return push_text(Kind::string, read<uint32_t>());   // BINSTRING, of Python 2
    case 'U': return push_text(Kind::string, byte());             // SHORT_BINSTRING
    case 'C': return push_text(Kind::bytes, byte());              // SHORT_BINBYTES
    case 'B': return push_text(Kind::bytes, read<uint32_t>());    // BINBYTES
    case 0x8e: return push_text(Kind::bytes, read<uint64_t>());   // BINBYTES8
    case 0x96: return push_text(Kind::bytes, read<uint64_t>());   // BYTEARRAY8
    case ']': return push(make(Kind::list));                      // EMPTY_LIST
    case ')': return push(make(Kind::tuple));                     // EMPTY_TUPLE
    case '}': return push(make(Kind::dict));                      // EMPTY_DICT
    case 0x8f: return push(make(Kind::set));                      // EMPTY_SET
    case 'l': return collect(Kind::list);                         // LIST
    case 't': return collect(Kind::tuple);                        // TUPLE
    case 'd': return collect(Kind::dict);                         // DICT
    case 0x91: return collect(Kind::set);                         // FROZENSET
    case 0x85: return to_tuple(1);                                // TUPLE1
    case 0x86: return to_tuple(2);                                // TUPLE2
    case 0x87: return to_tuple(3);                                // TUPLE3
    case 'a': return append(pop_last(1));                         // APPEND
    case 'e': return append(pop_to_mark());                       // APPENDS
    case 's': return set_items(pop_last(2));                      // SETITEM
    case 'u': return set_items(pop_to_mark());                    // SETITEMS
    case 0x90: return add_to_set(pop_to_mark());                  // ADDITEMS
    case 'q': return put(byte());                                 // BINPUT
    case 'r': return put(read<uint32_t>());                       // LONG_BINPUT
    case 'p': return put(decimal_index());                        // PUT
    case 0x94: return put(memo_.size());                          // MEMOIZE
    case 'h': return get(byte());                                 // BINGET
    case 'j': return get(read<uint32_t>());                       // LONG_BINGET
    case 'g': return get(decimal_index());                        // GET
    case 'c': return global_from_lines();                         // GLOBAL
    case 0x93: return global_from_stack();                        // STACK_GLOBAL
    case 'R': return reduce(false);                               // REDUCE
    case 0x81: return reduce(true);                               // NEWOBJ
    case 'b': return build();                                     // BUILD
    case 'Q': return persistent();                                // BINPERSID
    default: refuse(opcode);
  }
}

}  // namespace calque
