// The filters of sequences and mappings. What gives items one by one in Jinja does so here: map, select, unique, ... are there once.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "text/jinja/operators.h"
#include "text/jinja/python_text.h"
#include "text/jinja/render.h"

namespace calque::jinja {
namespace {

using Getter = std::function<Value(const Value&)>;

bool truth_of(const Value* value) { return value && truth(*value); }
const Value* given_value(const Value* value) { return value && !value->is(Kind::none) ? value : nullptr; }

// Texts compare without case unless it is asked for.
Value without_case(Render& render, const Value& value) {
  return value.is(Kind::text) ? render.text(to_lower(value.text().bytes)) : value;
}

// "a.b.0" as keys; numbers are indices.
std::vector<Value> path_of(Render& render, const Value* attribute) {
  if (!attribute || attribute->is(Kind::none)) return {};
  if (!attribute->is(Kind::text)) return {*attribute};
  std::vector<Value> out;
  const std::string dot = ".";
  for (const std::string_view part : split(attribute->text().bytes, &dot, -1, false)) {
    const bool number = !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
    out.push_back(number ? Value(parse_integer(part, 10).value_or(0)) : render.text(std::string(part)));
  }
  return out;
}

Getter getter_of(Render& render, const Value* attribute, bool ignores_case, const Value* otherwise = nullptr) {
  const std::optional<Value> fallback = otherwise ? std::optional(*otherwise) : std::nullopt;
  return [&render, path = path_of(render, attribute), ignores_case, fallback](const Value& item) {
    Value out = item;
    for (const Value& key : path) {
      out = get_item(render.budget(), out, key);
      if (fallback && out.is(Kind::undefined)) out = *fallback;
    }
    return ignores_case ? without_case(render, out) : out;
  };
}

// `arguments`: `next` may hold what the filter was given.
Value generator(Render& render, const Value& over, const Arguments& arguments, std::function<bool(Value&)> next) {
  Value out = make_iterator(render.budget(), std::move(next), over);
  for (const Value& value : arguments.positional) out.iterator().contains(value);
  for (const auto& [name, value] : arguments.named) out.iterator().contains(value);
  return out;
}

std::vector<std::pair<Value, Value>> sorted_pairs(Render& render, const Value& input, const Getter& key, bool reverse) {
  std::vector<std::pair<Value, Value>> keyed;
  for (Value& item : collect(render.budget(), input)) {
    Value k = key(item);
    render.budget().require(3 * (keyed.size() + 1) * 2 * sizeof(Value));
    keyed.emplace_back(std::move(k), std::move(item));
  }
  sort_values(render.budget(), keyed, reverse);
  return keyed;
}

Value filter_sort(Render& render, const Value& input, const Arguments& arguments) {
  const Bound given("sort", arguments, {"reverse", "case_sensitive", "attribute"});
  const bool ignores_case = !truth_of(given[1]);
  std::vector<Getter> getters;
  if (given.has(2) && given[2]->is(Kind::text)) {
    const std::string comma = ",";
    for (const std::string_view part : split(given[2]->text().bytes, &comma, -1, false)) {
      const Value attribute = render.text(std::string(part));
      getters.push_back(getter_of(render, &attribute, ignores_case));
    }
  } else {
    getters.push_back(getter_of(render, given[2], ignores_case));
  }
  const Getter all = [&](const Value& item) {
    std::vector<Value> keys;
    for (const Getter& getter : getters) keys.push_back(getter(item));
    return make_list(render.budget(), std::move(keys));
  };
  std::vector<Value> out;
  for (auto& [key, item] : sorted_pairs(render, input, all, truth_of(given[0]))) out.push_back(std::move(item));
  return make_list(render.budget(), std::move(out));
}

Value filter_dictsort(Render& render, const Value& input, const Arguments& arguments) {
  const Bound given("dictsort", arguments, {"case_sensitive", "by", "reverse"});
  const std::string by = given.has(1) ? str(render.budget(), *given[1]) : "key";
  if (by != "key" && by != "value") fail("You can only sort by either \"key\" or \"value\"");
  if (input.is(Kind::undefined)) undefined_error(input);
  if (!input.is(Kind::dict)) type_error(std::string("'") + type_name(input) + "' object has no attribute 'items'");
  std::vector<Value> items;
  for (const auto& [key, value] : input.dict().items) items.push_back(make_tuple(render.budget(), {key, value}));
  const bool ignores_case = !truth_of(given[0]);
  const size_t place = by == "key" ? 0 : 1;
  const Getter key = [&](const Value& item) {
    const Value& value = item.list().items[place];
    return ignores_case ? without_case(render, value) : value;
  };
  std::vector<Value> out;
  for (auto& [k, item] : sorted_pairs(render, make_list(render.budget(), std::move(items)), key, truth_of(given[2])))
    out.push_back(std::move(item));
  return make_list(render.budget(), std::move(out));
}

Value filter_groupby(Render& render, const Value& input, const Arguments& arguments) {
  const Bound given("groupby", arguments, {"attribute", "default", "case_sensitive"}, 1);
  const bool ignores_case = !truth_of(given[2]);
  const Value* otherwise = given_value(given[1]);
  const Getter key = getter_of(render, given[0], ignores_case, otherwise),
               shown = getter_of(render, given[0], false, otherwise);
  std::vector<Value> groups, items;
  std::optional<Value> current;
  const auto close = [&] {
    if (items.empty()) return;
    const Value name = ignores_case ? shown(items[0]) : *current;
    groups.push_back(make_tuple(render.budget(), {name, make_list(render.budget(), std::move(items))}, List::Style::group));
    items.clear();
  };
  for (auto& [k, item] : sorted_pairs(render, input, key, false)) {
    if (!current || !equal(render.budget(), *current, k)) {
      close();
      current = k;
    }
    items.push_back(item);
  }
  close();
  return make_list(render.budget(), std::move(groups));
}

Value filter_unique(Render& render, const Value& input, const Arguments& arguments) {
  const Bound given("unique", arguments, {"case_sensitive", "attribute"});
  const Getter key = getter_of(render, given[1], !truth_of(given[0]));
  return generator(
      render, input, arguments,
      [key, source = iterate(render.budget(), input), seen = std::make_shared<Dict>(render.budget())](Value& item) {
        while (source->next(item)) {
          const Value k = key(item);
          if (seen->find(k)) continue;
          seen->set(k, Value());
          return true;
        }
        return false;
      });
}

Value extreme(Render& render, const Value& input, const Arguments& arguments, bool largest) {
  const Bound given(largest ? "max" : "min", arguments, {"case_sensitive", "attribute"});
  const Getter key = getter_of(render, given[1], !truth_of(given[0]));
  const auto source = iterate(render.budget(), input);
  Value best, item;
  if (!source->next(best)) return render.undefined("No aggregated item, sequence was empty.");
  Value best_key = key(best);
  while (source->next(item)) {
    Value k = key(item);
    if (largest ? less(render.budget(), best_key, k) : less(render.budget(), k, best_key)) {
      best = item;
      best_key = std::move(k);
    }
  }
  return best;
}

Value filter_join(Render& render, const Value& input, const Arguments& arguments) {
  const Bound given("join", arguments, {"d", "attribute"});
  const std::string between = given.has(0) ? str(render.budget(), *given[0]) : "";
  const Getter get = getter_of(render, given[1], false);
  Builder out(render.budget());
  bool first = true;
  const auto source = iterate(render.budget(), input);
  for (Value item; source->next(item); first = false) {
    if (!first) out += between;
    out += str(render.budget(), get(item));
  }
  return render.text(out.take());
}

Value filter_sum(Render& render, const Value& input, const Arguments& arguments) {
  const Bound given("sum", arguments, {"attribute", "start"});
  const Getter get = getter_of(render, given[0], false);
  Value total = given.has(1) ? *given[1] : Value(int64_t{0});
  if (total.is(Kind::text)) type_error("sum() can't sum strings [use ''.join(seq) instead]");
  const auto source = iterate(render.budget(), input);
  for (Value item; source->next(item);) total = apply(render.budget(), BinaryOperator::add, total, get(item));
  return total;
}

Value filter_first(Render& render, const Value& input, const Arguments& arguments) {
  const Bound none("first", arguments, {});
  Value item;
  if (!iterate(render.budget(), input)->next(item)) return render.undefined("No first item, sequence was empty.");
  return item;
}

bool is_reversible(const Value& v) {
  return v.is(Kind::list) || v.is(Kind::tuple) || v.is(Kind::view) || v.is(Kind::dict) || v.is(Kind::range) ||
         v.is(Kind::text) || v.is(Kind::undefined);
}

Value filter_last(Render& render, const Value& input, const Arguments& arguments) {
  const Bound none("last", arguments, {});
  if (!is_reversible(input)) type_error(std::string("'") + type_name(input) + "' object is not reversible");
  const std::vector<Value> items = collect(render.budget(), input);
  return items.empty() ? render.undefined("No last item, sequence was empty.") : items.back();
}

Value filter_reverse(Render& render, const Value& input, const Arguments& arguments) {
  const Bound none("reverse", arguments, {});
  if (!input.is(Kind::text) && !is_reversible(input) && !input.is(Kind::iterator)) fail("argument must be iterable");
  std::vector<Value> items = collect(render.budget(), input);
  std::reverse(items.begin(), items.end());
  if (input.is(Kind::text)) {
    std::string out;
    for (const Value& item : items) out += item.text().bytes;
    return render.text(std::move(out));
  }
  Value list = make_list(render.budget(), std::move(items));
  // Of a generator Jinja makes a list, of a list something that is there once.
  if (input.is(Kind::iterator) || input.is(Kind::undefined)) return list;
  const auto source = iterate(render.budget(), list);
  return generator(render, list, arguments, [source](Value& item) { return source->next(item); });
}

Value filter_items(Render& render, const Value& input, const Arguments& arguments) {
  const Bound none("items", arguments, {});
  return generator(render, input, arguments, [&render, input, i = size_t{0}](Value& item) mutable {
    if (input.is(Kind::undefined)) return false;
    if (!input.is(Kind::dict)) type_error("Can only get item pairs from a mapping.");
    if (i == input.dict().items.size()) return false;
    const auto& [key, value] = input.dict().items[i++];
    render.budget().spend(1);
    item = make_tuple(render.budget(), {key, value});
    return true;
  });
}

Value filter_length(Render& render, const Value& input, const Arguments& arguments) {
  const Bound none("length", arguments, {});
  (void)render;
  const auto size = size_of(input);
  if (!size) type_error(std::string("object of type '") + type_name(input) + "' has no len()");
  return Value(static_cast<int64_t>(*size));
}

Value filter_batch(Render& render, const Value& input, const Arguments& arguments) {
  const Bound given("batch", arguments, {"linecount", "fill_with"}, 1);
  const int64_t count = to_index(*given[0]);
  const std::optional<Value> fill = given_value(given[1]) ? std::optional(*given[1]) : std::nullopt;
  const auto source = iterate(render.budget(), input);
  return generator(render, input, arguments,
                   [&render, source, count, fill, held = std::optional<Value>(), ended = false](Value& out) mutable {
                     std::vector<Value> items;
                     if (held) items.push_back(*held);
                     held.reset();
                     for (Value item; !ended;) {
                       if (!source->next(item)) {
                         ended = true;
                       } else if (static_cast<int64_t>(items.size()) == count) {
                         held = item;
                         break;
                       } else {
                         push(render.budget(), items, item);
                       }
                     }
                     if (items.empty() && !held) return false;
                     if (ended && fill && static_cast<int64_t>(items.size()) < count) {
                       render.budget().spend(static_cast<size_t>(count));
                       while (static_cast<int64_t>(items.size()) < count) push(render.budget(), items, *fill);
                     }
                     out = make_list(render.budget(), std::move(items));
                     return true;
                   });
}

Value filter_slice(Render& render, const Value& input, const Arguments& arguments) {
  const Bound given("slice", arguments, {"slices", "fill_with"}, 1);
  const int64_t slices = to_index(*given[0]);
  if (slices == 0) fail("integer division or modulo by zero");
  std::vector<Value> out;
  const std::vector<Value> items = collect(render.budget(), input);
  const auto size = static_cast<int64_t>(items.size());
  if (slices > 0) render.budget().spend(static_cast<size_t>(slices));
  for (int64_t i = 0, at = 0; i < slices; ++i) {
    const int64_t count = size / slices + (i < size % slices ? 1 : 0);
    std::vector<Value> part(items.begin() + at, items.begin() + at + count);
    at += count;
    if (given_value(given[1]) && i >= size % slices) part.push_back(*given[1]);
    push(render.budget(), out, make_list(render.budget(), std::move(part)));
  }
  const Value list = make_list(render.budget(), std::move(out));
  return generator(render, list, arguments,
                   [source = iterate(render.budget(), list)](Value& item) { return source->next(item); });
}

Value filter_map(Render& render, const Value& input, const Arguments& arguments) {
  Getter get;
  if (arguments.positional.empty() && arguments.find("attribute")) {
    for (const auto& [name, value] : arguments.named)
      if (name != "attribute" && name != "default") fail("Unexpected keyword argument " + repr_text(name));
    const Value* otherwise = arguments.find("default");
    get = getter_of(render, arguments.find("attribute"), false, otherwise ? given_value(otherwise) : nullptr);
  } else {
    if (arguments.positional.empty()) fail("map requires a filter argument");
    const std::string name = str(render.budget(), arguments.positional[0]);
    Arguments rest{{arguments.positional.begin() + 1, arguments.positional.end()}, arguments.named};
    get = [&render, name, rest](const Value& item) { return render.filter(name, item, rest); };
  }
  return generator(render, input, arguments, [get, source = iterate(render.budget(), input)](Value& item) {
    if (!source->next(item)) return false;
    item = get(item);
    return true;
  });
}

// select, reject, selectattr, rejectattr.
Value selected(Render& render, const Value& input, const Arguments& arguments, bool wanted, bool by_attribute) {
  size_t used = 0;
  Getter get = [](const Value& item) { return item; };
  if (by_attribute) {
    if (arguments.positional.empty()) fail("Missing parameter for attribute name");
    get = getter_of(render, &arguments.positional[used++], false);
  }
  std::function<bool(const Value&)> holds = truth;
  if (arguments.positional.size() > used) {
    const std::string name = str(render.budget(), arguments.positional[used++]);
    Arguments rest{{arguments.positional.begin() + static_cast<std::ptrdiff_t>(used), arguments.positional.end()},
                   arguments.named};
    holds = [&render, name, rest](const Value& value) { return render.test(name, value, rest); };
  }
  if (!truth(input)) return generator(render, input, arguments, [](Value&) { return false; });
  return generator(render, input, arguments, [get, holds, wanted, source = iterate(render.budget(), input)](Value& item) {
    while (source->next(item))
      if (holds(get(item)) == wanted) return true;
    return false;
  });
}

Value filter_list(Render& render, const Value& input, const Arguments& arguments) {
  const Bound none("list", arguments, {});
  return make_list(render.budget(), collect(render.budget(), input));
}

Value filter_min(Render& render, const Value& input, const Arguments& arguments) {
  return extreme(render, input, arguments, false);
}

Value filter_max(Render& render, const Value& input, const Arguments& arguments) {
  return extreme(render, input, arguments, true);
}

Value filter_select(Render& render, const Value& input, const Arguments& arguments) {
  return selected(render, input, arguments, true, false);
}

Value filter_reject(Render& render, const Value& input, const Arguments& arguments) {
  return selected(render, input, arguments, false, false);
}

Value filter_selectattr(Render& render, const Value& input, const Arguments& arguments) {
  return selected(render, input, arguments, true, true);
}

Value filter_rejectattr(Render& render, const Value& input, const Arguments& arguments) {
  return selected(render, input, arguments, false, true);
}

}  // namespace

FilterFunction find_sequence_filter(std::string_view name) {
  static const std::unordered_map<std::string_view, FilterFunction> filters = {
      {"sort", filter_sort},
      {"dictsort", filter_dictsort},
      {"groupby", filter_groupby},
      {"unique", filter_unique},
      {"join", filter_join},
      {"sum", filter_sum},
      {"first", filter_first},
      {"last", filter_last},
      {"reverse", filter_reverse},
      {"items", filter_items},
      {"length", filter_length},
      {"count", filter_length},
      {"batch", filter_batch},
      {"slice", filter_slice},
      {"map", filter_map},
      {"list", filter_list},
      {"min", filter_min},
      {"max", filter_max},
      {"select", filter_select},
      {"reject", filter_reject},
      {"selectattr", filter_selectattr},
      {"rejectattr", filter_rejectattr},
  };
  const auto found = filters.find(name);
  return found == filters.end() ? nullptr : found->second;
}

}  // namespace calque::jinja
