// Calque's own regular expressions, and the matchers that are written by hand, which must split as the expressions do.
#include "text/regex.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "calque/base/error.h"
#include "support/error_support.h"
#include "text/split_pattern.h"
#include "text/utf8.h"

namespace calque::regex_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> matches(const SplitPattern& pattern, std::string_view text) {
  std::vector<std::string> out;
  TextBudget budget({}, "test", TextBudget::Of::text, text.size());
  for_each_match(pattern, text, budget,
                 [&](size_t begin, size_t end) { out.emplace_back(text.substr(begin, end - begin)); });
  return out;
}

std::vector<std::string> matches(std::string_view expression, std::string_view text) {
  ExpressionBudget budget;
  return matches(*regex_pattern(expression, budget, false), text);
}

TEST(TextRegex, repeats_greedily_lazily_and_for_good) {
  EXPECT_THAT(matches("a+", "aab a"), ElementsAre("aa", "a"));
  EXPECT_THAT(matches("a+?b", "aab"), ElementsAre("aab"));
  EXPECT_THAT(matches("<.+?>", "<a><b>"), ElementsAre("<a>", "<b>"));
  EXPECT_THAT(matches("a++b|a", "aac"), ElementsAre("a", "a"));
  EXPECT_THAT(matches("(?:ab){2,3}", "ababababab"), ElementsAre("ababab", "abab"));
  EXPECT_THAT(matches("a{,2}b", "aaab"), ElementsAre("aab"));
  EXPECT_THAT(matches("a{x", "a{x"), ElementsAre("a{x"));
  EXPECT_THAT(matches("(?>a|ab)c", "abc"), ElementsAre());
}

TEST(TextRegex, looks_around) {
  EXPECT_THAT(matches(R"(\s+(?!\S)|\s+)", "a   b"), ElementsAre("  ", " "));
  EXPECT_THAT(matches(R"((?<=\d)[a-z]+)", "1ab cd"), ElementsAre("ab"));
  EXPECT_THAT(matches(R"((?<!a)b)", "ab bb"), ElementsAre("b", "b"));
  EXPECT_THAT(matches(R"(\bfoo\b)", "foo food foo"), ElementsAre("foo", "foo"));
  EXPECT_THAT(matches("^a|b$", "a\na b\nb"), ElementsAre("a", "a", "b", "b"));
}

TEST(TextRegex, knows_sets_of_characters) {
  EXPECT_THAT(matches(R"([^\s\p{L}]+)", "a1\u00E9-2 "), ElementsAre("1", "-2"));
  EXPECT_THAT(matches(R"([\p{L}&&[^a-c]]+)", "abcdef\u00E9"), ElementsAre("def\u00E9"));
  EXPECT_THAT(matches(R"([a-c[x-z]]+)", "axdyz"), ElementsAre("ax", "yz"));
  EXPECT_THAT(matches(R"(\P{N}+)", "ab\u0663c"), ElementsAre("ab", "c"));
  EXPECT_THAT(matches(R"([]a]+)", "a]b"), ElementsAre("a]"));
  EXPECT_THAT(matches(R"(\u00e9|\x41|\x{1F600})",
                      "\u00E9"
                      "A\U0001F600"),
              ElementsAre("\u00E9", "A", "\U0001F600"));
  EXPECT_THAT(matches(R"((?i:'S|[d-f]+))", "'s'\u017F DEf"), ElementsAre("'s", "'\u017F", "DEf"));
}

TEST(TextRegex, refuses_what_it_does_not_know) {
  const auto error = [](const char* expression) {
    return test::error_of([&] {
      ExpressionBudget budget;
      TextRegex regex(expression, budget);
    });
  };
  EXPECT_THAT(error("(a"), HasSubstr("a group without end"));
  EXPECT_THAT(error("a)"), HasSubstr("an unmatched )"));
  EXPECT_THAT(error("*a"), HasSubstr("a repetition of nothing"));
  EXPECT_THAT(error("(a)\\1"), HasSubstr("a back-reference"));
  EXPECT_THAT(error("\\p{Klingon}"), HasSubstr("\\p{Klingon}"));
  EXPECT_THAT(error("[b-a]"), HasSubstr("the wrong way round"));
  EXPECT_THAT(error("(a*)*"), HasSubstr("may match nothing"));
  EXPECT_THAT(error("[a"), HasSubstr("the end"));
  EXPECT_THAT(error("(((a{1000}){1000}){1000})"), HasSubstr("too long"));
  EXPECT_THAT(error(std::string(1000, '(').c_str()), HasSubstr("too deep"));
}

TEST(TextRegex, gives_up_instead_of_hanging) {
  EXPECT_THAT(test::error_of([] { matches("(?:a+)+$", std::string(60, 'a') + "b"); }), HasSubstr("too many steps"));
}

