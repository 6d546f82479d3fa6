// What the objects of a pickle mean: tensors over the file's storages, plain containers, dtypes. The only place that
// knows the names which torch.save uses.
#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "calque/base/error.h"
#include "calque/file/mapped_file.h"
#include "calque/file/pickle.h"
#include "calque/file/zip.h"
#include "calque/op/mode.h"
#include "file/file_format.h"
#include "file/pickle_machine.h"
#include "file/tensor_view.h"

namespace calque {
namespace {

using Kind = PickleObject::Kind;

constexpr size_t max_depth = 200;
// Lists may hold the same list many times: a small file can stand for a tree that no memory holds.
constexpr uint64_t max_leaves = 10'000'000;
constexpr size_t max_pickled_dims = 64;

std::string dotted(std::string_view global) {
  std::string out(global);
  std::replace(out.begin(), out.end(), ' ', '.');
  return out;
}

std::optional<DType> storage_dtype(std::string_view global) {
  static constexpr std::pair<std::string_view, DType> names[] = {{"FloatStorage", DType::float32},
                                                                 {"DoubleStorage", DType::float64},
                                                                 {"HalfStorage", DType::float16},
                                                                 {"BFloat16Storage", DType::bfloat16},
                                                                 {"LongStorage", DType::int64},
                                                                 {"IntStorage", DType::int32},
                                                                 {"ShortStorage", DType::int16},
                                                                 {"CharStorage", DType::int8},
                                                                 {"ByteStorage", DType::uint8},
                                                                 {"BoolStorage", DType::bool_},
                                                                 {"ComplexFloatStorage", DType::complex64},
                                                                 {"ComplexDoubleStorage", DType::complex128},
                                                                 {"UntypedStorage", DType::uint8}};
  const size_t space = global.find(' ');
  const std::string_view module = global.substr(0, space);
  if (module != "torch" && module != "torch.storage" && module != "torch.cuda") return std::nullopt;
  for (const auto& [name, dtype] : names)
    if (global.substr(space + 1) == name) return dtype;
  return std::nullopt;
}

// Modules whose names have no business in a file of tensors, whatever is done with them.
bool is_dangerous(std::string_view module) {
  static constexpr std::string_view names[] = {
      "os",         "posix",  "nt",     "sys",     "subprocess", "builtins",        "__builtin__",
      "importlib",  "runpy",  "shutil", "socket",  "pty",        "commands",        "ctypes",
      "code",       "codeop", "pickle", "_pickle", "types",      "functools",       "operator",
      "timeit",     "pdb",    "bdb",    "asyncio", "threading",  "multiprocessing", "marshal",
      "webbrowser", "pip",    "site"};
  const std::string_view first = module.substr(0, module.find('.'));
  return std::find(std::begin(names), std::end(names), first) != std::end(names);
}

template <class Word, class Swap>
void swap_bytes(std::byte* words, size_t count, Swap swap) {
  for (size_t i = 0; i < count; ++i) {
    Word word;
    std::memcpy(&word, words + i * sizeof(Word), sizeof(Word));
    word = swap(word);
    std::memcpy(words + i * sizeof(Word), &word, sizeof(Word));
  }
}

struct StoredBytes {
  std::span<const std::byte> data;
  std::shared_ptr<const void> owner;
};

struct StorageRecord {
  DType dtype = DType::uint8;
  std::string_view key;  // in the pickle
  uint64_t numel = 0;
  Ref<Storage> storage;
};

class PickleReader {
 public:
  PickleReader(std::span<const std::byte> bytes, std::shared_ptr<const void> owner, std::string what,
               const PickleOptions& options)
      : bytes_(bytes), owner_(std::move(owner)), what_(std::move(what)), options_(options) {}

  Value read() {
    if (bytes_.size() >= 4 && std::memcmp(bytes_.data(), "PK\3\4", 4) == 0) return read_zip();
    return read_legacy();
  }

 private:
  [[noreturn]] void fail(const std::string& why) const { throw UserError(ErrorKind::bad_file, what_ + ": " + why); }

