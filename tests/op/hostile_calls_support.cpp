#include "op/hostile_calls_support.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "calque/base/error.h"
#include "calque/base/memory.h"
#include "calque/op/bind_arguments.h"
#include "calque/op/mode.h"
#include "calque/tensor/generator.h"
#include "op/opcheck_support.h"

namespace calque::hostile {
namespace {

constexpr int64_t most_elements = 4096;

// SplitMix64: a call needs few numbers, and the standard's engines take longer to start than most calls.
class Chance {
 public:
  explicit Chance(uint64_t seed) : state_(seed) {}
  uint64_t below(uint64_t n) { return bits() % n; }
  bool one_in(uint64_t n) { return below(n) == 0; }
  template <class C>
  const auto& of(const C& items) {
    return items[below(std::size(items))];
  }
  __attribute__((no_sanitize("undefined"))) uint64_t bits() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15ULL;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }

 private:
  uint64_t state_;
};

// ---- numbers --------------------------------------------------------------------------------------------------------

constexpr int64_t small_integers[] = {0, 1, -1, 2, -2, 3, -3, 4, 5, 6, 7, 8, 10, 16};
constexpr int64_t large_integers[] = {31,
                                      32,
                                      33,
                                      63,
                                      64,
                                      65,
                                      100,
                                      127,
                                      128,
                                      255,
                                      256,
                                      1000,
                                      -1000,
                                      65535,
                                      65536,
                                      1 << 20,
                                      INT32_MAX,
                                      int64_t{INT32_MAX} + 1,
                                      INT32_MIN,
                                      int64_t{1} << 32,
                                      int64_t{1} << 40,
                                      int64_t{1} << 61,
                                      int64_t{1} << 62,
                                      -(int64_t{1} << 62),
                                      -(int64_t{1} << 62) - 1,
                                      INT64_MAX - 1,
                                      INT64_MAX,
                                      INT64_MIN + 1,
                                      INT64_MIN};
constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double floats[] = {0.0,
                             -0.0,
                             1.0,
                             -1.0,
                             0.5,
                             2.0,
                             3.7,
                             -2.5,
                             1e-45,
                             1e-300,
                             1e10,
                             -1e10,
                             1e18,
                             1e19,
                             -1e19,
                             1e38,
                             1e39,
                             1e308,
                             -1e308,
                             9.3e18,
                             inf,
                             -inf,
                             std::numeric_limits<double>::quiet_NaN()};
constexpr const char* texts[] = {"",       "none",     "mean",     "sum",   "constant",  "reflect",  "replicate", "circular",
                                 "ij",     "xy",       "tanh",     "floor", "trunc",     "amax",     "amin",      "prod",
                                 "linear", "bilinear", "nearest",  "lower", "ij,jk->ik", "...i->i",  "ii->",      "valid",
                                 "same",   "multiply", "add",      "left",  "\xff\xfe",  "zzzzzzzz", "a,b,c",     "fro",
                                 "nuc",    "median",   "midpoint", "higher"};

int64_t integer(Chance& chance) { return chance.one_in(3) ? chance.of(large_integers) : chance.of(small_integers); }

Value scalar(Chance& chance) {
  switch (chance.below(8)) {
    case 0: return chance.one_in(2);
    case 1:
    case 2:
    case 3: return integer(chance);
    case 4: return std::complex<double>(chance.of(floats), chance.of(floats));
    default: return chance.of(floats);
  }
}

// ---- tensors --------------------------------------------------------------------------------------------------------

DType dtype(Chance& chance) {
  constexpr DType usual[] = {DType::float32, DType::float32, DType::float64, DType::int64, DType::int64, DType::bool_};
  return chance.one_in(3) ? chance.of(all_dtypes) : chance.of(usual);
}

void fill(Chance& chance, DType d, void* to, size_t bytes) {
  auto* p = static_cast<unsigned char*>(to);
  const uint64_t way = chance.below(5);
  if (way == 0 || (d == DType::bool_ && way < 3)) {  // any bytes: true is every byte but 0
    for (size_t i = 0; i < bytes; i += 8) {
      const uint64_t eight = chance.bits();
      std::memcpy(p + i, &eight, std::min<size_t>(8, bytes - i));
    }
    return;
  }
  const size_t item = item_size(d);
  dispatch(d, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (size_t at = 0; at + item <= bytes; at += item) {
      T x;
      if constexpr (std::is_same_v<T, Bool>)
        x = Bool(chance.one_in(2));
      else if constexpr (std::is_integral_v<T>)
        x = static_cast<T>(way == 1 ? integer(chance) : static_cast<int64_t>(chance.below(5)) - (way == 2 ? 2 : 0));
      else if constexpr (std::is_same_v<T, double>)
        x = way == 1 ? chance.of(floats) : static_cast<double>(chance.below(1000)) / 250 - 1;
      else
        x = T(static_cast<float>(way == 1 ? std::clamp(chance.of(floats), -3e38, 3e38)
                                          : static_cast<double>(chance.below(1000)) / 250 - 1));
      std::memcpy(p + at, &x, item);
    }
  });
}

