// Splitting mixed text with the expressions of well-known tokenizers: Calque's matchers by hand and its engine, Oniguruma and PCRE2
// (compiled just in time), one thread, interleaved. Then what each does with an expression that backtracks without end. All engines
// must find the same pieces.
#define PCRE2_CODE_UNIT_WIDTH 8
#include <oniguruma.h>
#include <pcre2.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "calque/base/error.h"
#include "text/split_pattern.h"

namespace {

using namespace calque;

struct Pieces {
  size_t count = 0;
  uint64_t hash = 1469598103934665603u;
  void add(size_t begin, size_t end) {
    ++count;
    hash = ((hash ^ begin) * 1099511628211u ^ end) * 1099511628211u;
  }
};

struct Engine {
  const char* name;
  std::function<Pieces(std::string_view)> run;
};

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

[[noreturn]] void stop(const std::string& why) {
  std::fprintf(stderr, "bench/regex: %s\n", why.c_str());
  std::exit(1);
}

Engine calque_engine(const char* name, const std::string& expression, bool by_hand) {
  ExpressionBudget expressions;
  std::shared_ptr<SplitPattern> pattern = regex_pattern(expression, expressions, by_hand);
  return {name, [pattern](std::string_view text) {
            Pieces out;
            TextBudget budget({}, "bench", TextBudget::Of::text, text.size());
            for_each_match(*pattern, text, budget, [&](size_t begin, size_t end) { out.add(begin, end); });
            return out;
          }};
}

Engine oniguruma(const std::string& expression) {
  OnigRegex regex = nullptr;
  OnigErrorInfo info;
  const auto* begin = reinterpret_cast<const OnigUChar*>(expression.data());
  if (onig_new(&regex, begin, begin + expression.size(), ONIG_OPTION_NONE, ONIG_ENCODING_UTF8, ONIG_SYNTAX_ONIGURUMA,
               &info) != ONIG_NORMAL)
    stop("Oniguruma refuses " + expression);
  return {"Oniguruma", [regex](std::string_view text) {
            Pieces out;
            const auto* first = reinterpret_cast<const OnigUChar*>(text.data());
            const OnigUChar* last = first + text.size();
            OnigRegion* region = onig_region_new();
            for (const OnigUChar* at = first; at < last;) {
              const int found = onig_search(regex, first, last, at, last, region, ONIG_OPTION_NONE);
              if (found == ONIG_MISMATCH) break;
              if (found < 0) throw UserError("Oniguruma's error " + std::to_string(found));
              out.add(static_cast<size_t>(region->beg[0]), static_cast<size_t>(region->end[0]));
              at = first + std::max(region->end[0], region->beg[0] + 1);
            }
            onig_region_free(region, 1);
            return out;
          }};
}

Engine pcre2(const std::string& expression) {
  int error = 0;
  PCRE2_SIZE where = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(expression.data()), expression.size(), PCRE2_UTF | PCRE2_UCP,
                                   &error, &where, nullptr);
  if (!code) stop("PCRE2 refuses " + expression);
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
  return {"PCRE2 (JIT)", [code](std::string_view text) {
            Pieces out;
            pcre2_match_data* match = pcre2_match_data_create_from_pattern(code, nullptr);
            const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
            // The text is checked once, not at every piece.
            for (size_t at = 0; at < text.size();) {
              const uint32_t options = at == 0 ? 0 : PCRE2_NO_UTF_CHECK;
              const int found = pcre2_match(code, subject, text.size(), at, options, match, nullptr);
              if (found == PCRE2_ERROR_NOMATCH) break;
              if (found < 0) throw UserError("PCRE2's error " + std::to_string(found));
              const PCRE2_SIZE* range = pcre2_get_ovector_pointer(match);
              out.add(range[0], range[1]);
              at = std::max(range[1], range[0] + 1);
            }
            pcre2_match_data_free(match);
            return out;
          }};
}

