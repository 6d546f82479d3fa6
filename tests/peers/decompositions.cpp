// decompositions CASES.jsonl ANSWERS: traces each operator call of the case file, functionalised and decomposed by the
// core table (composite operators by the default one, as exports do it), with static and with symbolic sizes, and writes
// the graphs and what they compute as JSON lines.
// decompositions --list prints both tables. tests/peers/decompositions.py drives it and compares with PyTorch.
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "calque/trace/decompositions.h"
#include "calque/trace/functional.h"
#include "op/opcheck_support.h"
#include "support/graph_json_support.h"

namespace calque {
namespace {

using Json = nlohmann::ordered_json;

bool is_input(const Value& v) { return v.is_tensor() && v.to_tensor().defined() && !v.to_tensor().impl().wrapped_number; }

// The tensors of a call, in order.
void gather(const Value& v, Values& out) {
  if (is_input(v))
    out.push_back(v);
  else if (v.kind() == Value::Kind::list || v.kind() == Value::Kind::tuple)
    for (const Value& item : v.to_items()) gather(item, out);
}

// The same call with other tensors.
Value replaced(const Value& v, const Values& by, size_t& next) {
  if (is_input(v)) return by[next++];
  if (v.kind() != Value::Kind::list && v.kind() != Value::Kind::tuple) return v;
  Values items;
  for (const Value& item : v.to_items()) items.push_back(replaced(item, by, next));
  return v.kind() == Value::Kind::list ? list(std::move(items)) : tuple(std::move(items));
}

Json answer(const opcheck::CaseFile& file, size_t index, const std::string& mode) {
  const nlohmann::json& entry = file.at(index);
  Json out{{"id", entry["id"]}, {"mode", mode}};
  try {
    const PythonBodiesScope as_exports_do;
    const Operator& op = get_operator(file.operator_at(index));
    const bool is_core = core_aten_decompositions().contains(&op);
    const DecompositionTable& table = is_core ? core_aten_decompositions() : default_decompositions();
    const CompositesByTable by_table(table);
    const CompositePolicyScope policy(is_core ? nullptr : &by_table);
    const auto traced = [&](bool with_table) {
      const opcheck::Arguments args = opcheck::make_arguments(file, entry, op, opcheck::Data::real);
      Values inputs;
      for (const Value& v : args.positional) gather(v, inputs);
      for (const auto& [key, v] : args.keyword) gather(v, inputs);
      const auto call_again = [&](const Values& tensors) {
        size_t next = 0;
        Values positional;
        Kwargs keyword;
        for (const Value& v : args.positional) positional.push_back(replaced(v, tensors, next));
        for (const auto& [key, v] : args.keyword) keyword.emplace_back(key, replaced(v, tensors, next));
        return call(op, std::move(positional), std::move(keyword));
      };
      MakeFxOptions options{.mode = mode == "fake" ? TracingMode::fake : TracingMode::symbolic};
      if (with_table) options.decompositions = &table;
      TracedGraph g = make_fx_values(functionalize(call_again), inputs, options);
      g.graph().eliminate_dead_code();
      return std::pair(std::move(g), std::move(inputs));
    };
    const auto [g, inputs] = traced(true);
    out["graph"] = graph_json(g);
    out["result"] = value_json(g.run(inputs), true);
  } catch (const std::exception& e) {
    out["error"] = e.what();
  }
  return out;
}

void print_tables() {
  Json out{{"core", Json::array()}, {"default", Json::array()}, {"operators", Json::array()}};
  for (const Operator* op : all_operators()) {
    out["operators"].push_back(op->name());
    if (core_aten_decompositions().contains(op)) out["core"].push_back(op->name());
    if (default_decompositions().contains(op)) out["default"].push_back(op->name());
  }
  std::cout << out.dump() << '\n';
}

}  // namespace
}  // namespace calque

int main(int argc, char** argv) {
  using namespace calque;
  try {
    if (argc == 2 && std::string_view(argv[1]) == "--list") {
      print_tables();
      return 0;
    }
    if (argc != 3) {
      std::cerr << "usage: decompositions CASES.jsonl ANSWERS | --list\n";
      return 2;
    }
    const opcheck::CaseFile file(argv[1]);
    std::ofstream out(argv[2]);
    for (size_t i = 0; i < file.size(); ++i)
      for (const char* mode : {"fake", "symbolic"}) out << answer(file, i, mode).dump() << '\n';
  } catch (const std::exception& e) {
    std::cerr << "decompositions: " << e.what() << '\n';
    return 1;
  }
  return 0;
}
