// Compiled functions beside eager, to the last bit: chains of ten operator calls out of the cases that PyTorch made, whose results
// flow into each other, and random programs at several sizes. CALQUE_RANDOM_CHAINS=20000 makes so many of each.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include <nlohmann/json.hpp>

#include "calque/base/error.h"
#include "calque/base/warning.h"
#include "calque/compile/compile.h"
#include "calque/op/mode.h"
#include "calque/op/ops.h"
#include "calque/op/tree.h"
#include "calque/tensor/generator.h"
#include "op/opcheck_support.h"
#include "support/difference_support.h"
#include "support/error_support.h"
#include "support/paths.h"
#include "trace/random_programs_support.h"

namespace calque::compiled_sweep_test {
namespace {

size_t wanted_chains() {
  const char* asked = std::getenv("CALQUE_RANDOM_CHAINS");
  return asked ? std::strtoull(asked, nullptr, 10) : 300;
}

// The cases that can be run again and compared.
std::vector<size_t> usable_cases(const opcheck::CaseFile& file) {
  std::vector<size_t> out;
  for (size_t i = 0; i < file.size(); ++i) {
    const std::string name = file.operator_at(i);
    const bool is_unwritten = name.find("empty") != std::string::npos || name.find("resize") != std::string::npos;
    if (find_operator(name) && !is_unwritten && file.at(i).dump().find("complex32") == std::string::npos) out.push_back(i);
  }
  return out;
}

// Ten calls of cases. Half of the time an earlier result of its dtype, cut or expanded to its size, takes an argument's place.
class Chain {
 public:
  Chain(const opcheck::CaseFile& file, const std::vector<size_t>& cases, uint64_t seed, size_t length = 10)
      : file_(file), random_(seed) {
    Values pool;
    for (size_t tries = 0; steps_.size() < length && tries < 100; ++tries) {
      const size_t index = cases[random_() % cases.size()];
      const size_t inputs = inputs_.size();
      try {
        Step step = drawn(index, pool);
        manual_seed(1);
        const Values results = tree_flatten(run(step, pool)).leaves;
        for (const Value& r : results) pool.push_back(r);
        steps_.push_back(std::move(step));
      } catch (const UserError&) {  // a substitute that the operator refuses
        inputs_.resize(inputs);
      }
    }
  }

  size_t links() const { return links_; }
  // The same fresh ones each time.
  Values inputs() const {
    Values out;
    std::map<size_t, Values> made;
    for (const auto& [draw, index, leaf] : inputs_) {
      if (!made.contains(draw)) made.emplace(draw, leaves_of(index).leaves);
      out.push_back(made.at(draw)[leaf]);
    }
    return out;
  }
  Value operator()(const Values& given) const {
    Values pool, all;
    size_t input = 0;
    for (const Step& step : steps_) {
      Step bound = step;
      for (size_t i = 0; i < bound.leaves.size(); ++i)
        if (bound.places[i] == from_input) bound.leaves[i] = given.at(input++);
      const Value result = run(bound, pool);
      for (const Value& r : tree_flatten(result).leaves) pool.push_back(r);
      all.push_back(result);
    }
    return tuple(std::move(all));
  }
  std::string str() const {
    std::string out;
    for (const Step& s : steps_) out += s.op->schema().name + "  " + s.id + "\n";
    return out;
  }

 private:
  static constexpr int64_t constant = -1, from_input = -2;
  struct Step {
    const Operator* op;
    std::string id;
    TreeSpec spec;
    Values leaves;
    std::vector<int64_t> places;  // of each leaf: an earlier result, or one of the above
    std::vector<std::vector<int64_t>> sizes;
  };
  struct Input {
    size_t draw, index, leaf;  // tensors of one draw may share memory
  };

  FlatTree leaves_of(size_t index) const {
    opcheck::Arguments args =
        opcheck::make_arguments(file_, file_.at(index), *find_operator(file_.operator_at(index)), opcheck::Data::real);
    std::vector<std::pair<Value, Value>> keyword;
    for (auto& [key, value] : args.keyword) keyword.emplace_back(key, value);
    return tree_flatten(tuple({tuple(args.positional), dict(std::move(keyword))}));
  }

