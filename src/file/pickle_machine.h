// The pickle machine: runs the opcodes of one pickle and leaves a graph of inert objects. It calls nothing; what a global
// name or a reduction means is decided by whoever walks the objects afterwards. Private to file/.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace calque {

// Of a class, a function or an attribute. A long text is kept once, however often a pickle refers to it; names are copied.
constexpr size_t max_pickled_name = 1000;

struct PickleObject {
  enum class Kind : uint8_t {
    none,
    boolean,
    integer,
    floating,
    string,
    bytes,
    list,
    tuple,
    dict,
    set,
    global,      // text: module and name, joined by a space
    reduced,     // items: the callable, the tuple of its arguments, then (if built) its state
    persistent,  // items: the id
  };
  Kind kind = Kind::none;
  bool made_by_class = false;  // of a reduced one: by NEWOBJ, so that the callable is a class
  union {
    bool boolean;
    int64_t integer;
    double floating;
  };
  std::string_view text = {};             // in the pickle, or kept by the machine
  std::vector<PickleObject*> items = {};  // of a dict: key, value, key, value
  PickleObject() : integer(0) {}
};

class PickleMachine {
 public:
  PickleMachine(std::span<const std::byte> bytes, std::string what) : bytes_(bytes), what_(std::move(what)) {}

  // Runs one pickle from where the last one ended; the objects live as long as the machine.
  PickleObject* run();
  size_t position() const { return at_; }
  void skip(size_t count);
  template <class T>
  T read();
  [[noreturn]] void fail(const std::string& why) const;

 private:
  PickleObject* make(PickleObject::Kind kind);
  PickleObject* make_text(PickleObject::Kind kind, std::string_view text);
  void push(PickleObject* object) { stack_.push_back(object); }
  PickleObject* pop();
  PickleObject* top();
  std::vector<PickleObject*> pop_to_mark();
  std::vector<PickleObject*> pop_last(size_t count);
  void drop();
  void execute(unsigned char opcode);
  [[noreturn]] void refuse(unsigned char opcode);
  void push_integer(int64_t value);
  void push_floating(double value);
  void push_text(PickleObject::Kind kind, uint64_t size);
  void decimal_integer();
  void decimal_integer_or_boolean();
  uint64_t decimal_index();
  void to_tuple(size_t count);
  std::string_view take(uint64_t count);
  std::string_view line();
  void put(uint64_t index);
  void get(uint64_t index);
  void long_integer(std::string_view little_endian);
  void add_items(const std::vector<PickleObject*>& items);
  void collect(PickleObject::Kind kind);
  void append(const std::vector<PickleObject*>& items);
  void set_items(const std::vector<PickleObject*>& items);
  void add_to_set(const std::vector<PickleObject*>& items);
  void reduce(bool is_class);
  void build();
  void global(std::string_view module, std::string_view name);
  void global_from_lines();
  void global_from_stack();
  void persistent();

  std::span<const std::byte> bytes_;
  std::string what_;
  size_t at_ = 0;
  std::deque<PickleObject> objects_;
  std::deque<std::string> texts_;
  std::vector<PickleObject*> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, PickleObject*> memo_;
};

}  // namespace calque