std::vector<int64_t> random_sizes(Chance& chance) {
  constexpr int64_t usual[] = {0, 1, 1, 2, 2, 3, 3, 4, 5, 7, 8, 16, 17, 33, 64};
  std::vector<int64_t> sizes(chance.one_in(20) ? chance.below(12) : chance.below(6));
  int64_t count = 1;
  for (int64_t& s : sizes) {
    s = chance.of(usual);
    if (count * std::max<int64_t>(s, 1) > most_elements) s = 1;
    count *= std::max<int64_t>(s, 1);
  }
  return sizes;
}

// A tensor of these sizes whose storage ends where its last element does.
Tensor make(Chance& chance, DType d, const std::vector<int64_t>& sizes) {
  std::vector<size_t> order(sizes.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = order.size() - 1 - i;  // innermost first
  const uint64_t layout = chance.below(6);
  if (layout == 1)
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[chance.below(i)]);
  std::vector<int64_t> strides(sizes.size());
  int64_t running = layout == 2 ? static_cast<int64_t>(1 + chance.below(3)) : 1, last = 0;
  for (const size_t dim : order) {
    strides[dim] = running;
    running *= std::max<int64_t>(sizes[dim], 1);
    if (layout == 2 && chance.one_in(2)) running += static_cast<int64_t>(chance.below(3));
  }
  if (layout == 3 && !strides.empty()) strides[chance.below(strides.size())] = 0;  // expanded
  if (layout == 4 && !strides.empty())
    strides[chance.below(strides.size())] = static_cast<int64_t>(chance.below(4));  // overlapping
  bool empty = false;
  for (size_t i = 0; i < sizes.size(); ++i) {
    empty = empty || sizes[i] == 0;
    last += std::max<int64_t>(sizes[i] - 1, 0) * strides[i];
  }
  const int64_t offset = chance.one_in(4) ? static_cast<int64_t>(chance.below(5)) : 0;
  const size_t bytes = static_cast<size_t>(empty ? offset : offset + last + 1) * item_size(d);
  Ref<Storage> storage = Storage::allocate(bytes);
  fill(chance, d, storage->data(), bytes);
  return from_storage(std::move(storage), d, sizes, strides, offset);
}

Tensor random_tensor(Chance& chance) { return make(chance, dtype(chance), random_sizes(chance)); }

