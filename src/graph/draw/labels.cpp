#include "graph/draw/labels.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "base/join.h"
#include "base/utf8.h"
#include "calque/graph/text.h"
#include "graph/value_print.h"

namespace calque::draw {
namespace {

// Widths of Helvetica's letters from the space on, in thousandths of their size: Arial and Liberation Sans have the same.
constexpr std::array<uint16_t, 95> helvetica = {
    278, 278, 355, 556, 556, 889, 667, 191, 333,  333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556, 556, 556, 556,
    556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778,
    667, 778, 722, 667, 611, 722, 667, 944, 667,  667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556, 556, 278, 556,
    556, 222, 222, 500, 222, 833, 556, 556, 556,  556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584};

char32_t decoded(std::string_view c) {
  const auto first = static_cast<unsigned char>(c[0]);
  if (c.size() == 1) return first;
  char32_t out = first & (0x3FU >> (c.size() - 1));
  for (const char next : c.substr(1)) out = out << 6 | (static_cast<unsigned char>(next) & 0x3FU);
  return out;
}

// Calls f(character) for each; what is no UTF-8 is U+FFFD.
template <class F>
void for_each_character(std::string_view text, F&& f) {
  while (!text.empty()) {
    const Utf8Step step = next_utf8(text);
    f(step.kind == Utf8Step::Kind::valid ? decoded(text.substr(0, step.size)) : U'\uFFFD');
    text.remove_prefix(step.size);
  }
}

bool is_control(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0xAD || c == 0x61C || (c >= 0x200B && c <= 0x200F) ||
         (c >= 0x2028 && c <= 0x202E) || (c >= 0x2060 && c <= 0x206F) || c == 0xFEFF || (c & 0xFFFE) == 0xFFFE;
}

// What a box says of the arguments that are no tensors: "(1, 2)".
std::string constants(const Node& n) {
  ValuePrinter print;
  print.node = [](const Node& in) {
    const std::string val = val_text(in.meta.val);
    return val.starts_with("Sym(") ? val.substr(4, val.size() - 5) : in.name();
  };
  print.leaf = [](const Value& v) {
    return v.kind() == Value::Kind::dtype ? v.str().substr(v.str().rfind('.') + 1) : v.str();
  };
  const auto is_constant = [](const Value& v) {
    if (v.is_none() || v.is_tensor() || v.kind() == Value::Kind::device || v.kind() == Value::Kind::layout) return false;
    if (v.kind() == Value::Kind::boolean && !v.to_sym_bool().is_symbolic() && !v.to_bool()) return false;
    bool constant = true;
    for_each_node(v, [&](const Node* in) { constant &= val_text(in->meta.val).starts_with("Sym("); });
    return constant;
  };
  std::string out;
  for (const Value& v : n.args())
    if (is_constant(v)) out += (out.empty() ? "" : ", ") + print(v);
  for (const auto& [key, v] : n.kwargs())
    if (is_constant(v)) out += (out.empty() ? "" : ", ") + key + "=" + print(v);
  return out.empty() || out == "[]" ? "" : "(" + readable(out, 30) + ")";
}

Look look_of(const OutlineBox& box) {
  const Node& n = *box.node;
  if (n.kind() == NodeKind::placeholder) return Look::input;
  if (n.kind() == NodeKind::output) return Look::output;
  if (!box.weights.empty() || n.kind() == NodeKind::call_module) return Look::weights;
  if (const Operator* op = n.op() && n.op()->base() ? n.op()->base() : n.op()) {
    if (op->has_tag(Tag::view) || op->has_tag(Tag::may_alias)) return Look::view;
    if (op->has_tag(Tag::pointwise)) return Look::pointwise;
    if (op->has_tag(Tag::reduction)) return Look::reduction;
  }
  return Look::other;
}

std::string short_type(const std::string& type) { return type.substr(type.rfind('.') + 1); }

// "12.3 M"
std::string amount(int64_t count) {
  std::array<char, 32> text{};
  const auto number = static_cast<double>(count);
  if (count < 10'000) return std::to_string(count);
  const auto [scale, unit] = count < 1'000'000       ? std::pair(1e3, "k")
                             : count < 1'000'000'000 ? std::pair(1e6, "M")
                                                     : std::pair(1e9, "G");
  std::snprintf(text.data(), text.size(), "%.1f %s", number / scale, unit);
  return text.data();
}

// A path as it reads inside a module.
std::string relative(const std::string& path, const std::string& module) {
  return !module.empty() && path.starts_with(module + ".") ? path.substr(module.size() + 1) : path;
}

// "query.weight [768, 768]", or with what the box takes of it: "weight [768, 64] t".
std::string weight_line(const FoldedWeight& w, const std::string& module) {
  const std::string val = val_text(w.node->meta.val);
  const size_t begin = std::min(val.find('['), val.size());
  std::string out = readable(relative(w.path, module), 46);
  if (begin < val.size()) out += " " + readable(val.substr(begin, val.find(']') + 1 - begin), 30);
  return w.view.empty() ? out : out + " " + w.view;
}

void label_module(const Outline& outline, uint32_t at, Label& out) {
  const OutlineBox& box = outline.boxes[at];
  out.look = Look::module;
  out.title = readable(relative(box.path, outline.boxes[box.parent].path), 34);
  if (box.part > 0) out.detail = "part " + std::to_string(box.part);
  out.lines.push_back(readable(short_type(box.type), 40));
  std::vector<std::string> weights;
  constexpr size_t few = 2;
  for (uint32_t b = at + 1; b < box.end && weights.size() <= few; ++b)
    for (const FoldedWeight& w : outline.boxes[b].weights) weights.push_back(weight_line(w, box.path));
  if (!weights.empty() && weights.size() <= few) {
    out.lines.insert(out.lines.end(), weights.begin(), weights.end());
    return;
  }
  out.lines.push_back(std::to_string(box.operators) + (box.operators == 1 ? " call" : " calls") +
                      (box.parameters > 0 ? ", " + amount(box.parameters) + " weights" : ""));
}

void label_node(const Outline& outline, const OutlineBox& box, Label& out) {
  const Node& n = *box.node;
  out.look = look_of(box);
  const std::string target = n.target().python_name();
  switch (n.kind()) {
    case NodeKind::placeholder: out.title = readable(n.name(), 34); break;
    case NodeKind::output: out.title = "output"; break;
    case NodeKind::call_module: out.title = readable(relative(n.target().text(), outline.boxes[box.parent].path), 34); break;
    case NodeKind::get_attr:
    case NodeKind::call_method:
    case NodeKind::call_function:
      out.title = readable(n.op() ? target.substr(0, target.find('.')) : target, 34);
      out.detail = constants(n);
  }
  if (const std::string val = val_text(n.meta.val); !val.empty()) out.lines.push_back(readable(val, 46));
  constexpr size_t shown = 6;
  for (size_t k = 0; k < std::min(shown, box.weights.size()); ++k)
    out.lines.push_back(weight_line(box.weights[k], outline.boxes[box.parent].path));
  if (box.weights.size() > shown) out.lines.push_back("and " + std::to_string(box.weights.size() - shown) + " more");
}

}  // namespace

std::string readable(std::string_view text, size_t most) {
  std::vector<std::string> characters;
  for_each_character(text, [&](char32_t c) {
    std::string& out = characters.emplace_back();
    if (!is_control(c)) return append_utf8(out, c);
    std::array<char, 16> escaped{};
    std::snprintf(escaped.data(), escaped.size(), c > 0xFFFF ? "\\U%08x" : "\\u%04x", static_cast<unsigned>(c));
    out = escaped.data();
  });
  if (characters.size() > most) {
    const size_t left = (most - 1) / 2;
    characters.erase(characters.begin() + static_cast<std::ptrdiff_t>(left),
                     characters.end() - static_cast<std::ptrdiff_t>(most - 1 - left));
    characters.insert(characters.begin() + static_cast<std::ptrdiff_t>(left), "…");
  }
  return join(characters, "");
}

double text_width(std::string_view text, double size, bool bold) {
  double width = 0;
  for_each_character(text, [&](char32_t c) {
    if (c >= 0x20 && c < 0x20 + helvetica.size())
      width += helvetica[c - 0x20];
    else
      width += c < 0x1100 ? 620 : 1000;
  });
  return width * size / 1000 * (bold ? 1.07 : 1);
}

std::string_view name(Look look) {
  switch (look) {
    case Look::input: return "input";
    case Look::output: return "output";
    case Look::weights: return "weights";
    case Look::view: return "view";
    case Look::pointwise: return "pointwise";
    case Look::reduction: return "reduction";
    case Look::other: return "other";
    case Look::module: return "module";
  }
  return "";
}

Label label_of(const Outline& outline, uint32_t at) {
  const OutlineBox& box = outline.boxes[at];
  Label out;
  if (at == 0)
    out.look = Look::module;
  else if (box.is_module())
    label_module(outline, at, out);
  else
    label_node(outline, box, out);
  double width = text_width(out.title, title_size, true);
  if (!out.detail.empty()) width += 5 + text_width(out.detail, line_size);
  if (out.look == Look::module) width += 18;  // the sign that it opens
  for (const std::string& line : out.lines) width = std::max(width, text_width(line, line_size));
  out.width = std::max(56.0, width + 20);
  out.height = 24 + 14 * static_cast<double>(out.lines.size()) + (out.lines.empty() ? 0 : 4);
  return out;
}

}  // namespace calque::draw