  Value read_zip() {
    const ZipReader zip(bytes_, what_);
    const ZipEntry* pickle = nullptr;
    for (const ZipEntry& e : zip.entries())
      if (e.name.ends_with("/data.pkl") && std::count(e.name.begin(), e.name.end(), '/') == 1) pickle = &e;
    if (!pickle) fail("no data.pkl in this zip; expected a file of torch.save");
    const std::string top = pickle->name.substr(0, pickle->name.size() - std::string_view("data.pkl").size());
    if (const ZipEntry* order = zip.find(top + "byteorder")) {
      big_endian_ = order->text() == "big";
      if (!big_endian_ && order->text() != "little")
        fail("unknown byte order '" + std::string(order->text().substr(0, 40)) + "', expected 'little' or 'big'");
    }
    PickleMachine machine(pickle->data, what_ + ": " + pickle->name);
    PickleObject* root = machine.run();
    find_storage_ = [&](const StorageRecord& s) -> StoredBytes {
      const ZipEntry* e = zip.find(top + "data/" + std::string(s.key));
      if (!e) fail("storage " + std::string(s.key) + " is missing");
      return {e->data, e->inflated ? e->inflated : owner_};
    };
    return convert(root, 0);
  }

  // Pickles one after the other: a magic number, a version, facts about the machine, the content, the keys of the
  // storages; then the storages.
  Value read_legacy() {
    if (bytes_.empty() || static_cast<unsigned char>(bytes_[0]) != 0x80)
      fail("not a file of torch.save: it starts with neither a zip's nor a pickle's first byte");
    PickleMachine machine(bytes_, what_);
    static constexpr std::string_view magic("\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 10);
    const std::string_view start(reinterpret_cast<const char*>(bytes_.data()), std::min<size_t>(bytes_.size(), 32));
    if (start.find(magic) == std::string_view::npos)
      fail("a pickle, but not one of torch.save: its magic number is missing");
    // The magic number has more than 8 bytes, which the machine does not take: PROTO 2, LONG1 10, ten bytes, STOP.
    machine.skip(start.find(magic) + magic.size() + 1);
    machine.run();
    machine.run();
    PickleObject* root = machine.run();
    const PickleObject* keys = machine.run();
    if (keys->kind != Kind::list) fail("the list of storages is missing");
    std::unordered_map<std::string_view, std::pair<size_t, uint64_t>> places;  // by key: where, and how many elements
    find_storage_sizes(root);
    for (const PickleObject* key : keys->items) {
      if (key->kind != Kind::string) fail("a storage whose key is no text");
      const auto numel = machine.read<int64_t>();
      const auto known = legacy_item_size_.find(key->text);
      if (known == legacy_item_size_.end()) fail("storage " + std::string(key->text) + " is not used by any tensor");
      if (numel < 0 || static_cast<uint64_t>(numel) > (bytes_.size() - machine.position()) / known->second)
        fail("storage " + std::string(key->text) + " is cut off");
      places[key->text] = {machine.position(), static_cast<uint64_t>(numel) * known->second};
      machine.skip(static_cast<size_t>(numel) * known->second);
    }
    find_storage_ = [&](const StorageRecord& s) -> StoredBytes {
      const auto it = places.find(s.key);
      if (it == places.end()) fail("storage " + std::string(s.key) + " is missing");
      return {bytes_.subspan(it->second.first, it->second.second), owner_};
    };
    return convert(root, 0);
  }

  // The items' width is known only from the references to a storage.
  void find_storage_sizes(const PickleObject* root) {
    std::vector<const PickleObject*> pending{root};
    std::unordered_set<const PickleObject*> seen;
    while (!pending.empty()) {
      const PickleObject* o = pending.back();
      pending.pop_back();
      if (o->items.empty() || !seen.insert(o).second) continue;
      if (o->kind == Kind::persistent) {
        const StorageRecord s = storage_id(o);
        legacy_item_size_[s.key] = item_size(s.dtype);
      }
      pending.insert(pending.end(), o->items.begin(), o->items.end());
    }
  }

  // ---- storages and tensors -----------------------------------------------------------------------------------------
  // ('storage', type, key, location, number of elements[, view])
  StorageRecord storage_id(const PickleObject* persistent) const {
    const PickleObject* id = persistent->items.at(0);
    if (id->kind != Kind::tuple || id->items.size() < 5 || id->items[0]->kind != Kind::string ||
        id->items[0]->text != "storage")
      fail("an external object that is no storage");
    const PickleObject* type = id->items[1];
    const std::optional<DType> dtype = type->kind == Kind::global ? storage_dtype(type->text) : std::nullopt;
    if (!dtype)
      fail("a storage of an unknown type" + (type->kind == Kind::global ? " " + dotted(type->text) : std::string()));
    if (id->items[2]->kind != Kind::string || id->items[4]->kind != Kind::integer || id->items[4]->integer < 0)
      fail("a storage whose key or size is malformed");
    if (id->items.size() > 5 && id->items[5]->kind != Kind::none)
      fail("a storage that is a view of another one, which PyTorch has not written since 0.4");
    StorageRecord out;
    out.dtype = *dtype;
    out.key = id->items[2]->text;
    out.numel = static_cast<uint64_t>(id->items[4]->integer);
    return out;
  }

  // `dtype` is that of a tensor whose storage has none.
  const StorageRecord& storage(const PickleObject* object, std::optional<DType> dtype = {}) {
    if (object->kind != Kind::persistent) fail("a tensor without a storage");
    const auto [it, fresh] = storages_.try_emplace(object);
    StorageRecord& s = it->second;
    if (fresh) s = storage_id(object);
    const size_t width = swapped_width(dtype.value_or(s.dtype));
    const auto [known, new_key] = by_key_.try_emplace(s.key);
    if (new_key) {
      known->second = {read_storage(find_storage_(s), width), width};
    } else if (known->second.width != width) {
      fail("storage " + std::string(s.key) + " of a big-endian file is used with numbers of " +
           std::to_string(known->second.width) + " and of " + std::to_string(width) +
           " bytes; which bytes to swap is not known");
    }
    if (!fresh) return s;
    s.storage = known->second.storage;
    if (s.numel > s.storage->nbytes() / item_size(s.dtype))
      fail("storage " + std::string(s.key) + " has " + std::to_string(s.storage->nbytes()) + " bytes, expected " +
           std::to_string(s.numel) + " elements of " + std::string(name(s.dtype)));
    return s;
  }

  // How many bytes change their order together: a number's, of a complex one each part's. 1: none do.
  size_t swapped_width(DType dtype) const {
    return !big_endian_ ? 1 : is_complex(dtype) ? item_size(dtype) / 2 : item_size(dtype);
  }

  static Ref<Storage> read_storage(const StoredBytes& stored, size_t width) {
    const std::span<const std::byte> data = stored.data;
    if (width == 1 && reinterpret_cast<uintptr_t>(data.data()) % 16 == 0)
      return Storage::borrow(const_cast<std::byte*>(data.data()), data.size(), stored.owner, true);
    Ref<Storage> out = Storage::allocate(data.size());
    if (data.empty()) return out;
    auto* to = static_cast<std::byte*>(out->data());
    std::memcpy(to, data.data(), data.size());
    if (width == 2) swap_bytes<uint16_t>(to, data.size() / 2, [](uint16_t w) { return __builtin_bswap16(w); });
    if (width == 4) swap_bytes<uint32_t>(to, data.size() / 4, [](uint32_t w) { return __builtin_bswap32(w); });
    if (width == 8) swap_bytes<uint64_t>(to, data.size() / 8, [](uint64_t w) { return __builtin_bswap64(w); });
    return out;
  }

  std::vector<int64_t> sizes(const PickleObject* o) const {
    if (o->kind == Kind::reduced && o->items.size() == 2 && o->items[0]->text == "torch Size" && !o->items[1]->items.empty())
      o = o->items[1]->items[0];
    if (o->kind != Kind::tuple && o->kind != Kind::list) fail("a tensor whose sizes are no tuple");
    if (o->items.size() > max_pickled_dims) fail("a tensor with " + std::to_string(o->items.size()) + " dimensions");
    std::vector<int64_t> out;
    for (const PickleObject* item : o->items) {
      if (item->kind != Kind::integer) fail("a tensor with a size that is no integer");
      out.push_back(item->integer);
    }
    return out;
  }
  static bool truth(const PickleObject* o) { return o->kind == Kind::boolean && o->boolean; }

  Tensor tensor(const PickleObject* storage_object, const PickleObject* offset, const PickleObject* size,
                const PickleObject* stride, bool requires_grad, std::optional<DType> dtype) {
    const StorageRecord& s = storage(storage_object, dtype);
    if (offset->kind != Kind::integer) fail("a tensor whose offset is no integer");
    Tensor t = checked_view(s.storage, dtype.value_or(s.dtype), sizes(size), sizes(stride), offset->integer,
                            what_ + ": a tensor in storage " + std::string(s.key));
    if (requires_grad && (is_floating(t.dtype()) || is_complex(t.dtype()))) t.set_requires_grad();
    return t;
  }

  const PickleObject* argument(const PickleObject* call, size_t i, std::string_view function) const {
    const std::vector<PickleObject*>& args = call->items[1]->items;
    if (i >= args.size()) fail("a call of " + std::string(function) + " with " + std::to_string(args.size()) + " arguments");
    return args[i];
  }

  // ---- calls --------------------------------------------------------------------------------------------------------

  Value call(const PickleObject* o, size_t depth) {
    const std::string_view f = o->items[0]->text;
    const auto arg = [&](size_t i) { return argument(o, i, f); };
    const size_t count = o->items[1]->items.size();
    if (f.starts_with("torch._utils _rebuild_tensor")) {
      enum Place : size_t { storage, offset, size, stride, requires_grad, hooks, dtype };
      const auto rebuilt = [&](bool grad, std::optional<DType> type) {
        return tensor(arg(storage), arg(offset), arg(size), arg(stride), grad, type);
      };
      if (f == "torch._utils _rebuild_tensor") return rebuilt(false, {});
      if (f == "torch._utils _rebuild_tensor_v2") return rebuilt(count > requires_grad && truth(arg(requires_grad)), {});
      if (f == "torch._utils _rebuild_tensor_v3") return rebuilt(truth(arg(requires_grad)), dtype_of_global(arg(dtype)));
    }
    if (f == "torch._utils _rebuild_parameter" || f == "torch._utils _rebuild_parameter_with_state") {
      enum Place : size_t { of, requires_grad };
      const Value data = convert(arg(of), depth + 1);
      if (!data.is_tensor()) fail("a parameter that is no tensor");
      // The parameter is a tensor of its own: setting its flag must not change a shared one.
      const Tensor& t = data.to_tensor();
      Tensor parameter = make_view(t, SymInts(t.sym_sizes()), SymInts(t.sym_strides()), t.sym_storage_offset());
      parameter.impl().is_view = false;
      if (truth(arg(requires_grad)) && (is_floating(t.dtype()) || is_complex(t.dtype()))) parameter.set_requires_grad();
      return parameter;
    }
    if (f == "torch._tensor _rebuild_from_type_v2") {
      PickleObject inner;
      inner.kind = Kind::reduced;
      enum Place : size_t { rebuild, type, arguments };
      const auto* function = arg(rebuild);
      const auto* args = arg(arguments);
      if (function->kind != Kind::global || args->kind != Kind::tuple)
        fail("a tensor of a class of its own that is malformed");
      inner.items = {const_cast<PickleObject*>(function), const_cast<PickleObject*>(args)};
      return call(&inner, depth + 1);
    }
    if (f == "torch._utils _rebuild_meta_tensor_no_storage") {
      enum Place : size_t { of_dtype, of_sizes, of_strides };
      Meta meta;
      const std::vector<int64_t> size = sizes(arg(of_sizes));
      const std::vector<int64_t> stride = sizes(arg(of_strides));
      meta.sizes = SymInts(size.begin(), size.end());
      meta.strides = SymInts(stride.begin(), stride.end());
      meta.dtype = dtype_of_global(arg(of_dtype)).value_or(DType::float32);
      meta.device = Device(DeviceType::meta);
      if (size.size() != stride.size()) fail("a meta tensor whose sizes and strides differ in number");
      return make_tensor(meta);
    }
    if (f == "collections OrderedDict" || f == "collections defaultdict" || f == "collections Counter")
      return dict_call(o, f == "collections OrderedDict", depth);
    if (f == "torch Size") return tuple(numbers(sizes(arg(0))));
    if (f == "torch device") {
      enum Place : size_t { name, index };
      if (arg(name)->kind != Kind::string) fail("a device that is no text");
      const std::string_view type = arg(name)->text;
      if (type != "cpu" && type != "cuda" && type != "meta") return Device();
      return Device(type == "cuda"   ? DeviceType::cuda
                    : type == "meta" ? DeviceType::meta
                                     : DeviceType::cpu,
                    count > index && arg(index)->kind == Kind::integer
                        ? static_cast<int8_t>(std::clamp<int64_t>(arg(index)->integer, -1, 127))
                        : int8_t{-1});
    }
    if (f == "_codecs encode" && arg(0)->kind == Kind::string) return convert(arg(0), depth + 1);  // bytes, in protocol 2
    if (f == "builtins complex" || f == "__builtin__ complex") return std::complex<double>(real(arg(0)), real(arg(1)));
    if (f == "builtins slice" || f == "__builtin__ slice")
      return SliceValue{convert(arg(0), depth + 1), convert(arg(1), depth + 1), convert(arg(2), depth + 1)};
    if (f == "builtins bytearray" || f == "__builtin__ bytearray" || f == "__builtin__ set" || f == "builtins set" ||
        f == "builtins frozenset" || f == "__builtin__ frozenset")
      return count == 0 ? list({}) : convert(arg(0), depth + 1);
    if (f == "torch.serialization _get_layout") return Layout::strided;
    return object(o, depth);
  }

  static double real(const PickleObject* o) {
    return o->kind == Kind::floating ? o->floating : static_cast<double>(o->integer);
  }
  static Values numbers(const std::vector<int64_t>& v) { return Values(v.begin(), v.end()); }

  std::optional<DType> dtype_of_global(const PickleObject* o) const {
    if (o->kind != Kind::global) fail("a dtype that is no name");
    const std::string_view text = o->text;
    const std::optional<DType> d = text.starts_with("torch ") ? dtype_from_name(text.substr(6)) : std::nullopt;
    if (!d) fail("an unknown dtype: " + dotted(text));
    return d;
  }

  // OrderedDict(), OrderedDict([[k, v], ...]), and items set afterwards.
  Value dict_call(const PickleObject* o, bool ordered, size_t depth) {
    DictValue d;
    d.ordered = ordered;
    for (const PickleObject* arg : o->items[1]->items) {
      if (arg->kind == Kind::global) continue;  // the factory of a defaultdict
      if (arg->kind == Kind::dict) {
        add_pairs(d, arg->items, depth);
      } else if (arg->kind == Kind::list) {
        for (const PickleObject* pair : arg->items) {
          if ((pair->kind != Kind::list && pair->kind != Kind::tuple) || pair->items.size() != 2)
            fail("a dict of something else than pairs");
          d.items.emplace_back(convert(pair->items[0], depth + 1), convert(pair->items[1], depth + 1));
        }
      } else {
        fail("a dict made of something else than pairs");
      }
    }
    for (size_t i = 2; i < o->items.size(); ++i)
      if (o->items[i]->kind == Kind::list) add_pairs(d, o->items[i]->items, depth);
    return d;
  }
  void add_pairs(DictValue& d, const std::vector<PickleObject*>& items, size_t depth) {
    if (items.size() % 2 != 0) fail("a dict with a key that has no value");
    for (size_t i = 0; i + 1 < items.size(); i += 2)
      d.items.emplace_back(convert(items[i], depth + 1), convert(items[i + 1], depth + 1));
  }

  // Something of a class that is not known: its name and what it was made of.
  Value object(const PickleObject* o, size_t depth) {
    const std::string_view f = o->items[0]->text;
    const size_t space = f.find(' ');
    const std::string_view class_name =
        f.substr(f.rfind('.') == std::string_view::npos || f.rfind('.') < space ? space + 1 : f.rfind('.') + 1);
    const bool looks_like_class = o->made_by_class ||
                                  (!class_name.empty() && class_name[0] >= 'A' && class_name[0] <= 'Z') ||
                                  f == "torch._export.serde.serialize _reconstruct_fake_tensor";
    if (!options_.keep_objects || !looks_like_class || is_dangerous(f.substr(0, space)))
      fail("the pickle calls " + dotted(f) +
           ", which is not among the functions that rebuild tensors and plain containers; it was not called");
    StructValue s;
    s.type = dotted(f);
    s.context = "null";
    for (const PickleObject* a : o->items[1]->items) s.items.push_back(convert(a, depth + 1));
    for (size_t i = 2; i < o->items.size(); ++i) {
      const PickleObject* state = o->items[i];
      if (state->kind == Kind::dict && s.items.size() == s.fields.size()) {
        for (size_t j = 0; j + 1 < state->items.size(); j += 2) {
          if (state->items[j]->kind != Kind::string || state->items[j]->text.size() > max_pickled_name)
            fail("an object with an attribute whose name is no text, or of more than 1000 characters");
          s.fields.emplace_back(state->items[j]->text);
          s.items.push_back(convert(state->items[j + 1], depth + 1));
        }
      } else {
        s.items.push_back(convert(state, depth + 1));
      }
    }
    return s;
  }

  // ---- objects to values ----------------------------------------------------------------------------------------------

  Value convert(const PickleObject* o, size_t depth) {
    if (depth > max_depth) fail("its content is nested deeper than " + std::to_string(max_depth));
    constexpr size_t short_text = 16;
    if (o->items.empty() && o->text.size() <= short_text) {  // as soon made again as found
      add_leaves(1);
      return convert_new(o, depth);
    }
    if (const auto it = done_.find(o); it != done_.end()) {
      if (it->second.leaves == 0) fail("its content contains itself");
      add_leaves(it->second.leaves);
      return it->second.value;
    }
    done_[o] = {};
    const uint64_t before = leaves_;
    Value value = convert_new(o, depth);
    add_leaves(1);
    done_[o] = {value, leaves_ - before};
    return value;
  }
  void add_leaves(uint64_t count) {
    leaves_ += count;
    if (leaves_ > max_leaves) fail("its content has more than " + std::to_string(max_leaves) + " parts");
  }

  Value convert_new(const PickleObject* o, size_t depth) {
    switch (o->kind) {
      case Kind::none: return {};
      case Kind::boolean: return o->boolean;
      case Kind::integer: return o->integer;
      case Kind::floating: return o->floating;
      case Kind::string:
      case Kind::bytes: return o->text;
      case Kind::list:
      case Kind::set:
      case Kind::tuple: {
        Values items;
        items.reserve(o->items.size());
        for (const PickleObject* item : o->items) items.push_back(convert(item, depth + 1));
        return o->kind == Kind::tuple ? tuple(std::move(items)) : list(std::move(items));
      }
      case Kind::dict: {
        DictValue d;
        add_pairs(d, o->items, depth);
        return d;
      }
      case Kind::global:
        if (o->text.starts_with("torch "))
          if (const std::optional<DType> d = dtype_from_name(o->text.substr(6))) return *d;
        fail("the pickle names " + dotted(o->text) + ", which is not plain data");
      case Kind::persistent: {
        const StorageRecord& s = storage(o);
        return from_storage(s.storage, s.dtype, std::vector<int64_t>{static_cast<int64_t>(s.numel)}, std::vector<int64_t>{1},
                            0);
      }
      case Kind::reduced: return call(o, depth);
    }
    fail("an object of no kind");
  }

  struct Done {
    Value value;
    uint64_t leaves = 0;  // 0 while it is being converted
  };
  std::span<const std::byte> bytes_;
  std::shared_ptr<const void> owner_;
  std::string what_;
  PickleOptions options_;
  bool big_endian_ = false;
  std::function<StoredBytes(const StorageRecord&)> find_storage_;
  std::unordered_map<std::string_view, size_t> legacy_item_size_;
  std::unordered_map<const PickleObject*, StorageRecord> storages_;
  struct Loaded {
    Ref<Storage> storage;
    size_t width = 1;  // of the numbers whose bytes were swapped
  };
  std::unordered_map<std::string_view, Loaded> by_key_;
  std::unordered_map<const PickleObject*, Done> done_;
  uint64_t leaves_ = 0;
};

}  // namespace

Value read_pickle(std::span<const std::byte> bytes, std::shared_ptr<const void> owner, const std::string& what,
                  const PickleOptions& options) {
  return reading_format(FileFormat::checkpoint, bytes, what,
                        [&] { return offer_content(PickleReader(bytes, owner, what, options).read()); });
}

Value load_pickle(const std::string& path, const PickleOptions& options) {
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  return read_pickle(file->bytes(), file, path, options);
}

}  // namespace calque