Tensor changed(Chance& chance, const Tensor& t) {
  std::vector<int64_t> sizes(t.sizes().begin(), t.sizes().end());
  DType d = t.dtype();
  const auto any = [&] { return chance.below(sizes.size()); };
  switch (chance.below(9)) {
    case 0: return random_tensor(chance);
    case 1:
      if (!sizes.empty()) sizes[any()] += chance.one_in(2) ? 1 : 2;
      break;
    case 2:
      if (!sizes.empty()) {
        int64_t& s = sizes[any()];
        s = std::max<int64_t>(s - 1, 0);
      }
      break;
    case 3:
      if (!sizes.empty()) sizes[any()] = static_cast<int64_t>(chance.below(2));
      break;
    case 4:
      if (!sizes.empty()) sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(any()));
      break;
    case 5:
      sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(chance.below(sizes.size() + 1)),
                   static_cast<int64_t>(chance.below(3)));
      break;
    case 6: d = dtype(chance); break;
    default: break;  // the same, with other values and another layout
  }
  int64_t count = 1;
  for (int64_t& s : sizes) {
    s = std::min<int64_t>(s, most_elements);
    if (count * std::max<int64_t>(s, 1) > 4 * most_elements) s = 1;
    count *= std::max<int64_t>(s, 1);
  }
  return make(chance, d, sizes);
}

// ---- arguments ------------------------------------------------------------------------------------------------------

Value random_value(Chance& chance, const SchemaType& type);

Value random_element(Chance& chance, const SchemaType& type) {
  using Kind = SchemaType::Kind;
  switch (type.kind) {
    case Kind::tensor: return random_tensor(chance);
    case Kind::scalar: return scalar(chance);
    case Kind::integer:
    case Kind::sym_int: return integer(chance);
    case Kind::floating: return chance.of(floats);
    case Kind::complex: return std::complex<double>(chance.of(floats), chance.of(floats));
    case Kind::boolean:
    case Kind::sym_bool: return chance.one_in(2);
    case Kind::string: return chance.of(texts);
    case Kind::dtype: return dtype(chance);
    case Kind::device: return Device(chance.one_in(10) ? "meta" : "cpu");
    case Kind::layout: return chance.one_in(10) ? Layout::sparse_coo : Layout::strided;
    case Kind::memory_format: {
      constexpr MemoryFormat all[] = {MemoryFormat::contiguous, MemoryFormat::preserve, MemoryFormat::channels_last,
                                      MemoryFormat::channels_last_3d};
      return chance.of(all);
    }
    case Kind::generator: return {};
  }
  return {};
}

Value random_value(Chance& chance, const SchemaType& type) {
  if (type.optional && chance.one_in(2)) return {};
  if (!type.list) return random_element(chance, type);
  Values items;
  const uint64_t n = chance.one_in(30)                         ? 70
                     : chance.one_in(2) && type.fixed_size > 0 ? static_cast<uint64_t>(type.fixed_size)
                                                               : chance.below(6);
  for (uint64_t i = 0; i < n; ++i)
    items.push_back(type.element_optional && chance.one_in(3) ? Value() : random_element(chance, type));
  return list(std::move(items));
}

Value changed(Chance& chance, const Value& value, const SchemaType& type) {
  if (chance.one_in(8)) return random_value(chance, type);
  if (value.is_tensor()) return value.to_tensor().is_fake() ? value : Value(changed(chance, value.to_tensor()));
  if (value.kind() == Value::Kind::list || value.kind() == Value::Kind::tuple) {
    Values items = value.to_items();
    const SchemaType element{type.kind, false, false, false, 0};
    if (items.empty() || chance.one_in(6)) {
      items.insert(items.begin() + static_cast<std::ptrdiff_t>(chance.below(items.size() + 1)),
                   random_element(chance, element));
    } else if (chance.one_in(6)) {
      items.erase(items.begin() + static_cast<std::ptrdiff_t>(chance.below(items.size())));
    } else {
      Value& item = items[chance.below(items.size())];
      item = changed(chance, item, element);
    }
    return list(std::move(items));
  }
  if (value.kind() == Value::Kind::integer && chance.one_in(2) && !value.to_sym_int().is_symbolic()) {
    int64_t near = 0;
    if (!__builtin_add_overflow(value.to_int(), static_cast<int64_t>(chance.below(5)) - 2, &near)) return near;
  }
  return random_value(chance, type);
}

