// What the numbers of a configuration may be. Most keys mean the same in every architecture and stand in one table (config_schema.cpp);
// an architecture says only what is its own: keys that nobody else has, keys that mean something else there, and how its numbers
// hang together. A number is checked before anything is computed from it, so that no model divides by zero heads or builds 10^12
// layers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace calque {

class Config;
struct Architecture;

enum class KeyKind {
  layers,       // modules with weights of their own, one after the other: 0 or more
  groups,       // the same, and at least 1
  repeats,      // how often something is computed with the same weights: 0 or more
  size,         // a dimension of some tensor: 1 or more
  rows,         // the rows of a table that may be left out: 0 or more
  rows_or_not,  // the same, and -1 for "not set"
  sizes,        // a dimension, or a list of them: height and width, one a stage
  stages,       // a list of layers, one number a stage: 1 or more
  heads,        // what a size is divided by: 1 or more
  length,       // counted in tokens, of no tensor: 1 or more
  count,        // of anything else: 0 or more
  token,        // an id, a list of ids
  probability,  // 0 to 1
  positive,     // a number above 0
  magnitude,    // a number, 0 or more: an epsilon, a standard deviation
  fraction,     // a number above 0, at most 1
  number,       // any finite one
};

struct KeyRule {
  std::string key;  // the architecture's own name for it; "rope_parameters.factor" is a number inside an object
  KeyKind kind;
};

struct KeyRelation {
  enum class Kind { multiple_of, at_least };
  std::string key;
  Kind kind;
  std::string other;
  std::string unless = {};  // does not hold where the configuration has this key
};

// The relation of almost all: each head gets an equal part.
inline KeyRelation multiple(std::string key, std::string of, std::string unless = {}) {
  return {std::move(key), KeyRelation::Kind::multiple_of, std::move(of), std::move(unless)};
}
inline KeyRelation at_least(std::string key, std::string other) {
  return {std::move(key), KeyRelation::Kind::at_least, std::move(other), {}};
}

struct ConfigSchema {
  std::vector<KeyRule> keys = {};
  std::vector<KeyRelation> relations = {};
  // Products of keys that are the elements of a table which the model computes when it is made.
  std::vector<std::vector<std::string>> tables = {};
};

// What a key may be in this architecture (which may be null); empty when nobody knows the key.
std::optional<KeyKind> key_kind(const Architecture* architecture, std::string_view key);

// UserErrors (bad_file) name the file, the key, what was expected and what was found. Absent keys and None are left to who needs them.
void check_schema(const Config& config, const Architecture* architecture);

// What a model may be made of.
struct ModelLimits {
  int64_t parameters;
  int64_t layers;
  std::string reason;  // what they come from, for errors: "model.safetensors holds 12 parameters in 2 layers"
};

// The same, for numbers that are right by themselves and too large all the same: layers, sizes and computed tables.
void check_limits(const Config& config, const Architecture* architecture, const ModelLimits& limits);

}  // namespace calque
