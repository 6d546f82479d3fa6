// The functions that every template has.
#include <ctime>

#include "text/jinja/operators.h"
#include "text/jinja/python_text.h"
#include "text/jinja/render.h"

namespace calque::jinja {
namespace {

constexpr int64_t longest_range = 100'000;  // of Jinja's sandbox

Value make_range(Render& render, const Arguments& arguments) {
  const Bound given("range", arguments, {"start", "stop", "step"}, 1);
  const int64_t start = given.has(1) ? to_index(*given[0]) : 0, stop = to_index(*given[given.has(1) ? 1 : 0]);
  const int64_t step = given.has(2) ? to_index(*given[2]) : 1;
  if (step == 0) fail("range() arg 3 must not be zero");
  auto range = std::make_shared<Range>(render.budget(), start, stop, step);
  if (range->size() > longest_range)
    fail("Range too big. The sandbox blocks ranges larger than MAX_RANGE (" + std::to_string(longest_range) + ").");
  return {Kind::range, std::move(range)};
}

// dict(...) and namespace(...): of a mapping or pairs, then the named ones.
template <class Put>
void put_members(Render& render, const Arguments& arguments, const char* name, Put&& put) {
  if (arguments.positional.size() > 1)
    type_error(std::string(name) + " expected at most 1 argument, got " + std::to_string(arguments.positional.size()));
  for (const Value& source : arguments.positional) {
    if (source.is(Kind::dict)) {
      for (const auto& [key, value] : source.dict().items) put(key, value);
      continue;
    }
    for (const Value& pair : collect(render.budget(), source)) {
      const std::vector<Value> both = collect(render.budget(), pair);
      if (both.size() != 2)
        fail("dictionary update sequence element has length " + std::to_string(both.size()) + "; 2 is required");
      put(both[0], both[1]);
    }
  }
  for (const auto& [key, value] : arguments.named) put(render.text(key), value);
}

Value make_dict(Render& render, const Arguments& arguments) {
  auto dict = std::make_shared<Dict>(render.budget());
  put_members(render, arguments, "dict", [&](const Value& key, const Value& value) { dict->set(key, value); });
  return {Kind::dict, std::move(dict)};
}

Value make_namespace(Render& render, const Arguments& arguments) {
  Value out = render.make_names();
  put_members(render, arguments, "namespace",
              [&](const Value& key, const Value& value) { render.set_member(out, str(render.budget(), key), value); });
  return out;
}

Value make_cycler(Render& render, const Arguments& arguments) {
  if (arguments.positional.empty()) fail("at least one item has to be provided");
  return {Kind::cycler, std::make_shared<Cycler>(render.budget(), arguments.positional)};
}

Value make_joiner(Render& render, const Arguments& arguments) {
  const Bound given("joiner", arguments, {"sep"});
  const Value separator = given.has(0) ? *given[0] : render.text(", ");
  return make_function(
      render.budget(), "joiner",
      [separator, used = std::make_shared<bool>(false)](Render& r, const Arguments&) {
        if (*used) return separator;
        *used = true;
        return r.text("");
      },
      separator);
}

Value raise_exception(Render& render, const Arguments& arguments) {
  const Bound given("raise_exception", arguments, {"message"}, 1);
  throw RaisedByTemplate(ErrorKind::invalid_input, str(render.budget(), *given[0]));
}

// datetime.now().strftime(format), in local time. One directive after the other, so that none makes a text without end.
Value strftime_now(Render& render, const Arguments& arguments) {
  const Bound given("strftime_now", arguments, {"format"}, 1);
  if (!given[0]->is(Kind::text)) type_error(std::string("strftime() argument 1 must be str, not ") + type_name(*given[0]));
  const std::time_t seconds = std::chrono::system_clock::to_time_t(render.now());
  std::tm parts{};
  localtime_r(&seconds, &parts);
  const std::string& format = given[0]->text().bytes;
  Builder out(render.budget());
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 == format.size()) {
      out += format[i];
      continue;
    }
    std::string directive = "%";
    if (std::string_view("-_0^#").find(format[i + 1]) != std::string_view::npos && i + 2 < format.size())
      directive += format[++i];
    const char letter = format[++i];
    directive += letter;
    if (letter == 'f') {
      const auto whole = std::chrono::floor<std::chrono::seconds>(render.now());
      const auto rest = std::chrono::duration_cast<std::chrono::microseconds>(render.now() - whole).count();
      const std::string digits = std::to_string(rest);
      out += std::string(6 - std::min<size_t>(digits.size(), 6), '0') + digits;
    } else if (letter == 'z' || letter == 'Z' || letter == ':') {
      // A time without a zone has none to print.
    } else if (std::string_view("aAbBcCdDeFgGhHIjklmMnpPrRsStTuUVwWxXyY%").find(letter) != std::string_view::npos) {
      char buffer[200];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
      out += std::string_view(buffer, std::strftime(buffer, sizeof buffer, directive.c_str(), &parts));
#pragma GCC diagnostic pop
    } else {
      out += directive;
    }
  }
  return render.text(out.take());
}

Value refuse_lipsum(Render&, const Arguments&) { fail("lipsum is not supported in chat templates"); }

}  // namespace

void add_globals(Render& render, Scope& scope) {
  static constexpr std::pair<const char*, Value (*)(Render&, const Arguments&)> functions[] = {
      {"range", make_range},
      {"dict", make_dict},
      {"namespace", make_namespace},
      {"cycler", make_cycler},
      {"joiner", make_joiner},
      {"lipsum", refuse_lipsum},
      {"raise_exception", raise_exception},
      {"strftime_now", strftime_now},
  };
  for (const auto& [name, function] : functions) {
    const Value value = make_function(render.budget(), name, function);
    scope.set(name, value);
  }
}

}  // namespace calque::jinja
