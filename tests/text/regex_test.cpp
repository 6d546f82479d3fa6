// Calque's own regular expressions, and the matchers that are written by hand, which must split as the expressions do.
#include "text/regex.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "calque/base/error.h"
#include "support/error_support.h"
#include "text/split_pattern.h"
#include "text/utf8.h"

namespace calque {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> matches(const SplitPattern& pattern, std::string_view text) {
  std::vector<std::string> out;
  for_each_match(pattern, text, [&](size_t begin, size_t end) { out.emplace_back(text.substr(begin, end - begin)); });
  return out;
}

std::vector<std::string> matches(std::string_view expression, std::string_view text) {
  return matches(*regex_pattern(expression, false), text);
}

TEST(TextRegex, RepeatsGreedilyLazilyAndForGood) {
  EXPECT_THAT(matches("a+", "aab a"), ElementsAre("aa", "a"));
  EXPECT_THAT(matches("a+?b", "aab"), ElementsAre("aab"));
  EXPECT_THAT(matches("<.+?>", "<a><b>"), ElementsAre("<a>", "<b>"));
  EXPECT_THAT(matches("a++b|a", "aac"), ElementsAre("a", "a"));
  EXPECT_THAT(matches("(?:ab){2,3}", "ababababab"), ElementsAre("ababab", "abab"));
  EXPECT_THAT(matches("a{,2}b", "aaab"), ElementsAre("aab"));
  EXPECT_THAT(matches("a{x", "a{x"), ElementsAre("a{x"));
  EXPECT_THAT(matches("(?>a|ab)c", "abc"), ElementsAre());
}

TEST(TextRegex, LooksAround) {
  EXPECT_THAT(matches(R"(\s+(?!\S)|\s+)", "a   b"), ElementsAre("  ", " "));
  EXPECT_THAT(matches(R"((?<=\d)[a-z]+)", "1ab cd"), ElementsAre("ab"));
  EXPECT_THAT(matches(R"((?<!a)b)", "ab bb"), ElementsAre("b", "b"));
  EXPECT_THAT(matches(R"(\bfoo\b)", "foo food foo"), ElementsAre("foo", "foo"));
  EXPECT_THAT(matches("^a|b$", "a\na b\nb"), ElementsAre("a", "a", "b", "b"));
}

TEST(TextRegex, KnowsSetsOfCharacters) {
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

TEST(TextRegex, RefusesWhatItDoesNotKnow) {
  const auto error = [](const char* expression) { return test::error_of([&] { TextRegex regex(expression); }); };
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

TEST(TextRegex, GivesUpInsteadOfHanging) {
  const TextRegex regex("(?:a+)+$");
  size_t begin, end;
  EXPECT_THROW(regex.find(std::string(60, 'a') + "b", 0, begin, end), UserError);
}

TEST(SplitPattern, HandWrittenMatchersSplitAsTheirExpressions) {
  std::mt19937 random(1);
  const std::u32string alphabet =
      U"aZ\u00E9\u4E2D\u017F'stTmMdDrReEvVlL019\u0663\u00BD \u00A0\t\n\r\u2028\u3000!?-\"\u2019\U0001F600\u0301_<>\x01";
  for (const std::string_view expression : {gpt2_pattern, llama3_pattern, qwen2_pattern}) {
    const auto by_hand = regex_pattern(expression), by_regex = regex_pattern(expression, false);
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
}  // namespace calque
