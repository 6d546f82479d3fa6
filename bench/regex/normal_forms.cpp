// Normal forms: Calque's beside utf8proc's, in speed on one thread and in what they make of every character. Calque's tables are those of
// the tokenizers library, whose forms are of an older Unicode version: where the two differ, the library makes what Calque makes
// (tests/peers/tokenizer.py).
#include <utf8proc.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "text/normal_forms.h"
#include "text/utf8.h"

namespace {

using namespace calque;

struct Form {
  const char* name;
  NormalForm own;
  utf8proc_option_t options;
};

std::string own(const std::string& text, NormalForm form) {
  TextBudget budget({}, "bench", TextBudget::Of::text, text.size());
  TextStore store(budget);
  return std::string(normalize({text}, form, store).text);
}

std::string theirs(const std::string& text, utf8proc_option_t options) {
  utf8proc_uint8_t* made = nullptr;
  const utf8proc_ssize_t size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                             static_cast<utf8proc_ssize_t>(text.size()), &made, options);
  if (size < 0) std::abort();
  std::string out(reinterpret_cast<const char*>(made), static_cast<size_t>(size));
  std::free(made);
  return out;
}

template <class Work>
double best_of(int rounds, Work&& work) {
  double best = 1e9;
  for (int i = 0; i < rounds; ++i) {
    const auto start = std::chrono::steady_clock::now();
    work();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

}  // namespace

int main() {
  const auto decomposing = static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_STABLE);
  const auto composing = static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE);
  const auto compatible = [](utf8proc_option_t o) { return static_cast<utf8proc_option_t>(o | UTF8PROC_COMPAT); };
  const Form forms[] = {{"NFC", NormalForm::nfc, composing},
                        {"NFD", NormalForm::nfd, decomposing},
                        {"NFKC", NormalForm::nfkc, compatible(composing)},
                        {"NFKD", NormalForm::nfkd, compatible(decomposing)}};
  const std::pair<const char*, std::string> texts[] = {
      {"English", "The people of the United States have, it's said, no king; they've elections.\n"},
      {"mixed",
       "Die Größe überraschte: 1.234 m² – café naïve ½ Ⅻ. Её население. 人口は約です。 한국어 ﬁn e\u0301a\u0323\u0302\n"},
      {"Hangul", "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다.\n"}};
  std::printf("utf8proc %s, Unicode %s, beside Calque; megabytes a second\n", utf8proc_version(),
              utf8proc_unicode_version());
  for (const Form& form : forms) {
    for (const auto& [name, line] : texts) {
      std::string text;
      while (text.size() < 1 << 20) text += line;
      const double a = best_of(5, [&] { own(text, form.own); }), b = best_of(5, [&] { theirs(text, form.options); });
      std::printf("%-5s %-8s Calque (with the origin of each byte) %8.1f  utf8proc %8.1f  %5.2fx\n", form.name, name,
                  static_cast<double>(text.size()) / a / 1e6, static_cast<double>(text.size()) / b / 1e6, b / a);
    }
    size_t differ = 0, checked = 0;
    for (char32_t c = 1; c < 0x110000; ++c) {
      if (c >= 0xD800 && c < 0xE000) continue;
      for (const char32_t mark : {U'\0', U'\u0301', U'\u0323'}) {
        std::string text = "a";
        append_utf8(text, c);
        if (mark) append_utf8(text, mark);
        ++checked;
        differ += own(text, form.own) != theirs(text, form.options);
      }
    }
    std::printf("%-5s %zu of %zu short texts (every character, alone and with a mark) differ\n", form.name, differ, checked);
  }
}
