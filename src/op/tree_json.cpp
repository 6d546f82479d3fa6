#include "tree_json.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "calque/base/error.h"
#include "calque/tensor/number_text.h"

namespace calque {

namespace {

using Json = nlohmann::ordered_json;

// Types whose children are named by mapping keys although their context looks like a dataclass's.
constexpr std::string_view mapping_types[] = {"transformers.cache_utils.DynamicCache"};

[[noreturn]] void refuse(const std::string& what) {
  throw UserError(ErrorKind::bad_file, tree_json::cut("tree spec: " + what));
}

using What = std::function<std::string()>;  // names a text in errors; not made before there is one

// Builds JSON as it is read. The builder of nlohmann's that counts levels looks at all elements of an array when one of them
// ends, and objects look for each new key among all others; here both take constant time.
class Builder final : public nlohmann::json_sax<Json> {
 public:
  Builder(size_t deepest, size_t size, const What& what) : deepest_(deepest), size_(size), what_(what) {}
  Json take() { return std::move(root_); }

  bool null() override { return put(nullptr); }
  bool boolean(bool v) override { return put(v); }
  bool number_integer(number_integer_t v) override { return put(v); }
  bool number_unsigned(number_unsigned_t v) override { return put(v); }
  bool number_float(number_float_t v, const string_t&) override { return put(v); }
  bool string(string_t& v) override { return put(std::move(v)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return open(Json::object()); }
  bool start_array(size_t) override { return open(Json::array()); }
  bool key(string_t& name) override {
    open_.back().key = std::move(name);
    return true;
  }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception& e) override {
    constexpr int out_of_range = 406;
    if (e.id == out_of_range) refuse(what_() + " holds a number that is too large");
    refuse(what_() + " is not valid JSON at byte " + std::to_string(position) + " of " + std::to_string(size_));
  }

 private:
  struct Container {
    Json value;
    std::string key;                                      // of an object's next member
    std::unordered_map<std::string, size_t> places = {};  // of an object's members, once they are many
  };
  static constexpr size_t few = 16;

  bool open(Json empty) {
    check_depth();
    open_.push_back({std::move(empty), ""});
    return true;
  }
  bool close() {
    Json done = std::move(open_.back().value);
    open_.pop_back();
    return put(std::move(done));
  }
  bool put(Json value) {
    check_depth();
    if (open_.empty())
      root_ = std::move(value);
    else if (open_.back().value.is_array())
      open_.back().value.get_ref<Json::array_t&>().push_back(std::move(value));
    else
      set_member(open_.back(), std::move(value));
    return true;
  }
  // As Python: of members with the same name, the last one, in the place of the first.
  static void set_member(Container& object, Json value) {
    auto& members = object.value.get_ref<Json::object_t&>();
    if (members.size() < few) {
      object.value[object.key] = std::move(value);
      return;
    }
    if (object.places.empty())
      for (const auto& [name, known] : members) object.places.emplace(name, object.places.size());
    const auto [at, fresh] = object.places.emplace(object.key, members.size());
    if (fresh)
      members.emplace_back(object.key, std::move(value));
    else
      std::next(members.begin(), static_cast<std::ptrdiff_t>(at->second))->second = std::move(value);
  }
  void check_depth() const {
    if (open_.size() > deepest_) refuse(what_() + " is nested deeper than " + std::to_string(deepest_) + " levels");
  }

