#include "text/batch_support.h"

#include <nlohmann/json.hpp>

namespace calque::test {
namespace {

std::optional<TextSide> side_of(const nlohmann::json& given, const char* key) {
  if (!given.contains(key)) return std::nullopt;
  return given[key] == "left" ? TextSide::left : TextSide::right;
}

}  // namespace

BatchOptions batch_options(const nlohmann::json& given) {
  using Truncation = BatchOptions::Truncation;
  BatchOptions o;
  o.offsets = OffsetUnit::characters;
  o.add_special_tokens = given.value("add_special_tokens", true);
  o.pad = given.value("pad", true);
  if (given.contains("pad_to")) o.pad_to = given["pad_to"].get<size_t>();
  if (given.contains("pad_to_multiple_of")) o.pad_to_multiple_of = given["pad_to_multiple_of"].get<size_t>();
  if (given.contains("max_length")) o.truncate = true, o.max_length = given["max_length"].get<size_t>();
  o.stride = given.value("stride", size_t{0});
  const std::string strategy = given.value("strategy", "longest_first");
  o.strategy = strategy == "only_first"    ? Truncation::only_first
               : strategy == "only_second" ? Truncation::only_second
                                           : Truncation::longest_first;
  o.padding_side = side_of(given, "padding_side");
  o.truncation_side = side_of(given, "truncation_side");
  o.overflow = given.value("overflow", false);
  return o;
}

nlohmann::json batch_row(const Encoding& row) {
  return {{"ids", row.ids},
          {"tokens", row.tokens},
          {"offsets", row.offsets},
          {"type_ids", row.type_ids},
          {"special", row.special_tokens_mask},
          {"mask", row.attention_mask},
          {"sequences", row.sequence_ids}};
}

}  // namespace calque::test
