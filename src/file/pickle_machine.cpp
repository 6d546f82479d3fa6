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
void PickleMachine::to_tuple(size_t count) {
  PickleObject* o = make(Kind::tuple);
  o->items.resize(count);
  for (size_t i = count; i-- > 0;) o->items[i] = pop();
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
  PickleObject* o = make(Kind::integer);
  o->integer = static_cast<int64_t>(bits);
  push(o);
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

PickleObject* PickleMachine::run() {
  stack_.clear();
  marks_.clear();
  memo_.clear();
  while (true) {
    const auto opcode = static_cast<unsigned char>(take(1)[0]);
    switch (opcode) {
      case 0x80:  // PROTO
        if (static_cast<unsigned char>(take(1)[0]) > 5) fail("a protocol above 5");
        break;
      case 0x95: take(8); break;  // FRAME
      case '.': {
        PickleObject* o = pop();
        return o;
      }
      case '(': marks_.push_back(stack_.size()); break;
      case '0':
        if (!marks_.empty() && marks_.back() == stack_.size())
          marks_.pop_back();
        else
          pop();
        break;
      case '1': pop_to_mark(); break;
      case '2': push(top()); break;
      case 'N': push(&shared().none); break;
      case 0x88: push(&shared().yes); break;
      case 0x89: push(&shared().no); break;
      case 'J': long_integer(take(4)); break;
      case 'K': push(&shared().numbers[static_cast<unsigned char>(take(1)[0])]); break;
      case 'M': {
        PickleObject* o = make(Kind::integer);
        o->integer = read<uint16_t>();
        push(o);
        break;
      }
      case 'I':
      case 'L': {
        std::string_view s = line();
        if (opcode == 'I' && (s == "00" || s == "01")) {
          push(s == "01" ? &shared().yes : &shared().no);
          break;
        }
        if (s.ends_with('L')) s.remove_suffix(1);
        PickleObject* o = make(Kind::integer);
        const auto [p, error] = std::from_chars(s.data(), s.data() + s.size(), o->integer);
        if (error != std::errc() || p != s.data() + s.size()) fail("an integer that is none");
        push(o);
        break;
      }
      case 0x8a: long_integer(take(static_cast<unsigned char>(take(1)[0]))); break;
      case 0x8b: long_integer(take(read<uint32_t>())); break;
      case 'G': {
        PickleObject* o = make(Kind::floating);
        o->floating = big_endian_double(take(8));
        push(o);
        break;
      }
      case 'F': {
        PickleObject* o = make(Kind::floating);
        o->floating = std::strtod(std::string(line().substr(0, 64)).c_str(), nullptr);
        push(o);
        break;
      }
      case 'V': push(make_text(Kind::string, line())); break;
      case 'X': push(make_text(Kind::string, take(read<uint32_t>()))); break;
      case 0x8c: push(make_text(Kind::string, take(static_cast<unsigned char>(take(1)[0])))); break;
      case 0x8d: push(make_text(Kind::string, take(read<uint64_t>()))); break;
      case 'T': push(make_text(Kind::string, take(read<uint32_t>()))); break;  // Python 2's strings
      case 'U': push(make_text(Kind::string, take(static_cast<unsigned char>(take(1)[0])))); break;
      case 'C': push(make_text(Kind::bytes, take(static_cast<unsigned char>(take(1)[0])))); break;
      case 'B': push(make_text(Kind::bytes, take(read<uint32_t>()))); break;
      case 0x8e: push(make_text(Kind::bytes, take(read<uint64_t>()))); break;
      case 0x96: push(make_text(Kind::bytes, take(read<uint64_t>()))); break;
      case ']': push(make(Kind::list)); break;
      case ')': push(make(Kind::tuple)); break;
      case '}': push(make(Kind::dict)); break;
      case 0x8f: push(make(Kind::set)); break;
      case 'l':
      case 't':
      case 'd':
      case 0x91: {
        std::vector<PickleObject*> items = pop_to_mark();
        PickleObject* o = make(opcode == 'l'   ? Kind::list
                               : opcode == 't' ? Kind::tuple
                               : opcode == 'd' ? Kind::dict
                                               : Kind::set);
        o->items = std::move(items);
        if (opcode == 'd' && o->items.size() % 2 != 0) fail("a dict with a key that has no value");
        push(o);
        break;
      }
      case 0x85: to_tuple(1); break;
      case 0x86: to_tuple(2); break;
      case 0x87: to_tuple(3); break;
      case 'a': {
        PickleObject* item = pop();
        if (top()->kind != Kind::list && top()->kind != Kind::reduced) fail("it appends to something that is no list");
        add_items({item});
        break;
      }
      case 'e': {
        const std::vector<PickleObject*> items = pop_to_mark();
        if (top()->kind != Kind::list && top()->kind != Kind::reduced) fail("it appends to something that is no list");
        add_items(items);
        break;
      }
      case 0x90: {
        const std::vector<PickleObject*> items = pop_to_mark();
        if (top()->kind != Kind::set) fail("it adds to something that is no set");
        add_items(items);
        break;
      }
      case 's': {
        PickleObject* value = pop();
        PickleObject* key = pop();
        if (top()->kind != Kind::dict && top()->kind != Kind::reduced) fail("it sets an item of something that is no dict");
        add_items({key, value});
        break;
      }
      case 'u': {
        const std::vector<PickleObject*> items = pop_to_mark();
        if (items.size() % 2 != 0) fail("a dict with a key that has no value");
        if (top()->kind != Kind::dict && top()->kind != Kind::reduced) fail("it sets items of something that is no dict");
        add_items(items);
        break;
      }
      case 'q': put(static_cast<unsigned char>(take(1)[0])); break;
      case 'r': put(read<uint32_t>()); break;
      case 'p':
      case 'g': {
        const std::string_view s = line();
        uint64_t index = 0;
        const auto [p, error] = std::from_chars(s.data(), s.data() + s.size(), index);
        if (error != std::errc()) fail("a place in the memo that is no number");
        opcode == 'p' ? put(index) : get(index);
        break;
      }
      case 0x94: put(memo_.size()); break;
      case 'h': get(static_cast<unsigned char>(take(1)[0])); break;
      case 'j': get(read<uint32_t>()); break;
      case 'c': {
        const std::string_view module = line();
        global(module, line());
        break;
      }
      case 0x93: {
        PickleObject* name = pop();
        PickleObject* module = pop();
        if (name->kind != Kind::string || module->kind != Kind::string) fail("a name that is no text");
        global(module->text, name->text);
        break;
      }
      case 'R': reduce(false); break;
      case 0x81: reduce(true); break;
      case 'b': build(); break;
      case 'Q': {
        PickleObject* id = pop();
        PickleObject* o = make(Kind::persistent);
        o->items = {id};
        push(o);
        break;
      }
      default: {
        char text[8];
        std::snprintf(text, sizeof text, "0x%02x", opcode);
        --at_;
        fail(std::string("the opcode ") + text + " is not among those that make plain data");
      }
    }
  }
}

}  // namespace calque
