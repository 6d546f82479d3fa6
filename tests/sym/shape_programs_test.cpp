// Random programs of size arithmetic beside PyTorch's ShapeEnv (golden/shape_programs.jsonl, written by
// tools/sym/shape_programs.py): the same answers, the same replacements, guards that accept the same inputs. Calque knows
// more of what follows from what, so it may take fewer guards and know narrower ranges, never the reverse.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "calque/base/error.h"
#include "calque/sym/expr.h"
#include "calque/sym/produce_guards.h"
#include "calque/sym/sym_math.h"
#include "calque/sym/unbacked.h"
#include "support/paths.h"

namespace calque::shape_programs_test {
namespace {

using Json = nlohmann::json;
using Texts = std::vector<std::string>;
using Shape = std::vector<int64_t>;

SymBool compare(const std::string& relation, SymInt a, SymInt b) {
  if (relation == "eq") return a == b;
  if (relation == "ne") return a != b;
  if (relation == "lt") return a < b;
  if (relation == "le") return a <= b;
  if (relation == "gt") return a > b;
  return a >= b;
}

SymInt binary(const std::string& op, SymInt a, SymInt b) {
  if (op == "add") return a + b;
  if (op == "sub") return a - b;
  if (op == "mul") return a * b;
  if (op == "floordiv") return floor_div(a, b);
  if (op == "mod") return a % b;
  return op == "max" ? sym_max(a, b) : sym_min(a, b);
}

Shape contiguous(const Shape& sizes) {
  Shape out(sizes.size(), 1);
  for (size_t i = sizes.size(); i-- > 1;) out[i - 1] = out[i] * sizes[i];
  return out;
}

struct Counts {
  size_t rows = 0, same_guards = 0, same_ranges = 0, same_texts = 0, same_replacements = 0, samples = 0;
};

class Program {
 public:
  Program(const Json& row, const std::string& line) : row_(row), line_(line) {
    env_ = ShapeEnv::make({.duck_shape = row.at("duck"), .specialize_zero_one = row.at("specialize")});
    for (size_t i = 0; i < row.at("inputs").size(); ++i) {
      const Shape sizes = row.at("inputs")[i][0], strides = row.at("inputs")[i][1];
      const Source source = Source::local("t" + std::to_string(i));
      inputs_.push_back({source, create_symbolic_geometry(*env_, sizes, strides, 0, source)});
      for (const SymInt s : geometry(i).sizes) registers_.push_back(s);
    }
  }

  void run() {
    size_t asked = 0;
    for (const Json& step : row_.at("steps")) {
      const std::string op = step[0];
      if (op == "const") {
        registers_.push_back(step[1].get<int64_t>());
      } else if (step.size() == 3 && op != "divides") {
        registers_.push_back(binary(op, at(step[1]), at(step[2])));
      } else {
        answer(step, row_.at("answers").at(asked++));
      }
    }
  }

  void compare_knowledge(Counts& counts) {
    Texts guards;
    for (const Guard& g : env_->guards()) guards.push_back(g.condition.expr()->str());
    const Texts their_guards = row_.at("guards");
    counts.same_guards += guards == their_guards;
    if (comparable_) {
      EXPECT_LE(guards.size(), their_guards.size()) << Json(guards).dump() << " for " << line_;
    }

    bool same_ranges = true;
    for (const auto& [name, bounds] : row_.at("ranges").items()) {
      const ValueRange theirs{bounds[0].is_null() ? ValueRange::unbounded_below : bounds[0].get<int64_t>(),
                              bounds[1].is_null() ? ValueRange::unbounded_above : bounds[1].get<int64_t>()};
      const ValueRange ours = env_->symbol(name).range;
      EXPECT_TRUE((ours.lower >= theirs.lower && ours.upper <= theirs.upper) || !comparable_)
          << name << " is in " << str(ours) << ", PyTorch says " << str(theirs) << " for " << line_;
      same_ranges &= ours == theirs;
    }
    counts.same_ranges += same_ranges;

    bool same_replacements = true;
    for (const Symbol& s : env_->symbols()) {
      const std::optional<SymInt> ours = env_->replacement(s.name);
      const Json& theirs = row_.at("replacements");
      same_replacements &= theirs.contains(s.name) ? ours && ours->str() == theirs.at(s.name).get<std::string>() : !ours;
    }
    counts.same_replacements += same_replacements;
    if (same_replacements)
      for (size_t i = 0; i < inputs_.size(); ++i)
        for (const size_t part : {0U, 1U}) {
          const SymInts& values = part == 0 ? geometry(i).sizes : geometry(i).strides;
          for (size_t d = 0; d < values.size(); ++d)
            EXPECT_EQ(values[d].str(), row_.at("geometry")[i][part][d].get<std::string>()) << line_;
        }
  }

