// Writes what torch.save writes: a pickle of protocol 2 in a zip, with the storages beside it.
#include <cstring>
#include <optional>
#include <unordered_map>

#include "calque/base/error.h"
#include "calque/file/file_writer.h"
#include "calque/file/pickle.h"
#include "calque/file/zip.h"

namespace calque {
namespace {

std::string_view storage_class(DType d) {
  switch (d) {
    case DType::float32: return "FloatStorage";
    case DType::float64: return "DoubleStorage";
    case DType::float16: return "HalfStorage";
    case DType::bfloat16: return "BFloat16Storage";
    case DType::int64: return "LongStorage";
    case DType::int32: return "IntStorage";
    case DType::int16: return "ShortStorage";
    case DType::int8: return "CharStorage";
    case DType::uint8: return "ByteStorage";
    case DType::bool_: return "BoolStorage";
    case DType::complex64: return "ComplexFloatStorage";
    case DType::complex128: return "ComplexDoubleStorage";
    case DType::uint16:
    case DType::uint32:
    case DType::uint64:
    case DType::float8_e4m3fn:
    case DType::float8_e5m2:
    case DType::float8_e4m3fnuz:
    case DType::float8_e5m2fnuz:
    case DType::float8_e8m0fnu: return {};
  }
  return {};
}

constexpr size_t short_text = 16;  // as soon written again as referred to

class PickleWriter {
 public:
  void run(const Value& value, ZipWriter::Sink sink) {
    out_ = "\x80\x02";
    write(value, 0);
    out_ += '.';
    ZipWriter zip(std::move(sink), "archive");
    zip.add("data.pkl", out_);
    zip.add(".format_version", "1");
    zip.add(".storage_alignment", "64");
    zip.add("byteorder", "little");
    for (size_t i = 0; i < storages_.size(); ++i)
      zip.add("data/" + std::to_string(i),
              std::span(static_cast<const std::byte*>(storages_[i]->data()), storages_[i]->nbytes()));
    zip.add("version", "3\n");
    zip.add(".data/serialization_id", std::to_string(zip.fingerprint()));
    zip.finish();
  }

 private:
  template <class T>
  void raw(T value) {
    char bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof(T));
    out_.append(bytes, sizeof(T));
  }
  void text(std::string_view s) {
    if (s.size() > UINT32_MAX) throw UserError("write_pickle: a text of more than 4 GiB cannot be written");
    out_ += 'X';
    raw(static_cast<uint32_t>(s.size()));
    out_ += s;
  }
  void integer(int64_t v) {
    if (v >= 0 && v < 256) {
      out_ += 'K';
      out_ += static_cast<char>(v);
    } else if (v >= INT32_MIN && v <= INT32_MAX) {
      out_ += 'J';
      raw(static_cast<int32_t>(v));
    } else {
      out_ += "\x8a\x08";
      raw(v);
    }
  }
  void floating(double v) {
    uint64_t bits;
    std::memcpy(&bits, &v, sizeof bits);
    out_ += 'G';
    for (int shift = 56; shift >= 0; shift -= 8) out_ += static_cast<char>(bits >> shift & 255U);
  }
  void global(std::string_view module, std::string_view name) {
    out_ += "c" + std::string(module) + "\n" + std::string(name) + "\n";
  }

  // What stands in several places is written once, as Python does it: a small value may stand for a large tree.
  bool is_known(const void* object) {
    const auto it = written_.find(object);
    if (it == written_.end()) return false;
    out_ += 'j';
    raw(it->second);
    return true;
  }
  void remember(const void* object) {
    const auto place = static_cast<uint32_t>(written_.size());
    written_.emplace(object, place);
    if (place < 256) {
      out_ += 'q';
      out_ += static_cast<char>(place);
    } else {
      out_ += 'r';
      raw(place);
    }
  }

