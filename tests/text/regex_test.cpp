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
  EXPECT_THAT(error("(a)\\2"), HasSubstr("a reference to group 2, of which there is none"));
  EXPECT_THAT(error("(?<x>a)\\k<y>"), HasSubstr("a reference to a group that is not there"));
  EXPECT_THAT(error("\\p{Klingon}"), HasSubstr("\\p{Klingon}"));
  EXPECT_THAT(error("[[:letter:]]"), HasSubstr("[:letter:], which names no class"));
  EXPECT_THAT(error("\\X"), HasSubstr("clusters of characters"));
  EXPECT_THAT(error("(?~a)"), HasSubstr("an absent group"));
  EXPECT_THAT(error("\\b+"), HasSubstr("a repetition of what is no text but a place"));
  EXPECT_THAT(error("[a-\\d]"), HasSubstr("a range up to a class"));
  EXPECT_THAT(error("(?s:.)"), HasSubstr("an option besides i, m and x"));
  EXPECT_THAT(error("[b-a]"), HasSubstr("the wrong way round"));
  EXPECT_THAT(error("(?:a?b?){2,}"), HasSubstr("so many times, of what may match nothing"));
  EXPECT_THAT(error("[a"), HasSubstr("the end"));
  EXPECT_THAT(error("(((a{1000}){1000}){1000})"), HasSubstr("too long"));
  EXPECT_THAT(error(std::string(1000, '(').c_str()), HasSubstr("too deep"));
}

TEST(TextRegex, gives_up_instead_of_hanging) {
  EXPECT_THAT(test::error_of([] { matches("(?:a+b?)+$", std::string(60, 'a') + "c"); }), HasSubstr("too many steps"));
}

// A repetition ends with the first round that takes nothing.
TEST(TextRegex, repeats_what_may_match_nothing) {
  EXPECT_THAT(matches("(?:a|)+b", "aab b"), ElementsAre("aab", "b"));
  EXPECT_THAT(matches("(?:a?b?)*c", "abbac"), ElementsAre("abbac"));
  EXPECT_THAT(matches("(?:(?>a*)b?)*x", "aabx"), ElementsAre("aabx"));
  EXPECT_THAT(matches("(?:|a)+b", "aab"), ElementsAre("aab"));
}

// Oniguruma makes one repetition of two, which decides what is tried first.
TEST(TextRegex, merges_repetitions_of_repetitions) {
  EXPECT_THAT(matches("x(?:a?)*?", "xaa"), ElementsAre("x"));
  EXPECT_THAT(matches("x(?:a+?)?", "xaa"), ElementsAre("xa"));
  EXPECT_THAT(matches("xa{2}?b", "xb xab xaab"), ElementsAre("xb", "xaab"));
  EXPECT_THAT(matches("a{1,2}+b", "aaaaab"), ElementsAre("aaaaab"));
  EXPECT_THAT(matches("a{3,1}ab", "aaab aaaab"), ElementsAre("aaaab"));
}

TEST(TextRegex, refers_to_what_a_group_matched) {
  EXPECT_THAT(matches(R"((a|b)\1)", "ab aa bb"), ElementsAre("aa", "bb"));
  EXPECT_THAT(matches(R"((?<q>['"]).*?\k<q>)", R"('a"b' "c")"), ElementsAre(R"('a"b')", R"("c")"));
  EXPECT_THAT(matches(R"((?:(a)|b)+\1c)", "abac bc"), ElementsAre("abac"));
  EXPECT_THAT(matches(R"((?=(\w))\1x)", "ax bx"), ElementsAre("ax", "bx"));
  EXPECT_THAT(matches(R"(foo\Kbar)", "foobar bar"), ElementsAre("bar"));
}

TEST(TextRegex, reads_options_for_the_rest_of_a_group) {
  EXPECT_THAT(matches("a(?i)b|c", "ab aB c ac aC"), ElementsAre("ab", "aB", "ac", "aC"));
  EXPECT_THAT(matches("(?m:a.)b", "a\nb"), ElementsAre("a\nb"));
  EXPECT_THAT(matches("(?x) a  b # c\n [ ] ", "ab a b"), ElementsAre("ab "));
  EXPECT_THAT(matches("a(?#note)+", "aa"), ElementsAre("aa"));
}

TEST(TextRegex, knows_other_cases) {
  EXPECT_THAT(matches("(?i:stra\u00DFe)", "STRASSE Stra\u1E9Ee strase"), ElementsAre("STRASSE", "Stra\u1E9Ee"));
  EXPECT_THAT(matches("(?i)[\u00DF]x", "ssx \u00DFx sx"), ElementsAre("ssx", "\u00DFx"));
  EXPECT_THAT(matches(R"((?i)\p{Lu})", "aB"), ElementsAre("B"));
  EXPECT_THAT(matches(R"((?i)[\p{Lu}])", "aB"), ElementsAre("a", "B"));
  EXPECT_THAT(matches("(?i)[^k]", "k\u212AK"), ElementsAre());
}

TEST(TextRegex, knows_names_of_sets) {
  EXPECT_THAT(matches(R"(\p{Han}+|\p{Greek}+)", "a\u6771\u4EAC \u03BB"), ElementsAre("\u6771\u4EAC", "\u03BB"));
  EXPECT_THAT(matches("[[:alpha:][:^space:]&&[^b]]+", "ab c"), ElementsAre("a", "c"));
  EXPECT_THAT(matches(R"(\pL)", "apLx"), ElementsAre("pL")) << "two letters without braces";
  EXPECT_THAT(matches(R"(\w)", "a\u00B2"), ElementsAre("a", "\u00B2"));
  EXPECT_THAT(matches(R"([\w])", "a\u00B2"), ElementsAre("a"));
  EXPECT_THAT(matches(R"(\R)", "\r\n\n\u2028"), ElementsAre("\r\n", "\n", "\u2028"));
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
  EXPECT_THAT(error("(?:(?:(?:ab){200}c){200}d){200}"), HasSubstr("TextLimits::expression_size"));
  EXPECT_THAT(error("(?:(?:(?:ab){200}){200}){200}"), HasSubstr("more than 100000 repetitions"));
  EXPECT_THAT(error("[" + std::string(1'000'000, 'a') + "]"), HasSubstr("too long"));
  std::string sets = "[";
  for (int i = 0; i < 100'000; ++i) sets += "[a]";
  EXPECT_THAT(error(sets + "]"), HasSubstr("too long"));
  EXPECT_EQ(error("(?:ab)" + std::string(10'000, '?')), "");
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