TEST(TextRegex, knows_what_may_match_nothing) {
  for (const char* expression :
       {"(?:a|)+", "(?:a?b?)*", "(?:(?=a))+", "(?:(?>a*))+", "(?:^\\b)*", "(?:a{0,3}){2,}", "(?:a{0})+"})
    EXPECT_THAT(test::error_of([&] { matches(expression, "a"); }), HasSubstr("may match nothing")) << expression;
  for (const char* expression : {"(?:a|b)+", "(?:a?b)*", "(?:(?=a)a)+", "(?:(?>a+))+", "(?:^a)*", "(?:(?:ab){1,3}){2,}"})
    EXPECT_EQ(test::error_of([&] { matches(expression, "a"); }), "") << expression;
}

// Alternatives are written out in one go, empty ones too.
TEST(TextRegex, alternatives_may_be_many_and_empty) {
  EXPECT_THAT(matches("a||b", "ab"), ElementsAre("a", ""));
  EXPECT_THAT(matches("(?:ab|cd|ef)g|h", "abg cdg efg h ab"), ElementsAre("abg", "cdg", "efg", "h"));
  std::string many = "x0";
  for (int i = 1; i < 5000; ++i) many += "|x" + std::to_string(i);
  EXPECT_THAT(matches(many + "!", "x4999!"), ElementsAre("x4"));
  EXPECT_THAT(matches("(?:" + many + ")!", "x4999!"), ElementsAre("x4999!"));
}

// What may not be larger: one expression, and all of a file together.
TEST(TextRegex, refuses_expressions_before_they_grow) {
  const auto error = [](const std::string& expression) { return test::error_of([&] { matches(expression, "a"); }); };
  EXPECT_THAT(error(std::string(100'000, '|')), HasSubstr("too long at character"));
  EXPECT_THAT(error(std::string(1'000'000, 'a')), HasSubstr("of 1000000 characters: too long at character 5000"));
  EXPECT_THAT(error("(?:(?:(?:ab){200}){200}){200}"), HasSubstr("TextLimits::expression_size"));
  EXPECT_THAT(error("[" + std::string(1'000'000, 'a') + "]"), HasSubstr("too long"));
  std::string sets = "[";
  for (int i = 0; i < 100'000; ++i) sets += "[a]";
  EXPECT_THAT(error(sets + "]"), HasSubstr("too long"));
  EXPECT_THAT(error("(?:ab)" + std::string(100'000, '?')), HasSubstr("too long"));
  EXPECT_LT(error(std::string(1'000'000, 'a')).size(), 400u) << "a message does not show all of a long expression";

  ExpressionBudget file({.expression_size = 100});
  const std::string forty(40, 'a');
  TextRegex first(forty, file), second(forty, file);
  EXPECT_THAT(test::error_of([&] { TextRegex third(forty, file); }), HasSubstr("may have 100 parts"));
}

// Possessive repetitions and look-around run inside one another.
TEST(TextRegex, refuses_runs_inside_too_many_runs) {
  const auto error = [](const std::string& expression) { return test::error_of([&] { matches(expression, "aaa"); }); };
  std::string stacked = "(?:ab)";
  for (int i = 0; i < 200; ++i) stacked += "?+";
  EXPECT_THAT(error(stacked), HasSubstr("too deep a nesting"));
  std::string wrapped = "ab";
  for (int i = 0; i < 60; ++i) wrapped = "(?:" + wrapped + ")?+?+";
  EXPECT_THAT(error(wrapped), HasSubstr("too deep a nesting"));
  std::string fine = "a";
  for (int i = 0; i < 90; ++i) fine = "(?>" + fine + ")";
  EXPECT_EQ(error(fine), "");
}

TEST(SplitPattern, hand_written_matchers_split_as_their_expressions) {
  std::mt19937 random(1);
  const std::u32string alphabet =
      U"aZ\u00E9\u4E2D\u017F'stTmMdDrReEvVlL019\u0663\u00BD \u00A0\t\n\r\u2028\u3000!?-\"\u2019\U0001F600\u0301_<>\x01";
  for (const std::string_view expression : {gpt2_pattern, llama3_pattern, qwen2_pattern}) {
    ExpressionBudget budget;
    const auto by_hand = regex_pattern(expression, budget), by_regex = regex_pattern(expression, budget, false);
    for (int i = 0; i < 3000; ++i) {
      std::string text;
      const auto n = random() % 30;
      for (unsigned k = 0; k < n; ++k) append_utf8(text, alphabet[random() % alphabet.size()]);
      const auto found = matches(*by_hand, text);
      EXPECT_EQ(found, matches(*by_regex, text)) << expression << "\non: " << text;
      std::string all;
      for (const std::string& part : found) all += part;
      EXPECT_EQ(all, text) << "every character is in a word";
    }
  }
}

}  // namespace
}  // namespace calque::regex_test