  void compare_acceptance(Counts& counts) {
    counts.same_texts += produce_guards(*env_, inputs_).exprs() == row_.at("exprs").get<Texts>();
    const ProducedGuards produced = produce_guards(*env_, inputs_, {.ignore_static = false});
    for (const Json& sample : row_.at("samples")) {
      std::vector<ProducedGuards::RealInput> real;
      for (size_t i = 0; i < inputs_.size(); ++i) {
        const Shape example = row_.at("inputs")[i][0], strides = row_.at("inputs")[i][1], sizes = sample[0][i];
        real.push_back(ProducedGuards::RealTensor{sizes, contiguous(example) == strides ? contiguous(sizes) : strides, 0});
      }
      const std::optional<std::string> failure = produced.first_failure(real);
      EXPECT_EQ(!failure, sample[1].get<bool>()) << "sizes " << sample[0].dump() << ": " << failure.value_or("accepted")
                                                 << "\n ours: " << Json(produced.exprs()).dump() << "\n for " << line_;
      ++counts.samples;
    }
  }

 private:
  const TensorGeometry& geometry(size_t i) const { return std::get<TensorGeometry>(inputs_[i].value); }
  SymInt at(const Json& index) const { return registers_.at(index.get<size_t>()); }

  void answer(const Json& step, const Json& expected) {
    const std::string op = step[0];
    if (op == "guard_int") {
      EXPECT_EQ(at(step[1]).guard_int(), expected.get<int64_t>()) << line_;
      return;
    }
    bool ours;
    if (op == "divides") {
      ours = guard(at(step[1]) % step[2].get<int64_t>() == 0);
    } else {
      const SymInt right = step[3] == "register" ? at(step[4]) : SymInt(step[4].get<int64_t>());
      const SymBool condition = compare(step[1], at(step[2]), right);
      if (op == "known") {
        EXPECT_TRUE(statically_known_true(condition) || !expected.get<bool>() || !comparable_)
            << step.dump() << " in " << line_;
        return;
      }
      ours = op == "guard" ? guard(condition) : op == "check" ? check(condition) : guard_or_false(condition);
    }
    EXPECT_EQ(ours, expected.get<bool>()) << step.dump() << " in " << line_;
  }

  const Json& row_;
  const std::string& line_;
  // Without specialisation of 0 and 1, PyTorch still takes sizes to be positive: it knows what is not so.
  const bool comparable_ = row_.at("specialize").get<bool>();
  std::shared_ptr<ShapeEnv> env_;
  std::vector<Placeholder> inputs_;
  std::vector<SymInt> registers_;
};

TEST(ShapePrograms, do_what_pytorch_does) {
  std::ifstream in(test::source_folder() + "/tests/sym/golden/shape_programs.jsonl");
  ASSERT_TRUE(in);
  Counts counts;
  for (std::string line; std::getline(in, line); ++counts.rows) {
    const Json row = Json::parse(line);
    Program program(row, line);
    program.run();
    program.compare_knowledge(counts);
    program.compare_acceptance(counts);
  }
  EXPECT_GE(counts.rows, 600U);
  EXPECT_GE(counts.samples, 8000U);
  // How often they agree to the letter; what differs is fewer guards and narrower ranges on Calque's side.
  RecordProperty("same_guards", static_cast<int>(counts.same_guards));
  RecordProperty("same_texts", static_cast<int>(counts.same_texts));
  EXPECT_GE(counts.same_guards, counts.rows * 93 / 100);
  EXPECT_GE(counts.same_ranges, counts.rows * 93 / 100);
  EXPECT_GE(counts.same_replacements, counts.rows * 99 / 100);
  EXPECT_GE(counts.same_texts, counts.rows * 90 / 100);
}

}  // namespace
}  // namespace calque::shape_programs_test