  void write(const Value& v, size_t depth) {
    if (depth > 200) throw UserError("write_pickle: the value is nested deeper than 200");
    switch (v.kind()) {
      case Value::Kind::none: out_ += 'N'; return;
      case Value::Kind::boolean: out_ += v.to_bool() ? '\x88' : '\x89'; return;
      case Value::Kind::integer: integer(v.to_int()); return;
      case Value::Kind::floating: floating(v.to_float()); return;
      case Value::Kind::complex:
        global("__builtin__", "complex");
        floating(v.to_complex().real());
        floating(v.to_complex().imag());
        out_ += "\x86R";
        return;
      case Value::Kind::string:
        if (is_known(&v.to_string())) return;
        text(v.to_string());
        if (v.to_string().size() > short_text) remember(&v.to_string());
        return;
      case Value::Kind::tensor: tensor(v.to_tensor()); return;
      case Value::Kind::dtype: global("torch", name(v.to_dtype())); return;
      case Value::Kind::device: device(v.to_device()); return;
      case Value::Kind::list:
        if (is_known(&v.to_items())) return;
        out_ += "](";
        for (const Value& item : v.to_items()) write(item, depth + 1);
        out_ += 'e';
        return remember(&v.to_items());
      case Value::Kind::tuple:
        if (is_known(&v.to_items())) return;
        out_ += '(';
        for (const Value& item : v.to_items()) write(item, depth + 1);
        out_ += 't';
        return remember(&v.to_items());
      case Value::Kind::dict:
        if (is_known(&v.to_dict())) return;
        if (v.to_dict().ordered) {
          global("collections", "OrderedDict");
          out_ += ")R(";
        } else {
          out_ += "}(";
        }
        for (const auto& [key, item] : v.to_dict().items) {
          write(key, depth + 1);
          write(item, depth + 1);
        }
        out_ += 'u';
        return remember(&v.to_dict());
      case Value::Kind::structure: {
        const StructValue& s = v.to_struct();
        if (is_known(&s)) return;
        const bool named = !s.fields.empty() && s.fields.size() == s.items.size() && s.type != "collections.namedtuple";
        out_ += named ? "}(" : "(";
        for (size_t i = 0; i < s.items.size(); ++i) {
          if (named) text(s.fields[i]);
          write(s.items[i], depth + 1);
        }
        out_ += named ? 'u' : 't';
        return remember(&s);
      }
      case Value::Kind::slice:
      case Value::Kind::layout:
      case Value::Kind::memory_format:
      case Value::Kind::generator:
      case Value::Kind::node: break;
    }
    throw UserError("write_pickle: a value of kind " + std::string(Value::kind_name(v.kind())) + " cannot be written");
  }

  void device(Device d) {
    const std::string type = Device(d.type).str();
    global("torch", "device");
    out_ += '(';
    text(type);
    if (d.index >= 0) integer(d.index);
    out_ += "tR";
  }

  void sizes(IntList list) {
    out_ += '(';
    for (const int64_t n : list) integer(n);
    out_ += 't';
  }

  void tensor(const Tensor& t) {
    if (t.is_fake() || !t.storage()->has_data())
      throw UserError("write_pickle: a tensor without data (fake or on the meta device) cannot be written");
    const auto [it, fresh] = keys_.emplace(t.storage().get(), storages_.size());
    if (fresh) storages_.push_back(t.storage());
    const std::string_view typed = storage_class(t.dtype());
    global("torch._utils", typed.empty() ? "_rebuild_tensor_v3" : "_rebuild_tensor_v2");
    out_ += "((";
    text("storage");
    if (typed.empty())
      global("torch.storage", "UntypedStorage");
    else
      global("torch", typed);
    text(std::to_string(it->second));
    text("cpu");
    integer(static_cast<int64_t>(t.storage()->nbytes() / (typed.empty() ? 1 : item_size(t.dtype()))));
    out_ += "tQ";
    integer(t.storage_offset());
    sizes(t.sizes());
    sizes(t.strides());
    out_ += t.requires_grad() ? '\x88' : '\x89';
    global("collections", "OrderedDict");
    out_ += ")R";
    if (typed.empty()) global("torch", name(t.dtype()));
    out_ += "tR";
  }

  std::string out_;
  std::vector<Ref<Storage>> storages_;
  std::unordered_map<const Storage*, size_t> keys_;
  std::unordered_map<const void*, uint32_t> written_;  // by where they are kept
};

}  // namespace

std::string write_pickle(const Value& value) {
  std::string bytes;
  PickleWriter().run(value, [&](std::span<const std::byte> part) {
    bytes.append(reinterpret_cast<const char*>(part.data()), part.size());
  });
  return bytes;
}

void save_pickle(const std::string& path, const Value& value, bool sync) {
  // Opened at the first bytes: what cannot be written is found before anything is created.
  std::optional<FileWriter> file;
  PickleWriter().run(value, [&](std::span<const std::byte> part) {
    if (!file) file.emplace(path);
    file->write(part);
  });
  file->commit(sync);
}

}  // namespace calque
