#include "task/whisper_text.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

#include "calque/base/error.h"
#include "text/utf8.h"

namespace calque {
namespace {

using Ids = std::vector<int64_t>;
using Interval = std::pair<double, double>;

constexpr double steps_of_a_part = 1500;  // timestamps in what the model hears at once

// Two decimals, as Python rounds.
double hundredths(double seconds) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.2f", seconds);
  return std::strtod(text.data(), nullptr);
}

std::string stripped(const std::string& text) {
  constexpr const char* space = " \t\n\r\f\v";
  const size_t first = text.find_first_not_of(space);
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(space) - first + 1);
}

bool is_within(const std::string& text, const std::string& characters) { return characters.find(text) != std::string::npos; }

// A word and the places of its tokens.
struct Word {
  std::string text;
  std::vector<size_t> places;
  void take(const Word& next) {
    text += next.text;
    places.insert(places.end(), next.places.begin(), next.places.end());
  }
};

// A word for each run of tokens that ends with whole characters.
std::vector<Word> whole_characters(const Tokenizer& tokenizer, const Ids& ids) {
  constexpr char32_t replacement = 0xFFFD;
  const std::u32string full = to_utf32(tokenizer.decode_clean(ids, false));
  std::vector<Word> out;
  Ids current;
  std::vector<size_t> places;
  size_t offset = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    current.push_back(ids[i]);
    places.push_back(i);
    const std::string text = tokenizer.decode_clean(current, false);
    const std::u32string characters = to_utf32(text);
    const size_t broken = characters.find(replacement);
    const bool whole =
        broken == std::u32string::npos || offset + broken >= full.size() || full[offset + broken] == replacement;
    if (!whole) continue;
    out.push_back({text, std::move(places)});
    current.clear();
    places.clear();
    offset += characters.size();
  }
  return out;
}

// Words begin with a space, or with a token of Whisper's own; punctuation stands alone for now.
std::vector<Word> split_at_spaces(const std::vector<Word>& pieces, const Ids& ids, std::optional<int64_t> eos) {
  std::vector<Word> out;
  for (const Word& one : pieces) {
    const bool punctuation = is_within(stripped(one.text), "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~");
    const bool own = eos && ids[one.places[0]] >= *eos;
    if (out.empty() || one.text.starts_with(" ") || punctuation || own)
      out.push_back(one);
    else
      out.back().take(one);
  }
  return out;
}

// Quotes and brackets that open go with the next word, what ends a sentence with the one before.
void join_punctuation(std::vector<Word>& words) {
  if (words.empty()) return;
  size_t behind = words.size() - 1;
  for (size_t i = behind; i-- > 0;) {
    Word& one = words[i];
    if (one.text.starts_with(" ") && is_within(stripped(one.text), "\"'“¡¿([{-")) {
      one.take(words[behind]);
      words[behind] = std::move(one);
      one = {};
    } else {
      behind = i;
    }
  }
  for (size_t i = 0, j = 1; j < words.size(); ++j) {
    if (!words[i].text.ends_with(" ") && is_within(words[j].text, "\"'.。,，!！?？:：”)]}、")) {
      words[i].take(words[j]);
      words[j] = {};
    } else {
      i = j;
    }
  }
  std::erase_if(words, [](const Word& one) { return one.text.empty(); });
}

std::vector<SpokenPart> words_of(const Tokenizer& tokenizer, const Ids& ids, const std::vector<Interval>& times,
                                 const std::string& language) {
  constexpr std::array without_spaces =
      std::to_array<std::string_view>({"chinese", "japanese", "thai", "lao", "myanmar", "cantonese"});
  std::vector<Word> words = whole_characters(tokenizer, ids);
  if (std::ranges::find(without_spaces, language) == without_spaces.end())
    words = split_at_spaces(words, ids, tokenizer.special_token_id("eos"));
  join_punctuation(words);
  std::vector<SpokenPart> out;
  for (const Word& one : words) out.push_back({one.text, times[one.places.front()].first, times[one.places.back()].second});
  return out;
}

// Goes through the tokens and ends a part at every second timestamp.
class WhisperReader {
 public:
  WhisperReader(const Tokenizer& tokenizer, const Ids& ids, const std::vector<float>& times,
                const WhisperTextOptions& options)
      : tokenizer_(tokenizer), ids_(ids), times_(times), options_(options) {
    const std::optional<int64_t> none = tokenizer.token_to_id("<|notimestamps|>");
    if (!none) throw UserError("transcribe: the tokenizer has no <|notimestamps|>, so it is not Whisper's");
    begin_ = *none + 1;
  }

  Transcript read() {
    for (size_t i = 0; i < ids_.size(); ++i) {
      if (tokenizer_.is_special(ids_[i])) continue;
      if (ids_[i] >= begin_)
        timestamp(i);
      else
        word(i);
    }
    if (!part_.empty()) end_part({});
    for (const std::string& text : texts_) out_.text += text;
    out_.ids = ids_;
    return std::move(out_);
  }

 private:
  void word(size_t i) {
    part_.push_back(ids_[i]);
    if (options_.times != TimesOf::words) return;
    const double from = i == 0 ? 0.0 : static_cast<double>(times_.at(i - 1));
    part_times_.emplace_back(hundredths(from), hundredths(static_cast<double>(times_.at(i))));
  }

  // Times start anew with each stretch that the model heard: one that is earlier than the last begins another.
  void timestamp(size_t i) {
    const double seconds = static_cast<double>(ids_[i] - begin_) * options_.time_precision;
    if (seconds < latest_) {
      const bool single = i >= 2 && !(ids_[i - 1] >= begin_ && ids_[i - 2] >= begin_);
      if (!single) latest_ = before_latest_;
      stretches_ += single ? options_.time_precision * steps_of_a_part : before_latest_;
    }
    before_latest_ = latest_;
    latest_ = seconds;
    const double time = hundredths(seconds + stretches_);
    if (!opened_)
      opened_ = time;
    else if (time != *opened_)
      end_part(time);
  }

  void end_part(std::optional<double> time) {
    texts_.push_back(tokenizer_.decode_clean(part_, false));
    if (options_.times == TimesOf::segments) out_.parts.push_back({texts_.back(), opened_, time});
    if (options_.times == TimesOf::words)
      for (SpokenPart& one : words_of(tokenizer_, part_, part_times_, options_.language))
        out_.parts.push_back(std::move(one));
    part_.clear();
    part_times_.clear();
    opened_.reset();
  }

  const Tokenizer& tokenizer_;
  const Ids& ids_;
  const std::vector<float>& times_;
  const WhisperTextOptions& options_;
  int64_t begin_ = 0;
  Ids part_;
  std::vector<Interval> part_times_;
  std::optional<double> opened_;
  double latest_ = 0, before_latest_ = 0, stretches_ = 0;
  std::vector<std::string> texts_;
  Transcript out_;
};

}  // namespace

Transcript whisper_text(const Tokenizer& tokenizer, const Ids& ids, const std::vector<float>& token_times,
                        const WhisperTextOptions& options) {
  return WhisperReader(tokenizer, ids, token_times, options).read();
}

}  // namespace calque
