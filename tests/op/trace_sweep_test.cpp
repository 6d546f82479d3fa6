// Every operator traced: the golden cases' arguments go through make_fx, and the graph, run on other data, gives what the
// operator gives. In-place and out= forms too, with their writes to the arguments.
#include <gtest/gtest.h>

#include <cstring>

#include <nlohmann/json.hpp>

#include "calque/op/mode.h"
#include "calque/op/operators.h"
#include "calque/op/tree.h"
#include "calque/tensor/generator.h"
#include "calque/trace/make_fx.h"
#include "op/opcheck_support.h"
#include "support/paths.h"

namespace calque::opcheck {
namespace {

struct Call {
  FlatTree flat;                // of (positional, keyword)
  std::vector<size_t> tensors;  // the leaves that are tensors
};

Call make_call(const CaseFile& file, const nlohmann::json& entry, const Operator& op) {
  Arguments args = make_arguments(file, entry, op, Data::real);
  std::vector<std::pair<Value, Value>> keyword;
  for (auto& [name, value] : args.keyword) keyword.emplace_back(name, value);
  Call c{tree_flatten(tuple({tuple(args.positional), dict(std::move(keyword))})), {}};
  for (size_t i = 0; i < c.flat.leaves.size(); ++i)
    if (c.flat.leaves[i].is_tensor()) c.tensors.push_back(i);
  return c;
}

Values inputs_of(const Call& c) {
  Values out;
  for (const size_t i : c.tensors) out.push_back(c.flat.leaves[i]);
  return out;
}

Value run(const Operator& op, const Call& c, const Values& inputs) {
  Values leaves = c.flat.leaves;
  for (size_t i = 0; i < inputs.size(); ++i) leaves[c.tensors[i]] = inputs[i];
  const Value tree = c.flat.spec.unflatten(leaves);
  Kwargs keyword;
  for (const auto& [name, value] : tree.to_items()[1].to_dict().items) keyword.emplace_back(name.to_string(), value);
  return call(op, tree.to_items()[0].to_items(), keyword);
}

bool same_bytes(const Value& a, const Value& b) {
  if (a.kind() != b.kind()) return false;
  if (a.is_tensor()) {
    const Tensor x = a.to_tensor().contiguous(), y = b.to_tensor().contiguous();
    return x.dtype() == y.dtype() && str(x.sizes()) == str(y.sizes()) &&
           (x.nbytes() == 0 || std::memcmp(x.data(), y.data(), x.nbytes()) == 0);
  }
  if (a.kind() == Value::Kind::list || a.kind() == Value::Kind::tuple) {
    if (a.to_items().size() != b.to_items().size()) return false;
    for (size_t i = 0; i < a.to_items().size(); ++i)
      if (!same_bytes(a.to_items()[i], b.to_items()[i])) return false;
    return true;
  }
  return a.equals(b) || a.str() == b.str();
}

// Other values of the same kind, in place, so that views stay views.
void change(const Values& inputs) {
  for (const Value& v : inputs) {
    const Tensor& t = v.to_tensor();
    if (t.is_floating_point() && t.numel() > 0 && !has_internal_overlap(t) && !t.storage()->is_read_only()) t.mul_(0.5);
  }
}

void sweep(TracingMode mode, bool writing) {
  const CaseFile file(test::source_folder() + "/tests/op/golden/cases.jsonl");
  size_t traced = 0;
  std::string failures;
  for (size_t i = 0; i < file.size(); ++i) {
    const Operator* op = find_operator(file.operator_at(i));
    const nlohmann::json& entry = file.at(i);
    if (!op || entry.at("expect").contains("error") || entry.dump().find("complex32") != std::string::npos) continue;
    const Operator& form = op->base() ? *op->base() : *op;
    if (form.has_tag(Tag::data_dependent) || form.has_tag(Tag::random)) continue;
    if (op->schema().name.find("empty") != std::string::npos || op->schema().name.starts_with("resize"))
      continue;  // memory that nobody wrote
    const bool writes = op->has_tag(Tag::in_place) || op->has_tag(Tag::out) || op->form() == Operator::Form::mutate;
    if (writes != writing) continue;
    const Call example = make_call(file, entry, *op);
    if (example.tensors.empty()) continue;
    const std::string id = entry.at("id");
    try {
      const Call eager = make_call(file, entry, *op), replayed = make_call(file, entry, *op);
      const Values eager_in = inputs_of(eager), replayed_in = inputs_of(replayed);
      change(eager_in);
      change(replayed_in);
      const TracedGraph g =
          make_fx_values([&](const Values& in) { return run(*op, example, in); }, inputs_of(example), {.mode = mode});
      manual_seed(1);
      const Value expected = run(*op, eager, eager_in);
      manual_seed(1);
      const Value found = g.run(replayed_in);
      ++traced;
      if (!same_bytes(expected, found)) failures += "\n" + id + ": differs\n" + g.graph().str();
      for (size_t k = 0; k < eager_in.size(); ++k)
        if (!same_bytes(eager_in[k], replayed_in[k])) failures += "\n" + id + ": input " + std::to_string(k) + " differs";
    } catch (const UserError& e) {
      if (e.kind() == ErrorKind::data_dependent) continue;
      failures += "\n" + id + ": " + e.what();
    } catch (const std::exception& e) {
      failures += "\n" + id + ": exception " + e.what();
    }
  }
  EXPECT_EQ(failures, "");
  EXPECT_GT(traced, writing ? 200U : 1000U);
}

TEST(TraceSweep, T140_every_operator_in_real_mode) { sweep(TracingMode::real, false); }
TEST(TraceSweep, T141_every_operator_in_fake_mode) { sweep(TracingMode::fake, false); }
TEST(TraceSweep, T143_in_place_and_out_forms_in_symbolic_mode) { sweep(TracingMode::symbolic, true); }
TEST(TraceSweep, every_operator_in_symbolic_mode) { sweep(TracingMode::symbolic, false); }

}  // namespace
}  // namespace calque::opcheck