  size_t deepest_, size_;
  const What& what_;
  std::vector<Container> open_;
  Json root_;
};

Json parse(std::string_view text, size_t deepest, const What& what) {
  Builder builder(deepest, text.size(), what);
  Json::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

constexpr size_t deepest_context = 100;

// The value that a context stands for: where PyTorch used json.dumps it is a string holding JSON.
Json loaded_context(std::string_view type, const std::string& context) {
  const What what = [type] { return "the context of " + std::string(type); };
  Json outer = parse(context, deepest_context, what);
  if (outer.is_string() && type != tree_json::namedtuple_type)
    return parse(outer.get_ref<const std::string&>(), deepest_context, what);
  return outer;
}

bool beyond_int64(const Json& j) { return j.is_number_unsigned() && j.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX); }
bool is_key(const Json& j) { return !j.is_array() && !j.is_object() && !beyond_int64(j); }

Value key_value(const Json& j) {
  if (j.is_null()) return None{};
  if (j.is_boolean()) return j.get<bool>();
  if (j.is_number_float()) return j.get<double>();
  if (beyond_int64(j)) refuse("the key " + j.dump() + " is beyond 64-bit integers");
  if (j.is_number_integer()) return j.get<int64_t>();
  if (j.is_string()) return j.get<std::string>();
  refuse("a dict key must be a string, a number, true, false or null, found " + std::string(j.type_name()));
}

bool is_list_of(const Json& j, bool (*accepts)(const Json&)) {
  return j.is_array() && std::all_of(j.begin(), j.end(), [&](const Json& x) { return accepts(x); });
}
bool is_string(const Json& j) { return j.is_string(); }

std::string float_text(double v) {
  if (std::isnan(v)) return "NaN";
  if (std::isinf(v)) return v < 0 ? "-Infinity" : "Infinity";
  return python_repr(v);
}

// As Python's json.dumps with its default settings.
void write(const Json& j, std::string& out) {
  switch (j.type()) {
    case Json::value_t::object: {
      out += '{';
      bool first = true;
      for (const auto& [key, value] : j.items()) {
        if (!first) out += ", ";
        first = false;
        out += tree_json::quote(key) + ": ";
        write(value, out);
      }
      out += '}';
      break;
    }
    case Json::value_t::array: {
      out += '[';
      for (size_t i = 0; i < j.size(); ++i) {
        if (i != 0) out += ", ";
        write(j[i], out);
      }
      out += ']';
      break;
    }
    case Json::value_t::string: out += tree_json::quote(j.get_ref<const std::string&>()); break;
    case Json::value_t::number_float: out += float_text(j.get<double>()); break;
    case Json::value_t::null:
    case Json::value_t::boolean:
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
    case Json::value_t::binary:
    case Json::value_t::discarded: out += j.dump(); break;
  }
}

std::string json_repr(const Json& j) {
  std::string out;
  if (j.is_object()) {
    for (const auto& [key, value] : j.items()) out += (out.empty() ? "" : ", ") + Value(key).str() + ": " + json_repr(value);
    return "{" + out + "}";
  }
  if (j.is_array()) {
    for (const Json& item : j) out += (out.empty() ? "" : ", ") + json_repr(item);
    return "[" + out + "]";
  }
  return beyond_int64(j) ? j.dump() : key_value(j).str();
}

std::string json_of_key(const Value& key) {
  if (key.kind() == Value::Kind::string) return tree_json::quote(key.to_string());
  if (key.is_none()) return "null";
  if (key.kind() == Value::Kind::boolean) return key.to_bool() ? "true" : "false";
  if (key.kind() == Value::Kind::integer) return std::to_string(key.to_int());
  if (key.kind() == Value::Kind::floating) return float_text(key.to_float());
  throw UserError("treespec_dumps: a dict key of kind " + std::string(Value::kind_name(key.kind())) + " has no JSON form");
}

std::string key_list(const Values& keys) {
  std::string out = "[";
  for (size_t i = 0; i < keys.size(); ++i) {
    if (i != 0) out += ", ";
    out += json_of_key(keys[i]);
  }
  return out + "]";
}

void write(const TreeSpec& spec, std::string& out) {
  if (spec.is_leaf()) {
    out += R"({"type": null, "context": null, "children_spec": []})";
    return;
  }
  std::string context;
  switch (spec.kind()) {
    case TreeSpec::Kind::leaf:
    case TreeSpec::Kind::tuple:
    case TreeSpec::Kind::list: context = R"("null")"; break;
    case TreeSpec::Kind::dict:
    case TreeSpec::Kind::ordered_dict: context = tree_json::quote(key_list(spec.dict_keys())); break;
    case TreeSpec::Kind::structure: context = spec.context(); break;
  }
  out += "{\"type\": " + tree_json::quote(spec.type()) + ", \"context\": " + context + ", \"children_spec\": [";
  for (size_t i = 0; i < spec.num_children(); ++i) {
    if (i != 0) out += ", ";
    write(spec.children()[i], out);
  }
  out += "]}";
}

// Where in the text a spec stands.
struct Where {
  const Where* parent = nullptr;
  size_t child = 0;
  std::string str() const { return parent ? parent->str() + ".children_spec[" + std::to_string(child) + "]" : "spec"; }
};

class Loader {
 public:
  explicit Loader(const NamedTupleFields& namedtuples) : namedtuples_(namedtuples) {}

