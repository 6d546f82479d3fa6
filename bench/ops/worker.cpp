// Calque's side of bench/ops. Reads one row (rows.py) as a JSON line, then commands, a line each, until "done":
//   check       the sum and the sum of magnitudes of the results, in double
//   time NS     calls until NS nanoseconds have passed; answers calls and nanoseconds
// Rows follow one another on standard input; every answer is one line.

#include <time.h>

#include <functional>
#include <iostream>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "calque/base/thread.h"
#include "calque/op/mode.h"
#include "calque/op/ops.h"
#include "calque/tensor/generator.h"

namespace {

using namespace calque;
using Json = nlohmann::json;

Tensor make_tensor(const Json& spec) {
  const auto shape = spec.at("shape").get<std::vector<int64_t>>();
  const DType wanted = dtype_from_name(spec.at("dtype").get<std::string>()).value();
  const SymInts sizes(shape.begin(), shape.end());
  const std::string make = spec.at("make");
  Tensor t = make == "values"  ? tensor_of<int64_t>(spec.at("values").get<std::vector<int64_t>>(), shape)
             : make == "randn" ? randn(sizes)
             : make == "rand"  ? rand(sizes)
                               : randint(spec.at("high").get<int64_t>(), sizes);
  t = t.to(wanted);
  if (spec.contains("permute")) t = t.permute(spec["permute"].get<std::vector<int64_t>>());
  return t;
}

Value make_value(const Json& v) {
  if (v.is_boolean()) return Value(v.get<bool>());
  if (v.is_number_integer()) return Value(v.get<int64_t>());
  if (v.is_number_float()) return Value(v.get<double>());
  if (v.is_string()) return Value(v.get<std::string>());
  if (v.is_null()) return Value();
  if (v.is_array()) {
    Values items;
    for (const Json& x : v) items.push_back(make_value(x));
    return list(std::move(items));
  }
  if (v.contains("shape")) return Value(make_tensor(v));
  const std::string name = v.at("name");
  if (name == "contiguous_format") return Value(MemoryFormat::contiguous);
  return Value(dtype_from_name(name).value());
}

struct Row {
  std::function<Value()> call;
  std::function<void(int64_t)> repeat;  // the timed loop; for typed rows without the std::function in it
};

Row make_row(const Json& spec) {
  default_generator().manual_seed(0);
  Values positional;
  for (const Json& v : spec.at("args")) positional.push_back(make_value(v));
  const std::string name = spec.at("op");
  Row row;
  if (name == "typed:add") {
    const Tensor a = positional[0].to_tensor(), b = positional[1].to_tensor();
    row.call = [=] { return Value(add(a, b)); };
    row.repeat = [=](int64_t n) {
      for (; n > 0; --n) add(a, b);
    };
    return row;
  }
  if (name == "typed:view") {
    const Tensor a = positional[0].to_tensor();
    row.call = [=] { return Value(a.view({2, 4})); };
    row.repeat = [=](int64_t n) {
      for (; n > 0; --n) a.view({2, 4});
    };
    return row;
  }
  const Operator& op = get_operator(name);
  const auto& schema = op.schema().arguments;
  // Complete arguments in the schema's order, as a program that was loaded or traced has them.
  Values args;
  for (size_t i = 0; i < schema.size(); ++i) {
    if (i < positional.size())
      args.push_back(positional[i]);
    else if (spec.at("keyword").contains(schema[i].name))
      args.push_back(make_value(spec["keyword"][schema[i].name]));
    else
      args.push_back(*schema[i].default_value);
  }
  row.call = [&op, args] { return dispatch(op, args); };
  row.repeat = [&op, args](int64_t n) {
    for (; n > 0; --n) dispatch(op, args);
  };
  return row;
}

void add_sums(const Value& v, double& total, double& magnitude) {
  if (v.kind() == Value::Kind::tensor) {
    const Tensor t = v.to_tensor().to(DType::float64);
    total += item(sum(t)).to_double();
    magnitude += item(sum(abs(t))).to_double();
  } else if (v.kind() == Value::Kind::list || v.kind() == Value::Kind::tuple) {
    for (const Value& x : v.to_items()) add_sums(x, total, magnitude);
  }
}

int64_t now(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

}  // namespace

int main(int count, char** words) {
  const clockid_t clock = count > 1 && std::string_view(words[1]) == "cpu" ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
  std::string line;
  try {
    while (std::getline(std::cin, line)) {
      const Row row = make_row(Json::parse(line));
      std::cout << "ready" << std::endl;
      while (std::getline(std::cin, line) && line != "done") {
        if (line == "check") {
          double total = 0, magnitude = 0;
          add_sums(row.call(), total, magnitude);
          std::cout << fmt::format("{} {}", total, magnitude) << std::endl;
          continue;
        }
        const int64_t limit = std::stoll(line.substr(5));
        int64_t calls = 0, batch = 1, start = now(clock), elapsed = 0;
        while (elapsed < limit) {
          row.repeat(batch);
          calls += batch;
          elapsed = now(clock) - start;
          if (elapsed * 16 < limit) batch *= 2;
        }
        std::cout << calls << ' ' << elapsed << std::endl;
      }
    }
  } catch (const std::exception& e) {
    std::cout << "error: " << e.what() << std::endl;
    return 1;
  }
  return 0;
}