// ---- results --------------------------------------------------------------------------------------------------------

struct Digest {
  uint64_t hash = 1469598103934665603ULL;
  void add(const void* data, size_t bytes) {
    const auto* p = static_cast<const unsigned char*>(data);
    for (size_t i = 0; i < bytes; i += 8) {
      uint64_t eight = 0;
      std::memcpy(&eight, p + i, std::min<size_t>(8, bytes - i));
      hash = (hash ^ eight) * 1099511628211ULL;
      hash ^= hash >> 32;
    }
  }
};

// Reading takes a little memory too, where a call may have taken all that there is.
class ReadingRoom {
 public:
  ReadingRoom() : before_(memory_limit()) { set_memory_limit(before_ + (size_t{1} << 20)); }
  ~ReadingRoom() { set_memory_limit(before_); }
  ReadingRoom(const ReadingRoom&) = delete;
  ReadingRoom& operator=(const ReadingRoom&) = delete;

 private:
  size_t before_;
};

// Reads every element, so that a sanitizer sees a result that lies outside its memory.
void read(const Value& value, Digest& digest) {
  if (value.kind() == Value::Kind::list || value.kind() == Value::Kind::tuple) {
    for (const Value& item : value.to_items()) read(item, digest);
    return;
  }
  if (!value.is_tensor()) {
    const std::string text = value.str();
    return digest.add(text.data(), text.size());
  }
  const Tensor& t = value.to_tensor();
  if (t.is_fake()) return;
  static_cast<void>(
      make_view(t, t.impl().sizes, t.impl().strides, t.sym_storage_offset()));  // inside its storage, or an error
  const int64_t count = t.numel();
  if (count == 0 || count > 1 << 20) return;
  const auto* p = static_cast<const unsigned char*>(t.data());
  const auto item = static_cast<int64_t>(item_size(t.dtype()));
  const IntList sizes = t.sizes(), strides = t.strides();
  std::vector<int64_t> at(sizes.size(), 0);
  for (int64_t i = 0; i < count; ++i) {
    int64_t place = 0;
    for (size_t d = 0; d < at.size(); ++d) place += at[d] * strides[d];
    digest.add(p + place * item, static_cast<size_t>(item));
    for (size_t d = at.size(); d-- > 0;) {
      if (++at[d] < sizes[d]) break;
      at[d] = 0;
    }
  }
}

bool without_data(Values& args) {
  bool any = false;
  for (Value& v : args)
    if (v.is_tensor()) {
      v = Value(make_tensor(v.to_tensor().meta(), true));
      any = true;
    }
  return any;
}

}  // namespace

struct Caller::Impl {
  opcheck::CaseFile golden;
  std::map<std::string, std::vector<size_t>> cases;

  explicit Impl(const std::string& path) : golden(path) {
    for (size_t i = 0; i < golden.size(); ++i) cases[golden.operator_at(i)].push_back(i);
  }

  Values seed_arguments(const Operator& op, Chance& chance) const {
    const Schema& schema = op.schema();
    const Operator* from = &op;
    if (!cases.contains(op.name()) && op.base()) from = op.base();
    const auto found = cases.find(from->name());
    Values args;
    if (found != cases.end() && !chance.one_in(12)) {
      const nlohmann::json& entry = golden.at(chance.of(found->second));
      try {
        opcheck::Arguments made = opcheck::make_arguments(golden, entry, *from, opcheck::Data::real);
        args = bind_arguments(from->schema(), std::move(made.positional), std::move(made.keyword));
      } catch (const std::exception&) {  // a case that is to be refused, or of a dtype that there is not
        args.clear();
      }
    }
    // What is missing: defaults, or at random. Tensors of like sizes get further than others.
    const bool alike = chance.one_in(2);
    const std::vector<int64_t> sizes = random_sizes(chance);
    const DType common = dtype(chance);
    for (size_t i = args.size(); i < schema.arguments.size(); ++i) {
      const SchemaArgument& argument = schema.arguments[i];
      if (argument.default_value && chance.one_in(2))
        args.push_back(*argument.default_value);
      else if (alike && argument.type.kind == SchemaType::Kind::tensor && !argument.type.list)
        args.push_back(make(chance, chance.one_in(4) ? DType::int64 : common, sizes));
      else
        args.push_back(random_value(chance, argument.type));
    }
    args.resize(schema.arguments.size());
    return args;
  }