  TreeSpec load(const Json& j, const Where& where) const {
    if (!j.is_object()) refuse(where.str() + " must be an object, found " + j.type_name());
    const Json& type = member(j, "type", where);
    const Json& context = member(j, "context", where);
    const Json& child_list = member(j, "children_spec", where);
    if (!child_list.is_array()) refuse(where.str() + ".children_spec must be an array, found " + child_list.type_name());
    if (type.is_null()) {
      if (!context.is_null() || !child_list.empty()) refuse(where.str() + " has no type but a context or children");
      return {};
    }
    if (!type.is_string() || type.get_ref<const std::string&>().empty())
      refuse(where.str() + ".type must be a name or null, found " + type.dump());
    std::vector<TreeSpec> children;
    children.reserve(child_list.size());
    for (size_t i = 0; i < child_list.size(); ++i) children.push_back(load(child_list[i], {&where, i}));
    return node(type.get<std::string>(), context, std::move(children), where);
  }

 private:
  static const Json& member(const Json& j, const char* name, const Where& where) {
    const auto found = j.find(name);
    if (found == j.end()) refuse(where.str() + " has no \"" + name + "\"");
    return *found;
  }

  TreeSpec node(std::string type, const Json& context, std::vector<TreeSpec> children, const Where& where) const {
    if (type == tree_json::tuple_type || type == tree_json::list_type) {
      if (context != "null") refuse(where.str() + ".context of " + type + " must be \"null\", found " + context.dump());
      return type == tree_json::tuple_type ? TreeSpec::tuple(std::move(children)) : TreeSpec::list(std::move(children));
    }
    if (type == tree_json::dict_type || type == tree_json::ordered_dict_type)
      return dict(type, context, std::move(children), where);
    std::string text;
    write(context, text);
    std::vector<std::string> fields;
    if (type == tree_json::namedtuple_type) {
      if (!context.is_string()) refuse(where.str() + ".context of a namedtuple must be its name, found " + context.dump());
      const auto known = namedtuples_.find(context.get_ref<const std::string&>());
      if (known != namedtuples_.end()) {
        fields = known->second;
        if (fields.size() != children.size())
          refuse(where.str() + ": namedtuple " + known->first + " has " + std::to_string(fields.size()) + " fields, found " +
                 std::to_string(children.size()) + " children");
      }
    } else {
      fields = names(type, text, children.size());
    }
    return TreeSpec::structure(std::move(type), std::move(text), std::move(fields), std::move(children));
  }

  static TreeSpec dict(const std::string& type, const Json& context, std::vector<TreeSpec> children, const Where& where) {
    if (!context.is_string()) refuse(where.str() + ".context of " + type + " must be a string, found " + context.dump());
    const Json list =
        parse(context.get_ref<const std::string&>(), deepest_context, [&] { return where.str() + ".context"; });
    if (!list.is_array()) refuse(where.str() + ".context of " + type + " must hold a list of keys, found " + list.dump());
    if (list.size() != children.size())
      refuse(where.str() + ": " + type + " has " + std::to_string(list.size()) + " keys for " +
             std::to_string(children.size()) + " children");
    Values keys;
    for (const Json& key : list) keys.push_back(key_value(key));
    return TreeSpec::dict(std::move(keys), std::move(children), type == tree_json::ordered_dict_type);
  }

  // Names for the fields of a type that only its context describes. A context that says nothing gives none.
  static std::vector<std::string> names(const std::string& type, const std::string& context, size_t count) {
    std::vector<std::string> out;
    for (const TreeKey& key : tree_json::structure_keys(type, context, {}, count)) {
      if (key.kind == TreeKey::Kind::index) return {};
      out.push_back(key.key.kind() == Value::Kind::string ? key.key.to_string() : key.key.str());
    }
    return out;
  }

