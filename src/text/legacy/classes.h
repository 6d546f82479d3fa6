// The tokenizer classes that can be made from vocabulary files, each a function that fills a builder, and which class a folder asks for.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "text/legacy/builder.h"

namespace calque {

struct LegacyClass {
  std::string_view names;        // of transformers' classes that are this one, separated by spaces; the first is its own
  std::string_view model_types;  // that take it when nothing else is said
  void (*build)(LegacyBuilder&);
};

std::span<const LegacyClass> word_piece_classes();  // vocab.txt
std::span<const LegacyClass> bpe_classes();         // vocab.json and merges.txt
std::span<const LegacyClass> piece_classes();       // a SentencePiece model
std::span<const LegacyClass> subword_classes();     // vocab.json alone, or with merges of words
std::span<const LegacyClass> dictionary_classes();  // a SentencePiece model, and vocab.json for the ids

// The class of a folder; a UserError (bad_file) when it has none that can be made from its files.
const LegacyClass& legacy_class_of(const LegacySettings& settings);

}  // namespace calque
