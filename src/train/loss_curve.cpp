#include <algorithm>
#include <cmath>
#include <cstdio>

#include "calque/train/trainer.h"

namespace calque {
namespace {

constexpr double width = 860, height = 420, left = 64, right = 20, top = 44, bottom = 48;

std::string number_text(double v) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", v);
  return text;
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

// Round numbers, about five of them.
double tick_distance(double range) {
  const double rough = range / 5, power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (rough <= factor * power) return factor * power;
  return 10 * power;
}

struct Axes {
  double last_step, least, most;
  double x(double step) const { return left + (width - left - right) * step / last_step; }
  double y(double loss) const { return top + (height - top - bottom) * (1 - (loss - least) / (most - least)); }
};

std::string text_at(double x, double y, const char* anchor, const std::string& text) {
  return "<text x=\"" + number_text(x) + "\" y=\"" + number_text(y) + "\" text-anchor=\"" + anchor + "\">" + escaped(text) +
         "</text>\n";
}

template <class Point>
std::string line_of(const std::vector<Point>& points, const Axes& axes, const char* style) {
  std::string out = "<polyline fill=\"none\" " + std::string(style) + " points=\"";
  for (const Point& p : points)
    out += number_text(axes.x(static_cast<double>(p.step))) + "," + number_text(axes.y(p.loss)) + " ";
  return out + "\"/>\n";
}

}  // namespace

std::string loss_curve_svg(const std::vector<TrainStep>& steps, const std::vector<Evaluation>& evaluations,
                           const std::string& title) {
  Axes axes{1, 0, 1};
  bool first = true;
  const auto see = [&](int64_t step, double loss) {
    axes.last_step = std::max(axes.last_step, static_cast<double>(step));
    axes.least = first ? loss : std::min(axes.least, loss);
    axes.most = first ? loss : std::max(axes.most, loss);
    first = false;
  };
  for (const TrainStep& s : steps) see(s.step, s.loss);
  for (const Evaluation& e : evaluations) see(e.step, e.loss);
  if (axes.most - axes.least < 1e-9) axes.most = axes.least + 1e-9 + std::abs(axes.least) * 1e-3;
  const double margin = (axes.most - axes.least) * 0.05;
  axes.least -= margin, axes.most += margin;

  std::string out =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"860\" height=\"420\" viewBox=\"0 0 860 420\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"860\" height=\"420\" fill=\"white\"/>\n";
  out += "<g font-size=\"15\">" + text_at(left, 26, "start", title) + "</g>\n";
  const double distance = tick_distance(axes.most - axes.least);
  for (double loss = std::ceil(axes.least / distance) * distance; loss <= axes.most; loss += distance) {
    const std::string y = number_text(axes.y(loss));
    out += "<line x1=\"64\" x2=\"840\" y1=\"" + y + "\" y2=\"" + y + "\" stroke=\"#ddd\"/>\n";
    out += text_at(left - 8, axes.y(loss) + 4, "end", number_text(std::abs(loss) < distance * 1e-6 ? 0 : loss));
  }
  const double every = std::max(1.0, tick_distance(axes.last_step));
  for (double step = 0; step <= axes.last_step; step += every)
    out += text_at(axes.x(step), height - bottom + 18, "middle", number_text(step));
  out += text_at((left + width - right) / 2, height - 10, "middle", "step");
  out += line_of(steps, axes, "stroke=\"#3366aa\" stroke-width=\"1.5\"");
  out += text_at(width - right, 26, "end", evaluations.empty() ? "loss" : "blue: loss, orange: loss of the evaluation");
  if (!evaluations.empty()) out += line_of(evaluations, axes, "stroke=\"#dd7711\" stroke-width=\"2\"");
  for (const Evaluation& e : evaluations)
    out += "<circle cx=\"" + number_text(axes.x(static_cast<double>(e.step))) + "\" cy=\"" + number_text(axes.y(e.loss)) +
           "\" r=\"3\" fill=\"#dd7711\"/>\n";
  return out + "</svg>\n";
}

}  // namespace calque