  const NamedTupleFields& namedtuples_;
};

void collect_namedtuples(const TreeSpec& spec, NamedTupleFields& out) {
  if (spec.kind() == TreeSpec::Kind::structure && spec.type() == tree_json::namedtuple_type) {
    const std::string name = tree_json::unquote(spec.context());
    const auto [at, fresh] = out.emplace(name, spec.fields());
    if (!fresh && at->second != spec.fields())
      throw UserError("treespec: two namedtuples with different fields are both registered as " + name);
  }
  for (const TreeSpec& child : spec.children()) collect_namedtuples(child, out);
}

}  // namespace

namespace tree_json {

std::string cut(std::string message) {
  constexpr size_t longest = 1000;
  if (message.size() <= longest) return message;
  size_t end = longest;
  while ((static_cast<unsigned char>(message[end]) & 0xC0) == 0x80) --end;
  return message.substr(0, end) + "...";
}

std::string quote(std::string_view utf8) {
  try {
    // Strings are where nlohmann and Python agree: short escapes, the rest outside ASCII as lower-case \uXXXX.
    return Json(utf8).dump(-1, ' ', true);
  } catch (const Json::type_error&) {
    throw UserError("treespec: a string is not valid UTF-8");
  }
}

std::string name_list_context(const std::vector<std::string>& names) {
  return quote(key_list(Values(names.begin(), names.end())));
}

std::string unquote(const std::string& context) {
  const Json j = parse(context, deepest_context, [] { return "the context"; });
  return j.is_string() ? j.get<std::string>() : context;
}

std::vector<TreeKey> structure_keys(std::string_view type, const std::string& context,
                                    const std::vector<std::string>& fields, size_t count) {
  std::vector<TreeKey> out;
  const auto add = [&](const Json& names, TreeKey::Kind kind) {
    for (const Json& name : names) out.push_back({kind, key_value(name)});
  };
  if (type != namedtuple_type && type != deque_type) {
    Json j;
    try {
      j = loaded_context(type, context);
    } catch (const UserError&) {
      j = nullptr;  // a context of a form of its own, which names nothing
    }
    if (type == default_dict_type && j.is_object() && j.contains("dict_context")) j = Json(j["dict_context"]);
    if (is_list_of(j, is_key) && j.size() == count &&
        (type == default_dict_type || is_list_of(j, is_string) || fields.empty())) {
      add(j, TreeKey::Kind::mapping);
      return out;
    }
    if (j.is_array() && j.size() == 2 && is_list_of(j[0], is_string) && j[0].size() == count && j[1].is_array()) {
      const bool mapping = !is_list_of(j[1], is_string) ||
                           std::find(std::begin(mapping_types), std::end(mapping_types), type) != std::end(mapping_types);
      add(j[0], mapping ? TreeKey::Kind::mapping : TreeKey::Kind::attribute);
      return out;
    }
  }
  const bool named = type != deque_type && fields.size() == count;
  for (size_t i = 0; i < count; ++i)
    out.push_back(named ? TreeKey{TreeKey::Kind::attribute, fields[i]} : TreeKey{TreeKey::Kind::index, Value(i)});
  return out;
}

std::string context_repr(std::string_view type, const std::string& context) {
  if (type == namedtuple_type) return "<class '" + unquote(context) + "'>";
  Json j;
  try {
    j = loaded_context(type, context);
  } catch (const UserError&) {
    return context;
  }
  if (type == default_dict_type && j.is_object() && j.contains("default_factory_name") && j.contains("dict_context")) {
    const Json& module = j["default_factory_module"];
    const std::string name = unquote(j["default_factory_name"].dump());
    const std::string full = module == "builtins" ? name : unquote(module.dump()) + "." + name;
    return "[<class '" + full + "'>, " + json_repr(j["dict_context"]) + "]";
  }
  return json_repr(j);
}

}  // namespace tree_json

std::string treespec_dumps(const TreeSpec& spec) {
  std::string out = "[1, ";
  write(spec, out);
  return out + "]";
}

TreeSpec treespec_loads(std::string_view text, const NamedTupleFields& namedtuples) {
  // A level of the tree is two of JSON, and a context may have some of its own.
  const Json j = parse(text, 2 * TreeSpec::max_depth + deepest_context, [] { return "the text"; });
  if (!j.is_array() || j.size() != 2) refuse("expected [protocol, spec], found " + std::string(j.type_name()));
  if (j[0] != 1) refuse("unknown protocol " + j[0].dump() + "; this reads protocol 1");
  return Loader(namedtuples).load(j[1], {});
}

NamedTupleFields namedtuple_fields(const TreeSpec& spec) {
  NamedTupleFields out;
  collect_namedtuples(spec, out);
  return out;
}

std::string quoted_context(std::string_view json) { return tree_json::quote(json); }

}  // namespace calque