  Step drawn(size_t index, const Values& pool) {
    FlatTree flat = leaves_of(index);
    Step step{find_operator(file_.operator_at(index)),
              file_.at(index).at("id").get<std::string>(),
              flat.spec,
              std::move(flat.leaves),
              {},
              {}};
    const size_t draw = draws_++;
    for (size_t i = 0; i < step.leaves.size(); ++i) {
      Value& leaf = step.leaves[i];
      step.places.push_back(constant);
      step.sizes.emplace_back();
      if (!leaf.is_tensor() || !leaf.to_tensor().defined()) continue;
      const int64_t earlier = random_() % 2 == 0 ? fitting(leaf.to_tensor(), pool) : constant;
      step.sizes.back().assign(leaf.to_tensor().sizes().begin(), leaf.to_tensor().sizes().end());
      step.places.back() = earlier != constant ? earlier : from_input;
      if (earlier == constant) inputs_.push_back({draw, index, i});
    }
    return step;
  }
  // A result of this dtype; floats alone, because integers are often indices.
  int64_t fitting(const Tensor& t, const Values& pool) {
    if (!is_floating(t.dtype())) return constant;
    std::vector<int64_t> found;
    for (size_t i = 0; i < pool.size(); ++i)
      if (pool[i].is_tensor() && pool[i].to_tensor().defined() && pool[i].to_tensor().dtype() == t.dtype() &&
          pool[i].to_tensor().numel() != 0)
        found.push_back(static_cast<int64_t>(i));
    if (found.empty()) return constant;
    ++links_;
    return found[random_() % found.size()];
  }
  static Tensor fitted(const Tensor& t, const std::vector<int64_t>& sizes) {
    int64_t count = 1;
    for (const int64_t n : sizes) count *= n;
    const IntList sizes_now = t.sizes();
    if (std::equal(sizes_now.begin(), sizes_now.end(), sizes.begin(), sizes.end())) return t;
    const Tensor flat = t.reshape({-1});
    const std::vector<SymInt> symbolic(sizes.begin(), sizes.end());
    return t.numel() < count ? flat.narrow(0, 0, 1).expand(symbolic) : flat.narrow(0, 0, count).reshape(symbolic);
  }
  static Value run(const Step& step, const Values& pool) {
    Values leaves = step.leaves;
    for (size_t i = 0; i < leaves.size(); ++i)
      if (step.places[i] >= 0) leaves[i] = fitted(pool.at(static_cast<size_t>(step.places[i])).to_tensor(), step.sizes[i]);
    const Value tree = step.spec.unflatten(leaves);
    Kwargs kwargs;
    for (const auto& [key, value] : tree.to_items()[1].to_dict().items) kwargs.emplace_back(key.to_string(), value);
    return call(*step.op, tree.to_items()[0].to_items(), std::move(kwargs));
  }

  const opcheck::CaseFile& file_;
  std::mt19937_64 random_;
  std::vector<Step> steps_;
  std::vector<Input> inputs_;
  size_t draws_ = 0, links_ = 0;
};

// Eager's result and the inputs as it leaves them, beside the compiled function's.
template <class F, class I>
std::string compiled_difference(const F& program, const Compiled& compiled, const I& make_inputs) {
  const Values first = make_inputs();
  Value expected;
  manual_seed(1);
  const std::string refused = test::error_of([&] { expected = program(first); });
  for (int round = 0; round < 2; ++round) {
    const Values given = make_inputs();
    Value found;
    manual_seed(1);
    const std::string refused_too = test::error_of([&] { found = compiled.call(given); });
    if (refused != refused_too) return "eager says: " + refused + "\ncompiled says: " + refused_too;
    if (!refused.empty()) continue;
    if (std::string what = test::difference(tuple({expected, tuple(first)}), tuple({found, tuple(given)})); !what.empty())
      return what;
  }
  return {};
}

struct CompiledSweep : ::testing::Test {
  void SetUp() override {
    before = set_warning_sink([](std::string_view) {});
  }
  void TearDown() override { set_warning_sink(before); }
  WarningSink before;
};

TEST_F(CompiledSweep, each_case_gives_what_eager_gives) {
  const opcheck::CaseFile file(test::source_folder() + "/tests/op/golden/cases.jsonl");
  std::string failures;
  size_t tried = 0;
  for (const size_t index : usable_cases(file)) {
    const Chain one(file, {index}, index, 1);
    if (one.str().empty()) continue;  // the case is of an error
    ++tried;
    try {
      if (const std::string what = compiled_difference(one, compile_values(one, {}), [&] { return one.inputs(); });
          !what.empty())
        failures += "\n" + one.str() + what.substr(0, 500);
    } catch (const std::exception& e) {
      failures += "\n" + one.str() + "exception: " + e.what();
    }
  }
  EXPECT_EQ(failures.substr(0, 4000), "");
  EXPECT_GT(tried, 2000U);
}

TEST_F(CompiledSweep, chains_of_ten_cases_give_what_eager_gives) {
  const opcheck::CaseFile file(test::source_folder() + "/tests/op/golden/cases.jsonl");
  const std::vector<size_t> cases = usable_cases(file);
  size_t links = 0, whole = 0;
  const size_t wanted = wanted_chains();
  size_t failed = 0;
  for (uint64_t seed = 1; seed <= wanted && failed < 10; ++seed) {
    const Chain chain(file, cases, seed);
    links += chain.links();
    const Compiled compiled = compile_values(chain, {});
    std::string what;
    try {
      what = compiled_difference(chain, compiled, [&] { return chain.inputs(); });
    } catch (const std::exception& e) {
      what = std::string("exception: ") + e.what();
    }
    whole += compiled.graph_breaks().empty();
    if (!what.empty()) {
      ADD_FAILURE() << "seed " << seed << "\n" << chain.str() << what.substr(0, 1500);
      ++failed;
    }
  }
  EXPECT_GT(links, wanted);
  EXPECT_GT(whole, wanted / 2);
  RecordProperty("links", static_cast<int>(links));
  RecordProperty("without_a_break", static_cast<int>(whole));
}

TEST_F(CompiledSweep, random_programs_give_what_eager_gives_at_every_size) {
  size_t failed = 0;
  for (uint64_t seed = 1; seed <= wanted_chains() && failed < 10; ++seed) {
    const RandomProgram program(seed, 10);
    const Compiled compiled = compile_values([&](const Values& in) { return program(in); }, {});
    for (size_t set = 0; set < RandomProgram::size_sets; ++set) {
      std::string what;
      try {
        what = compiled_difference(program, compiled, [&] { return program.inputs(set); });
      } catch (const std::exception& e) {
        what = std::string("exception: ") + e.what();
      }
      if (what.empty()) continue;
      ADD_FAILURE() << "seed " << seed << ", sizes " << set << "\n" << what.substr(0, 1500);
      ++failed;
      break;
    }
  }
}

}  // namespace
}  // namespace calque::compiled_sweep_test
