// JSON: what tojson writes (json.dumps, with the arguments that transformers gives it), and what is given as JSON.
#include <algorithm>
#include <cmath>

#include "calque/file/json.h"
#include "calque/tensor/number_text.h"
#include "text/jinja/operators.h"
#include "text/jinja/python_text.h"
#include "text/utf8.h"

namespace calque::jinja {
namespace {

class JsonText {
 public:
  JsonText(Budget& budget, const JsonStyle& style) : budget_(budget), style_(style), out_(budget) {}
  std::string take() { return out_.take(); }

  void value(const Value& value, size_t level) {
    budget_.spend(1);
    switch (value.kind()) {
      case Kind::none: out_ += "null"; return;
      case Kind::boolean: out_ += value.boolean() ? "true" : "false"; return;
      case Kind::integer: out_ += std::to_string(value.integer()); return;
      case Kind::floating: out_ += number(value.floating()); return;
      case Kind::text: quoted(value.text().bytes); return;
      case Kind::list:
      case Kind::tuple: {
        const auto& items = value.list().items;
        container('[', ']', items.size(), level, [&](size_t i) { this->value(items[i], level + 1); });
        return;
      }
      case Kind::dict: object(value.dict(), level); return;
      case Kind::undefined:
      case Kind::view:
      case Kind::range:
      case Kind::iterator:
      case Kind::names:
      case Kind::function:
      case Kind::loop:
      case Kind::cycler: break;
    }
    type_error(std::string("Object of type ") + type_name(value) + " is not JSON serializable");
  }

 private:
  static std::string number(double d) {
    if (std::isnan(d)) return "NaN";
    if (std::isinf(d)) return d > 0 ? "Infinity" : "-Infinity";
    return python_repr(d);
  }

  void object(const Dict& dict, size_t level) {
    std::vector<std::pair<Value, Value>> members = dict.items;
    budget_.require(members.size() * 2 * sizeof(Value));
    if (style_.sort_keys) sort_values(budget_, members, false);
    container('{', '}', members.size(), level, [&](size_t i) {
      key(members[i].first);
      out_ += style_.key_separator;
      value(members[i].second, level + 1);
    });
  }

  void key(const Value& key) {
    if (key.is(Kind::text)) return quoted(key.text().bytes);
    if (!key.is(Kind::none) && !key.is_number())
      type_error(std::string("keys must be str, int, float, bool or None, not ") + type_name(key));
    out_ += '"';
    value(key, 0);
    out_ += '"';
  }

  template <class Item>
  void container(char open, char close, size_t size, size_t level, Item&& item) {
    out_ += open;
    for (size_t i = 0; i < size; ++i) {
      if (i > 0) out_ += style_.item_separator;
      line(level + 1);
      item(i);
    }
    if (size > 0) line(level);
    out_ += close;
  }

  void line(size_t level) {
    if (!style_.indent) return;
    out_ += '\n';
    out_.repeat(*style_.indent, level);
  }

  void escape(char32_t c) {
    static constexpr char digits[] = "0123456789abcdef";
    out_ += "\\u";
    for (int shift = 12; shift >= 0; shift -= 4) out_ += digits[c >> shift & 15];
  }

  void quoted(std::string_view text) {
    out_ += '"';
    for (size_t i = 0; i < text.size();) {
      const Utf8Char c = decode_utf8(text.data() + i);
      switch (c.value) {
        case '"': out_ += "\\\""; break;
        case '\\': out_ += "\\\\"; break;
        case '\n': out_ += "\\n"; break;
        case '\r': out_ += "\\r"; break;
        case '\t': out_ += "\\t"; break;
        case '\f': out_ += "\\f"; break;
        case '\b': out_ += "\\b"; break;
        default:
          if (c.value < 0x20 || (style_.ensure_ascii && c.value > 0x7E && c.value < 0x10000)) {
            escape(c.value);
          } else if (style_.ensure_ascii && c.value >= 0x10000) {
            escape(0xD800 + ((c.value - 0x10000) >> 10));
            escape(0xDC00 + ((c.value - 0x10000) & 0x3FF));
          } else if (c.size == 1) {
            out_ += static_cast<char>(c.value);
          } else {
            out_ += text.substr(i, c.size);
          }
      }
      i += c.size;
    }
    out_ += '"';
  }

  Budget& budget_;
  const JsonStyle& style_;
  Builder out_;
};

Value value_of(Budget& budget, const Json& json) {
  budget.spend(1);
  switch (json.kind()) {
    case Json::Kind::null: return {};
    case Json::Kind::boolean: return Value(json.to_bool());
    case Json::Kind::integer: return Value(json.to_int());
    case Json::Kind::floating: return Value(json.to_float());
    case Json::Kind::string: return make_text(budget, repair_utf8(json.to_string()));
    case Json::Kind::array: {
      std::vector<Value> items;
      for (const Json& item : json.items()) push(budget, items, value_of(budget, item));
      return make_list(budget, std::move(items));
    }
    case Json::Kind::object: {
      auto dict = std::make_shared<Dict>(budget);
      for (const JsonMember& member : json.members())
        dict->set(make_text(budget, repair_utf8(member.key)), value_of(budget, member.value));
      return {Kind::dict, std::move(dict)};
    }
  }
  return {};
}

}  // namespace

std::string to_json(Budget& budget, const Value& value, const JsonStyle& style) {
  JsonText out(budget, style);
  out.value(value, 0);
  return out.take();
}

Value from_json(Budget& budget, std::string_view text, const std::string& name) {
  const JsonDocument document(text, name, 200);
  return value_of(budget, document.root());
}

}  // namespace calque::jinja
