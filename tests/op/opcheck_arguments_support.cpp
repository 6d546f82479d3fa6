// Case files and the way from their JSON to Calque's Values.

#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "op/opcheck_support.h"

namespace calque::opcheck {

using Json = nlohmann::json;

struct CaseFile::Impl {
  std::vector<Json> entries;
  std::string bytes;
};

namespace {

std::string read_whole(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw UserError(ErrorKind::bad_file, "cannot read " + path);
  std::ostringstream out;
  out << in.rdbuf();
  return std::move(out).str();
}

double special_float(const std::string& text) {
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  return text == "inf" ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
}

Layout layout_from_name(const std::string& text) {
  for (const Layout l : {Layout::strided, Layout::sparse_coo, Layout::sparse_csr, Layout::mkldnn, Layout::jagged})
    if (name(l) == "torch." + text) return l;
  throw UserError("unknown layout " + text);
}

MemoryFormat memory_format_from_name(const std::string& text) {
  for (const MemoryFormat m :
       {MemoryFormat::contiguous, MemoryFormat::preserve, MemoryFormat::channels_last, MemoryFormat::channels_last_3d})
    if (name(m) == "torch." + text) return m;
  throw UserError("unknown memory format " + text);
}

class Maker {
 public:
  Maker() : data_(Data::real) {}
  Maker(const CaseFile& file, const Json& entry, Data data) : data_(data) {
    for (const Json& span : entry.at("storages")) {
      const std::string_view bytes = file.blob(span);
      Ref<Storage> s = data == Data::real ? Storage::allocate(bytes.size()) : Storage::without_data(bytes.size());
      if (data == Data::real && !bytes.empty()) std::memcpy(s->data(), bytes.data(), bytes.size());
      storages.push_back(std::move(s));
    }
  }

  // `tensor_wanted`: a number here is a wrapped one, as Python's numbers are where a tensor is expected.
  Value value(const Json& v, bool tensor_wanted) const {
    switch (v.type()) {
      case Json::value_t::null: return {};
      case Json::value_t::boolean: return number(v.get<bool>(), tensor_wanted);
      case Json::value_t::number_integer: return number(v.get<int64_t>(), tensor_wanted);
      case Json::value_t::number_unsigned: return number(v.get<int64_t>(), tensor_wanted);
      case Json::value_t::number_float: return number(v.get<double>(), tensor_wanted);
      case Json::value_t::string: return Value(v.get<std::string>());
      case Json::value_t::array: {
        Values items;
        for (const Json& x : v) items.push_back(value(x, tensor_wanted));
        return list(std::move(items));
      }
      default: return object(v, tensor_wanted);
    }
  }

  std::vector<Ref<Storage>> storages;

 private:
  template <class T>
  static Value number(T v, bool tensor_wanted) {
    return tensor_wanted ? Value(wrapped_scalar(Scalar(v))) : Value(v);
  }

  Value object(const Json& v, bool tensor_wanted) const {
    if (v.contains("t")) return tensor(v);
    if (v.contains("f")) return number(special_float(v["f"].get<std::string>()), tensor_wanted);
    if (v.contains("c"))
      return number(std::complex<double>(v["c"][0].get<double>(), v["c"][1].get<double>()), tensor_wanted);
    if (v.contains("dtype")) return Value(dtype_from_name(v["dtype"].get<std::string>()).value());
    if (v.contains("device")) return Value(Device(v["device"].get<std::string>()));
    if (v.contains("layout")) return Value(layout_from_name(v["layout"].get<std::string>()));
    if (v.contains("memory_format")) return Value(memory_format_from_name(v["memory_format"].get<std::string>()));
    throw UserError("a case holds an argument that this program does not know: " + v.dump());
  }

  Value tensor(const Json& v) const {
    const DType dtype = dtype_from_name(v.at("dtype").get<std::string>()).value();
    const auto sizes = v.at("sizes").get<std::vector<int64_t>>();
    const auto strides = v.at("strides").get<std::vector<int64_t>>();
    const auto offset = v.at("offset").get<int64_t>();
    Tensor t = from_storage(storages.at(v.at("t").get<size_t>()), dtype, sizes, strides, offset);
    t.impl().special = data_ == Data::fake;
    return Value(std::move(t));
  }