  Values arguments(const Operator& op, uint64_t seed) const {
    uint64_t mixed = seed;
    for (const char c : op.name()) mixed = (mixed ^ static_cast<unsigned char>(c)) * 0x9e3779b97f4a7c15ULL;
    Chance chance(mixed);
    Values args = seed_arguments(op, chance);
    if (args.empty()) return args;
    const auto& schema = op.schema().arguments;
    for (uint64_t times = 1 + chance.below(3); times > 0; --times) {
      const size_t i = chance.below(args.size());
      if (chance.one_in(12) && schema[i].type.kind == SchemaType::Kind::tensor && !schema[i].type.list) {
        const Value& other = args[chance.below(args.size())];  // two arguments share memory
        if (other.is_tensor()) {
          args[i] = other;
          continue;
        }
      }
      args[i] = changed(chance, args[i], schema[i].type);
    }
    if (chance.one_in(10)) static_cast<void>(without_data(args));
    return args;
  }
};

Caller::Caller(const std::string& golden_folder) : impl_(std::make_unique<Impl>(golden_folder + "/cases.jsonl")) {}
Caller::~Caller() = default;

std::string Caller::describe(const Operator& op, uint64_t seed) const {
  std::string text = op.name() + "(";
  const Values args = impl_->arguments(op, seed);
  const auto one = [](const Value& v) {
    if (!v.is_tensor()) return v.str();
    const Tensor& t = v.to_tensor();
    return std::string(name(t.dtype())) + str(t.sym_sizes()) + str(t.sym_strides()) + (t.is_fake() ? " without data" : "");
  };
  for (size_t i = 0; i < args.size(); ++i) {
    text += (i ? ", " : "") + op.schema().arguments[i].name + ": ";
    if (args[i].kind() == Value::Kind::list) {
      for (const Value& v : args[i].to_items()) text += one(v) + "; ";
    } else {
      text += one(args[i]);
    }
  }
  return text + ")";
}

Outcome Caller::call(const Operator& op, uint64_t seed) const {
  const Values args = impl_->arguments(op, seed);
  default_generator().manual_seed(seed);
  Value result;
  try {
    Values positional;
    Kwargs keyword;
    for (size_t i = 0; i < args.size(); ++i) {
      const SchemaArgument& argument = op.schema().arguments[i];
      if (argument.keyword_only)
        keyword.emplace_back(argument.name, args[i]);
      else
        positional.push_back(args[i]);
    }
    result = dispatch(op, bind_arguments(op.schema(), std::move(positional), std::move(keyword)));
  } catch (const UserError& e) {
    return {Outcome::Kind::refused, e.what(), 0};
  } catch (const std::exception& e) {
    return {Outcome::Kind::wrong, std::string("not a UserError: ") + e.what(), 0};
  }
  try {
    const ReadingRoom room;
    Digest digest;
    read(result, digest);
    for (const Value& v : args) read(v, digest);  // what was written in place
    return {Outcome::Kind::answered, "", digest.hash};
  } catch (const std::exception& e) {
    return {Outcome::Kind::wrong, std::string("a result outside its storage: ") + e.what(), 0};
  }
}

std::map<std::string, std::vector<const Operator*>> operators_by_family() {
  std::map<std::string, std::vector<const Operator*>> families;
  for (const Operator* op : all_operators())
    if (op->has_kernel()) families[op->family().empty() ? "other" : op->family()].push_back(op);
  return families;
}

}  // namespace calque::hostile
