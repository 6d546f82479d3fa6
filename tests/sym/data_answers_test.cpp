#include "calque/sym/data_answers.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "calque/base/error.h"

namespace calque {
namespace {

// Says 7 for every integer, yes for every condition, and nothing for floats.
struct Seven : DataAnswers {
  std::vector<std::string> asked;
  std::optional<DataAnswer> answer(const SymNumber& number, std::source_location) override {
    if (const auto* i = std::get_if<SymInt>(&number)) {
      asked.push_back(i->str());
      return DataAnswer(int64_t{7});
    }
    if (const auto* b = std::get_if<SymBool>(&number)) {
      asked.push_back(b->str());
      return DataAnswer(true);
    }
    return std::nullopt;
  }
};

TEST(DataAnswers, an_answer_takes_the_place_of_an_error_and_is_learnt) {
  const auto env = ShapeEnv::make();
  const SymInt u = env->create_unbacked();
  EXPECT_THROW(guard(u > 3), UserError);
  Seven seven;
  {
    const DataAnswersScope scope(*env, seven);
    EXPECT_TRUE(guard(u > 3));
    EXPECT_TRUE(guard(u > 3));  // known by now
    EXPECT_EQ((u + 1).as_int(), 7);
  }
  EXPECT_EQ(seven.asked, (std::vector<std::string>{"3 < u0", "u0 + 1"}));
  EXPECT_EQ(u.guard_int(), 6);
  EXPECT_TRUE(env->guards().empty());
}

TEST(DataAnswers, without_an_answer_the_question_is_an_error) {
  const auto env = ShapeEnv::make();
  Seven seven;
  const DataAnswersScope scope(*env, seven);
  EXPECT_THROW(env->create_unbacked_float().as_float(), UserError);
  EXPECT_FALSE(ask_data(SymInt(3)));
  EXPECT_FALSE(ask_data(env->create_size(5, "x")));  // backed: nothing to ask
}

}  // namespace
}  // namespace calque