  Data data_;
};

bool wants_tensor(const SchemaType& type) { return type.kind == SchemaType::Kind::tensor; }

}  // namespace

CaseFile::CaseFile(const std::string& jsonl_path) : impl_(std::make_unique<Impl>()) {
  std::istringstream lines(read_whole(jsonl_path));
  std::string line;
  while (std::getline(lines, line))
    if (!line.empty()) impl_->entries.push_back(Json::parse(line));
  const std::string stem = jsonl_path.substr(0, jsonl_path.rfind('.'));
  impl_->bytes = read_whole(stem + ".bin");
}
CaseFile::~CaseFile() = default;
CaseFile::CaseFile(CaseFile&&) noexcept = default;
CaseFile& CaseFile::operator=(CaseFile&&) noexcept = default;

size_t CaseFile::size() const { return impl_->entries.size(); }
const Json& CaseFile::at(size_t index) const { return impl_->entries.at(index); }
std::string CaseFile::operator_at(size_t index) const { return at(index).at("op").get<std::string>(); }
std::string_view CaseFile::blob(const Json& span) const {
  const auto offset = span.at(0).get<size_t>(), bytes = span.at(1).get<size_t>();
  if (offset > impl_->bytes.size() || bytes > impl_->bytes.size() - offset)
    throw UserError(ErrorKind::bad_file, "a case points behind the end of its .bin file");
  return std::string_view(impl_->bytes).substr(offset, bytes);
}

Arguments make_arguments(const CaseFile& file, const Json& entry, const Operator& op, Data data) {
  Maker maker(file, entry, data);
  Arguments out;
  const auto& schema = op.schema().arguments;
  const Json& positional = entry.at("args");
  for (size_t i = 0; i < positional.size(); ++i)
    out.positional.push_back(maker.value(positional[i], i < schema.size() && wants_tensor(schema[i].type)));
  for (const auto& [key, v] : entry.at("kwargs").items()) {
    const auto at = op.schema().find_argument(key);
    out.keyword.emplace_back(key, maker.value(v, at && wants_tensor(schema[*at].type)));
  }
  out.storages = std::move(maker.storages);
  return out;
}

Value plain_value(const Json& v, bool tensor_wanted) { return Maker().value(v, tensor_wanted); }

std::string describe_call(const Json& entry) {
  const auto shorten = [](const auto& self, const Json& v) -> std::string {
    if (v.is_array()) {
      std::string s = "[";
      for (size_t i = 0; i < v.size(); ++i) s += (i ? ", " : "") + self(self, v[i]);
      return s + "]";
    }
    if (v.is_object() && v.contains("sizes")) {
      std::string s = v["dtype"].get<std::string>() + v["sizes"].dump();
      s += " strides " + v["strides"].dump();
      if (v["offset"] != 0) s += " offset " + v["offset"].dump();
      if (v.contains("t")) s += " #" + v["t"].dump();
      return s;
    }
    return v.dump();
  };
  std::string s = entry.at("op").get<std::string>() + "(";
  const char* comma = "";
  for (const Json& v : entry.at("args")) {
    s += comma + shorten(shorten, v);
    comma = ", ";
  }
  for (const auto& [key, v] : entry.at("kwargs").items()) {
    s += comma + key + "=" + shorten(shorten, v);
    comma = ", ";
  }
  return s + ")";
}

void flatten_into(const Value& value, Values& out) {
  if (value.kind() == Value::Kind::list || value.kind() == Value::Kind::tuple) {
    for (const Value& v : value.to_items()) flatten_into(v, out);
  } else {
    out.push_back(value);
  }
}

Values results_of(const Operator& op, const Value& value) {
  switch (op.schema().returns.size()) {
    case 0: return {};
    case 1: return {value};
    default: return value.to_items();
  }
}

}  // namespace calque::opcheck
