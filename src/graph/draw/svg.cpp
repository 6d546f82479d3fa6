// A picture as SVG: valid XML that fits on a page, in the viewer's light or dark colours.
#include <fmt/format.h>

#include "calque/graph/draw.h"
#include "graph/draw/labels.h"

namespace calque {
namespace {

using namespace draw;

constexpr std::string_view svg_style = R"(
text{font-family:Helvetica,Arial,"Liberation Sans",sans-serif;font-size:10px;fill:#45505f}
.t{font-size:12px;font-weight:bold;fill:#1b2430}
.d{fill:#6b7686}
.h text{paint-order:stroke;stroke:#f3f6fa;stroke-width:3px;stroke-opacity:.85}
.s{fill:none;stroke:#93a0b1;stroke-width:1.2}
.a{fill:#93a0b1}
rect{stroke:#8d99a8;fill:#fff}
.f{fill:#5a7aa0;fill-opacity:.07;stroke:#9fb0c4}
.input,.output{fill:#d9f0df;stroke:#6fae81}
.weights{fill:#fdeecb;stroke:#cfa550}
.view{fill:#eef0f3;stroke:#b4bcc8}
.pointwise{fill:#dcebfb;stroke:#7ba6d4}
.reduction{fill:#eee2f8;stroke:#a888c9}
.module{fill:#e7ecf3;stroke:#7289a6}
@media (prefers-color-scheme:dark){
.h text{stroke:#1a2028}text{fill:#b6c0cd}.t{fill:#eef2f7}.d{fill:#8f9bab}
.s{stroke:#6c7a8d}.a{fill:#6c7a8d}
rect{fill:#262c35;stroke:#5d6979}
.f{fill:#9db8da;fill-opacity:.07;stroke:#4f6078}
.input,.output{fill:#1d3a28;stroke:#4f8c63}
.weights{fill:#40351b;stroke:#99803d}
.view{fill:#2b3038;stroke:#525c69}
.pointwise{fill:#1d3349;stroke:#4b7aa8}
.reduction{fill:#35284a;stroke:#7d62a3}
.module{fill:#2c3542;stroke:#5f7696}
}
)";

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '&': out += "&amp;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

// `most`: the width that the text has at most, whatever letters the viewer has.
void put_text(std::string& out, const char* style, double x, double y, const std::string& text, double width) {
  if (text.empty()) return;
  out += fmt::format("<text{} x=\"{:.1f}\" y=\"{:.1f}\" textLength=\"{:.1f}\" lengthAdjust=\"spacingAndGlyphs\">{}</text>\n",
                     style, x, y, width, escaped(text));
}

void put_label(std::string& out, const Label& label, const Rect& rect, bool open) {
  const double width = text_width(label.title, title_size, true);
  put_text(out, " class=\"t\"", rect.x + 10, rect.y + 17, label.title, width);
  const std::string detail = open && label.detail.empty() ? label.lines[0] : label.detail;  // an open module says its class
  if (const double more = text_width(detail, line_size); width + more + 25 <= rect.width)
    put_text(out, " class=\"d\"", rect.x + 15 + width, rect.y + 17, detail, more);
  if (open) return;
  if (label.look == Look::module) put_text(out, " class=\"d\"", rect.x + rect.width - 17, rect.y + 17, "+", 6);
  for (size_t k = 0; k < label.lines.size(); ++k)
    put_text(out, "", rect.x + 10, rect.y + 32 + 14 * static_cast<double>(k), label.lines[k],
             text_width(label.lines[k], line_size));
}

void put_stroke(std::string& out, const ArrangedStroke& stroke) {
  const std::vector<Point>& p = stroke.points;
  std::string path = fmt::format("M{:.1f},{:.1f}", p[0].x, p[0].y);
  for (size_t k = 1; k < p.size(); ++k) {
    if (p[k].x == p[k - 1].x)
      path += fmt::format("V{:.1f}", p[k].y);
    else
      path += fmt::format("C{:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f}", p[k - 1].x, (p[k - 1].y + p[k].y) / 2, p[k].x,
                          (p[k - 1].y + p[k].y) / 2, p[k].x, p[k].y);
  }
  out += "<path class=\"s\" d=\"" + path + "\"/>\n";
  if (!stroke.arrives) return;
  const Point& end = p.back();
  out += fmt::format("<path class=\"a\" d=\"M{:.1f},{:.1f}l-3.5,-6.5h7z\"/>\n", end.x, end.y);
}

}  // namespace

std::string to_svg(const Graph& graph, const DrawOptions& options) {
  const Picture picture = picture_of(graph, options);
  const Arrangement arranged = arrange(picture);
  constexpr double margin = 16;
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"{2:.0f} {2:.0f} {0:.0f} "
      "{1:.0f}\">\n<title>{3}</title>\n<style>{4}</style>\n",
      arranged.width + 2 * margin, arranged.height + 2 * margin, -margin, escaped(readable(options.name)), svg_style);
  const auto put_rect = [&](const Rect& r, std::string_view look) {
    out += fmt::format("<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"5\"/>\n", look,
                       r.x, r.y, r.width, r.height);
  };
  for (const ArrangedBox& b : arranged.boxes)
    if (b.open) put_rect(b.rect, "f");
  for (const ArrangedStroke& s : arranged.strokes) put_stroke(out, s);
  for (const ArrangedBox& b : arranged.boxes) {
    const Label& label = picture.labels[b.box];
    out += b.open ? "<g class=\"h\">\n" : "<g>\n";
    const OutlineBox& box = picture.outline.boxes[b.box];
    out += "<title>" + escaped(readable(box.is_module() ? box.path + ": " + box.type : box.node->str(), 300)) + "</title>\n";
    if (!b.open) put_rect(b.rect, name(label.look));
    if (!b.open && box.kind != 0)  // modules that are alike have a band of one colour
      out += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"4\" height=\"{:.1f}\" style=\"stroke:none;fill:hsl({},55%,55%)\"/>\n",
          b.rect.x + 1, b.rect.y + 5, b.rect.height - 10, box.kind * 137 % 360);
    put_label(out, label, b.rect, b.open);
    out += "</g>\n";
  }
  return out + "</svg>\n";
}

}  // namespace calque
