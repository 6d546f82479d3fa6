#include "value_print.h"

namespace calque {

std::string ValuePrinter::items(const Values& values) const {
  std::string s;
  for (size_t i = 0; i < values.size(); ++i) s += (i ? ", " : "") + (*this)(values[i]);
  return s;
}

std::string ValuePrinter::tuple(const Values& values) const {
  return "(" + items(values) + (values.size() == 1 ? ",)" : ")");
}

std::string ValuePrinter::operator()(const Value& value) const {
  switch (value.kind()) {
    case Value::Kind::node: return node(*value.to_node());
    case Value::Kind::list: return "[" + items(value.to_items()) + "]";
    case Value::Kind::tuple: return tuple(value.to_items());
    case Value::Kind::slice: {
      const SliceValue& s = value.to_slice();
      return "slice(" + (*this)(s.start) + ", " + (*this)(s.stop) + ", " + (*this)(s.step) + ")";
    }
    case Value::Kind::dict: {
      if (dict) return dict(value);
      const DictValue& d = value.to_dict();
      if (d.ordered && d.items.empty()) return "OrderedDict()";
      std::string s = d.ordered ? "OrderedDict([" : "{";
      for (size_t i = 0; i < d.items.size(); ++i) {
        const auto& [key, item] = d.items[i];
        s += i ? ", " : "";
        s += d.ordered ? "(" + (*this)(key) + ", " + (*this)(item) + ")" : (*this)(key) + ": " + (*this)(item);
      }
      return s + (d.ordered ? "])" : "}");
    }
    case Value::Kind::structure: {
      const StructValue& s = value.to_struct();
      if (structure) return structure(s);
      if (s.type == "builtins.Ellipsis") return "Ellipsis";
      if (s.type == "torch._ops.OpOverload") return s.context.starts_with("torch.ops.") ? s.context.substr(10) : s.context;
      // PyTorch's context of a namedtuple is the name it was registered under, in quotes.
      std::string type =
          s.type == "collections.namedtuple" && s.context.size() > 2 ? s.context.substr(1, s.context.size() - 2) : s.type;
      std::string out = type.substr(type.rfind('.') + 1) + "(";
      for (size_t i = 0; i < s.items.size(); ++i)
        out += (i ? ", " : "") + (i < s.fields.size() ? s.fields[i] + "=" : std::string()) + (*this)(s.items[i]);
      return out + ")";
    }
    case Value::Kind::none:
    case Value::Kind::boolean:
    case Value::Kind::integer:
    case Value::Kind::floating:
    case Value::Kind::complex:
    case Value::Kind::string:
    case Value::Kind::tensor:
    case Value::Kind::dtype:
    case Value::Kind::device:
    case Value::Kind::layout:
    case Value::Kind::memory_format:
    case Value::Kind::generator: break;
  }
  return leaf(value);
}

std::string python_str(const Value& value) {
  if (value.kind() == Value::Kind::string) return value.to_string();
  if (value.kind() == Value::Kind::device) return value.to_device().str();
  return ValuePrinter()(value);
}

}  // namespace calque
