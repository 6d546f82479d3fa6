// Batches: texts cut to a length, what is cut off as rows of its own, and rows padded to one length.
#include <algorithm>
#include <limits>

#include "calque/base/error.h"
#include "calque/base/thread.h"
#include "text/tokenizer_impl.h"

namespace calque {
namespace {

constexpr size_t bytes_a_chunk = 1 << 14;  // of text, so that a thread is worth waking

struct Window {
  size_t begin, end;
};

std::string number(size_t n) { return std::to_string(n); }

// What rows may have, if they are cut.
std::optional<size_t> longest_row(const BatchOptions& options, const TokenizerSettings& settings) {
  if (!options.truncate || options.max_length) return options.truncate ? options.max_length : std::nullopt;
  if (!settings.model_max_length) return std::nullopt;
  return static_cast<size_t>(*settings.model_max_length);
}

void check_lengths(const BatchOptions& options, const TokenizerSettings& settings) {
  const size_t multiple = options.pad ? options.pad_to_multiple_of.value_or(0) : 0;
  const size_t most = longest_row(options, settings).value_or(0);
  if (multiple > 0 && most % multiple != 0)
    throw UserError("tokenizer: rows are cut to " + number(most) +
                    " tokens, which is not a multiple of pad_to_multiple_of (" + number(multiple) +
                    "); expected a max_length that is");
}

// The parts of `size` tokens that are `length` long and overlap by `stride`, the one that is kept first.
std::vector<Window> windows_of(size_t size, size_t length, const BatchOptions& options, TextSide side, TextBudget& budget) {
  if (length >= size) return {{0, size}};
  if (length == 0) return {{0, 0}, {0, size}};
  if (options.stride >= length)
    throw UserError("tokenizer: a stride of " + number(options.stride) + " tokens, but the rows have room for " +
                    number(length) + " tokens of this text; expected a smaller stride or a greater max_length");
  std::vector<Window> out;
  const size_t step = length - options.stride;
  for (size_t done = 0;; done += step) {
    budget.take(sizeof(Window));
    const size_t reach = std::min(done + length, size);
    if (side == TextSide::right)
      out.push_back({done, reach});
    else
      out.push_back({size - reach, size - done});
    if (reach == size || !options.overflow) return out;
  }
}

Encoding slice(const Encoding& e, Window w) {
  const auto cut = [&](const auto& from) {
    using Vector = std::decay_t<decltype(from)>;
    return Vector(from.begin() + static_cast<std::ptrdiff_t>(w.begin), from.begin() + static_cast<std::ptrdiff_t>(w.end));
  };
  return {cut(e.ids),
          cut(e.tokens),
          cut(e.offsets),
          cut(e.type_ids),
          cut(e.special_tokens_mask),
          cut(e.attention_mask),
          cut(e.word_ids),
          cut(e.sequence_ids)};
}

// How many tokens each text keeps of a pair whose rows have room for `room`, as the tokenizers library shares it out: the
// longer one is cut first, then both to halves.
std::pair<size_t, size_t> share_out(size_t first, size_t second, size_t room) {
  size_t shorter = std::min(first, second);
  size_t longer = shorter > room ? shorter : std::max(shorter, room - shorter);
  if (shorter + longer > room) {
    shorter = room / 2;
    longer = shorter + room % 2;
  }
  return first > second ? std::pair(longer, shorter) : std::pair(shorter, longer);
}

// What is kept of each text; nothing is cut that fits.
std::vector<size_t> lengths_kept(const std::vector<Encoding>& encodings, size_t room, BatchOptions::Truncation strategy) {
  std::vector<size_t> sizes;
  size_t all = 0;
  for (const Encoding& e : encodings) {
    sizes.push_back(e.size());
    all += e.size();
  }
  if (all <= room) return sizes;
  if (room == 0) return std::vector<size_t>(sizes.size(), 0);
  if (strategy == BatchOptions::Truncation::longest_first) {
    if (sizes.size() == 1) return {room};
    const auto [first, second] = share_out(sizes[0], sizes[1], room);
    return {first, second};
  }
  const size_t which = strategy == BatchOptions::Truncation::only_first ? 0 : 1;
  if (which >= sizes.size())
    throw UserError(
        "tokenizer: truncation is \"only_second\", but there is no second text; expected pairs, or another strategy");
  const size_t excess = all - room;
  if (sizes[which] <= excess)
    throw UserError("tokenizer: the " + std::string(which == 0 ? "first" : "second") + " text has " + number(sizes[which]) +
                    " tokens, and " + number(excess) +
                    " have to go; expected a greater max_length, or truncation of the other "
                    "text as well (\"longest_first\")");
  sizes[which] -= excess;
  return sizes;
}

void pad_row(Encoding& e, size_t width, TextSide side, int64_t id, const std::string& token, int64_t type) {
  if (e.size() >= width) return;
  const size_t n = width - e.size();
  const auto fill = [&](auto& to, const auto& value) {
    to.insert(side == TextSide::left ? to.begin() : to.end(), n, value);
  };
  fill(e.ids, id);
  fill(e.tokens, token);
  fill(e.offsets, std::pair<size_t, size_t>(0, 0));
  fill(e.type_ids, type);
  fill(e.special_tokens_mask, uint8_t{1});
  fill(e.attention_mask, uint8_t{0});
  fill(e.word_ids, int32_t{-1});
  fill(e.sequence_ids, int8_t{-1});
}

size_t padded_width(size_t longest, const BatchOptions& options) {
  size_t width = options.pad_to ? std::max(*options.pad_to, longest) : longest;
  if (const size_t multiple = options.pad_to_multiple_of.value_or(0); multiple > 0 && width % multiple > 0)
    width += multiple - width % multiple;
  if (width > std::numeric_limits<int32_t>::max())
    throw UserError("tokenizer: rows of " + number(width) + " tokens; expected at most 2147483647");
  return width;
}

}  // namespace

size_t Tokenizer::Impl::added_by_post_processors(bool pair) const {
  size_t n = 0;
  for (const auto& p : post_processors) n += p->added_tokens(pair);
  return n;
}

std::vector<Encoding> Tokenizer::Impl::rows_of(const TextInput& input, const BatchOptions& options) const {
  const size_t bytes = input.first.size() + (input.second ? input.second->size() : 0);
  TextBudget budget(limits, name, TextBudget::Of::text, bytes);
  std::vector<Encoding> texts;
  texts.push_back(encode_one(input.first, 0, Want::everything, options.offsets, budget));
  if (input.second) texts.push_back(encode_one(*input.second, 1, Want::everything, options.offsets, budget));

  budget.enter("truncation");
  const TextSide side = options.truncation_side.value_or(settings.truncation_side);
  const std::optional<size_t> most = longest_row(options, settings);
  std::vector<std::vector<Window>> windows;
  if (most) {
    const size_t added_tokens = options.add_special_tokens ? added_by_post_processors(texts.size() == 2) : 0;
    if (added_tokens > *most)
      throw UserError("tokenizer: max_length is " + number(*most) + ", but the special tokens alone are " +
                      number(added_tokens) + "; expected a greater max_length");
    const std::vector<size_t> kept = lengths_kept(texts, *most - added_tokens, options.strategy);
    for (size_t i = 0; i < texts.size(); ++i) windows.push_back(windows_of(texts[i].size(), kept[i], options, side, budget));
  } else {
    for (const Encoding& e : texts) windows.push_back({{0, e.size()}});
  }

  bool whole = true;
  for (size_t i = 0; i < texts.size(); ++i)
    whole = whole && windows[i].size() == 1 && windows[i][0].end - windows[i][0].begin == texts[i].size();
  std::vector<Encoding> rows;
  if (whole) {
    rows.push_back(post_process(std::move(texts), {options.add_special_tokens, {}, budget}));
    return rows;
  }
  const auto add = [&](size_t a, size_t b) {
    std::vector<Encoding> parts;
    const std::array<size_t, 2> which{a, b};
    for (size_t i = 0; i < texts.size(); ++i) {
      parts.push_back(slice(texts[i], windows[i][which[i]]));
      budget.spend(parts.back().size());
      budget.take(encoding_memory(parts.back()));
    }
    rows.push_back(post_process(std::move(parts), {options.add_special_tokens, {a > 0, b > 0}, budget}));
  };
  add(0, 0);
  if (!options.overflow) return rows;
  // Each part of the first text with each of the second; those of what is kept of the first come last.
  const size_t second = windows.size() == 2 ? windows[1].size() : 1;
  for (size_t a = 1; a < windows[0].size(); ++a)
    for (size_t b = 0; b < second; ++b) add(a, b);
  for (size_t b = 1; b < second; ++b) add(0, b);
  return rows;
}

Batch Tokenizer::encode_padded(std::span<const TextInput> inputs, const BatchOptions& options) const {
  const Impl& impl = *impl_;
  check_lengths(options, impl.settings);

  // Work is shared out by the bytes of the texts: a chunk has the texts that begin in it.
  std::vector<int64_t> starts;
  int64_t bytes = 0;
  for (const TextInput& input : inputs) {
    starts.push_back(bytes);
    bytes += static_cast<int64_t>(input.first.size() + (input.second ? input.second->size() : 0)) + 1;
  }
  std::vector<std::vector<Encoding>> rows(inputs.size());
  parallel_for(0, bytes, bytes_a_chunk, [&](int64_t begin, int64_t end) {
    auto at = static_cast<size_t>(std::lower_bound(starts.begin(), starts.end(), begin) - starts.begin());
    for (; at < starts.size() && starts[at] < end; ++at) rows[at] = impl.rows_of(inputs[at], options);
  });

  Batch batch;
  for (size_t i = 0; i < rows.size(); ++i)
    for (Encoding& row : rows[i]) {
      batch.width = std::max(batch.width, row.size());
      batch.rows.push_back(std::move(row));
      batch.row_of.push_back(i);
    }
  if (!options.pad) return batch;
  batch.width = padded_width(batch.width, options);
  const bool needed =
      std::any_of(batch.rows.begin(), batch.rows.end(), [&](const Encoding& e) { return e.size() < batch.width; });
  if (!needed) return batch;
  const auto pad = special_token("pad");
  const auto id = special_token_id("pad");
  if (!id)
    throw UserError("tokenizer: the rows differ in length, and " + impl.name +
                    " has no token to pad them with; expected a "
                    "\"pad_token\" in tokenizer_config.json (often the end-of-text token), or texts one at a time");
  const TextSide side = options.padding_side.value_or(impl.settings.padding_side);
  for (Encoding& row : batch.rows) pad_row(row, batch.width, side, *id, *pad, impl.settings.pad_type_id);
  return batch;
}

std::vector<Encoding> Tokenizer::encode_batch(std::span<const std::string> texts, const EncodeOptions& options) const {
  const std::vector<TextInput> inputs(texts.begin(), texts.end());
  return encode_padded(inputs, {.add_special_tokens = options.add_special_tokens, .pad = false, .offsets = options.offsets})
      .rows;
}

}  // namespace calque