// Prose, code, numbers, white space and several scripts, mixed by a fixed rule.
std::string mixed_text(size_t size) {
  static constexpr std::string_view parts[] = {
      "The people of the United States have, it's said, no king; they've elections.\n",
      "for (int i = 0; i < count_; ++i) {\n    out[i] += weights[i * 4 + 3];  // fused\n}\n\n",
      "Die Größe des Gebäudes überraschte uns: 1.234,56 m² – wer hätte's gedacht?\n",
      "東京は日本の首都です。人口は約1400万人です。\n",
      "Москва — столица России. Её население 13 010 112 человек.\r\n",
      "    \t  \n",
      "{\"name\": \"value\", \"list\": [1, 2.5e-3, true], \"u\": \"\\u00e9\"}\n",
      "😀 👩‍🔬 café naïve ½ Ⅻ ²\n",
      "SELECT COUNT(*) FROM users WHERE id IN (1,22,333,4444) AND name<>'O''Brien';\n"};
  std::string out;
  uint32_t state = 12345;
  while (out.size() < size) {
    state = state * 1664525u + 1013904223u;
    out += parts[(state >> 16) % std::size(parts)];
  }
  return out;
}

void compare_speed(const char* name, const std::string& expression, const std::string& text, bool has_hand,
                   bool pcre2_reads_it = true) {
  std::vector<Engine> engines;
  if (has_hand) engines.push_back(calque_engine("Calque, by hand", expression, true));
  engines.push_back(calque_engine("Calque, engine", expression, false));
  engines.push_back(oniguruma(expression));
  if (pcre2_reads_it) engines.push_back(pcre2(expression));
  std::vector<double> best(engines.size(), 1e9);
  std::vector<Pieces> pieces(engines.size());
  for (int round = 0; round < 5; ++round)
    for (size_t i = 0; i < engines.size(); ++i)
      best[i] = std::min(best[i], seconds_of([&] { pieces[i] = engines[i].run(text); }));
  const size_t base = has_hand ? 2 : 1;  // Oniguruma
  for (size_t i = 0; i < engines.size(); ++i)
    std::printf("%-10s %-16s %8.1f MB/s  %5.2fx Oniguruma  %s\n", name, engines[i].name,
                static_cast<double>(text.size()) / best[i] / 1e6, best[base] / best[i],
                pieces[i].hash == pieces[base].hash ? "same pieces"
                                                    : ("DIFFERENT pieces: " + std::to_string(pieces[i].count)).c_str());
}

void endless(const std::string& expression, const std::string& text) {
  for (const Engine& engine :
       {calque_engine("Calque, engine", expression, false), oniguruma(expression), pcre2(expression)}) {
    std::string said = "no match";
    const double seconds = seconds_of([&] {
      try {
        if (engine.run(text).count > 0) said = "a match";
      } catch (const UserError& error) {
        said = std::string(error.what()).substr(0, 60);
      }
    });
    std::printf("%-14s on %zu bytes: %-16s %7.3f s  %s\n", expression.c_str(), text.size(), engine.name, seconds,
                said.c_str());
  }
}

}  // namespace

int main() {
  OnigEncoding utf8 = ONIG_ENCODING_UTF8;
  onig_initialize(&utf8, 1);
  const std::string text = mixed_text(2 << 20);
  const std::string contraction = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?";
  compare_speed("gpt2", std::string(gpt2_pattern), text, true);
  compare_speed("llama3", std::string(llama3_pattern), text, true);
  compare_speed("qwen2", std::string(qwen2_pattern), text, true);
  compare_speed("o200k",
                R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)" + contraction +
                    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)" + contraction +
                    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
                text, false);
  compare_speed("deepseek",
                "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+"
                R"(|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
                text, false);
  compare_speed(
      "cl100k",
      R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)",
      text, false);
  compare_speed("bloom", R"( ?[^(\s|[.,!?…。，、।۔،])]+)", text, false, false);
  compare_speed("digits", R"(\d{1,3}(?=(?:\d{3})*\b))", text, false);
  compare_speed("chinese", "[\xE4\xB8\x80-\xE9\xBE\xA5\xE3\x81\x80-\xE3\x82\x9F\xE3\x82\xA0-\xE3\x83\xBF]+", text, false);
  endless("(?:a+b?)+c", std::string(40, 'a'));
  endless("(?:a+)+b", std::string(40, 'a'));
  endless("(?:a|aa)+b", std::string(60, 'a'));
  endless("(?:.+)+x", std::string(3000, 'y'));
}
