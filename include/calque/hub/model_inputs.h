// ModelInputs: what goes into a model's forward, by the names of transformers' arguments. An ArgumentName is a name with the
// type of its value, so that a misspelt one does not compile; the common ones are in `arg`, a family with others of its own
// declares them the same way:
//
//   inline constexpr ArgumentName<Tensor> pixel_values{"pixel_values"};
//   ModelInputs in{{arg::input_ids, ids}, {arg::use_cache, true}};
//   in.set(pixel_values, pixels);
//   const Tensor ids = in[arg::input_ids];  // undefined where none were given
//
// A class lists the arguments that it takes (PretrainedModel::arguments). A call of a model checks the inputs against that
// list; a model that hands its inputs on to another inside it does not, and the other reads what it knows.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "calque/hub/cache.h"
#include "calque/op/mode.h"
#include "calque/op/value.h"

namespace calque {

// What a class says of an argument of its forward.
struct ModelArgument {
  // The alternatives of ModelInputs::Stored, in its order.
  enum class Kind : uint8_t { tensor, flag, integer, cache, value };
  std::string_view name;  // lives as long as the program
  Kind kind = Kind::tensor;
};

// An argument whose value is a Tensor, bool, int64_t, KeyValueCache or, where none of them fits, a Value.
template <class T>
struct ArgumentName : ModelArgument {
  static_assert(std::is_same_v<T, Tensor> || std::is_same_v<T, bool> || std::is_same_v<T, int64_t> ||
                std::is_same_v<T, KeyValueCache> || std::is_same_v<T, Value>);
  static constexpr Kind kind_of = std::is_same_v<T, Tensor>          ? Kind::tensor
                                  : std::is_same_v<T, bool>          ? Kind::flag
                                  : std::is_same_v<T, int64_t>       ? Kind::integer
                                  : std::is_same_v<T, KeyValueCache> ? Kind::cache
                                                                     : Kind::value;
  consteval explicit ArgumentName(const char* name) : ModelArgument{name, kind_of} {}
};

namespace arg {

inline constexpr ArgumentName<Tensor> input_ids{"input_ids"};
inline constexpr ArgumentName<Tensor> attention_mask{"attention_mask"};
inline constexpr ArgumentName<Tensor> token_type_ids{"token_type_ids"};
inline constexpr ArgumentName<Tensor> position_ids{"position_ids"};
inline constexpr ArgumentName<Tensor> head_mask{"head_mask"};
inline constexpr ArgumentName<Tensor> inputs_embeds{"inputs_embeds"};
inline constexpr ArgumentName<Tensor> bbox{"bbox"};
// Of an encoder-decoder, and of decoders with cross attention.
inline constexpr ArgumentName<Tensor> decoder_input_ids{"decoder_input_ids"};
inline constexpr ArgumentName<Tensor> decoder_attention_mask{"decoder_attention_mask"};
inline constexpr ArgumentName<Tensor> decoder_head_mask{"decoder_head_mask"};
inline constexpr ArgumentName<Tensor> cross_attn_head_mask{"cross_attn_head_mask"};
inline constexpr ArgumentName<Tensor> decoder_inputs_embeds{"decoder_inputs_embeds"};
inline constexpr ArgumentName<Value> encoder_outputs{"encoder_outputs"};  // a tuple or dict: last_hidden_state, ...
inline constexpr ArgumentName<Tensor> encoder_hidden_states{"encoder_hidden_states"};
inline constexpr ArgumentName<Tensor> encoder_attention_mask{"encoder_attention_mask"};
// Caches.
inline constexpr ArgumentName<KeyValueCache> past_key_values{"past_key_values"};
inline constexpr ArgumentName<bool> use_cache{"use_cache"};
// Labels.
inline constexpr ArgumentName<Tensor> labels{"labels"};
inline constexpr ArgumentName<Tensor> next_sentence_label{"next_sentence_label"};
inline constexpr ArgumentName<Tensor> sentence_order_label{"sentence_order_label"};
inline constexpr ArgumentName<Tensor> start_positions{"start_positions"};
inline constexpr ArgumentName<Tensor> end_positions{"end_positions"};
inline constexpr ArgumentName<Tensor> mc_token_ids{"mc_token_ids"};
inline constexpr ArgumentName<Tensor> mc_labels{"mc_labels"};
// What is asked for; without them it is what the config says.
inline constexpr ArgumentName<bool> output_attentions{"output_attentions"};
inline constexpr ArgumentName<bool> output_hidden_states{"output_hidden_states"};
inline constexpr ArgumentName<int64_t> logits_to_keep{"logits_to_keep"};  // the last positions only; 0: all

}  // namespace arg

class ModelInputs {
 public:
  using Stored = std::variant<Tensor, bool, int64_t, KeyValueCache, Value>;
  // An argument with its value. An undefined tensor, an empty cache, None and an empty optional say that it is not given.
  struct Item {
    Item(const ArgumentName<Tensor>& argument, Tensor value) : name(argument.name), value(std::move(value)) {}
    Item(const ArgumentName<bool>& argument, std::optional<bool> value);
    Item(const ArgumentName<int64_t>& argument, std::optional<int64_t> value);
    Item(const ArgumentName<KeyValueCache>& argument, KeyValueCache value);
    Item(const ArgumentName<Value>& argument, Value value) : name(argument.name), value(std::move(value)) {}
    // By the name alone: the class says at the call of what kind it has to be.
    Item(std::string_view name, Value value);
    // As the argument's kind; UserError names the argument when the value has another one.
    Item(const ModelArgument& argument, const Value& value);

    std::string_view name;
    Stored value;
  };

  ModelInputs() = default;
  ModelInputs(std::initializer_list<Item> items);

  // Replaces what was given; an argument that is set to what is not given (see Item) is forgotten.
  void set(const ArgumentName<Tensor>& argument, Tensor value) { set(Item(argument, std::move(value))); }
  void set(const ArgumentName<bool>& argument, std::optional<bool> value) { set(Item(argument, value)); }
  void set(const ArgumentName<int64_t>& argument, std::optional<int64_t> value) { set(Item(argument, value)); }
  void set(const ArgumentName<KeyValueCache>& argument, KeyValueCache value) { set(Item(argument, std::move(value))); }
  void set(const ArgumentName<Value>& argument, Value value) { set(Item(argument, std::move(value))); }
  void set(std::string_view name, Value value) { set(Item(name, std::move(value))); }
  void set(Item item);

  // What was given for the argument: an undefined tensor, an empty cache, None or nullopt where nothing was. The cache is a
  // reference, because copying one costs; it is good until the inputs change.
  Tensor operator[](const ArgumentName<Tensor>& argument) const;
  std::optional<bool> operator[](const ArgumentName<bool>& argument) const;
  std::optional<int64_t> operator[](const ArgumentName<int64_t>& argument) const;
  const KeyValueCache& operator[](const ArgumentName<KeyValueCache>& argument) const;
  Value operator[](const ArgumentName<Value>& argument) const;
  // By name, whatever its kind.
  bool has(std::string_view name) const { return find(name) != nullptr; }
  Value get(std::string_view name) const;      // None where nothing was given
  Tensor tensor(std::string_view name) const;  // undefined where nothing was given; UserError when it is no tensor

  // Everything that was given, in the order in which it was.
  const std::vector<Item>& items() const { return items_; }
  // For the arguments of a class, in their order; what was not given is left out, and so is what is not among them.
  Kwargs to_kwargs(std::span<const ModelArgument> arguments) const;
  // Is everything among these, and of their kinds?
  bool fit(std::span<const ModelArgument> arguments) const;
  // With values of their kinds. UserError names the class and lists what it takes when there is something else.
  ModelInputs fitted(std::span<const ModelArgument> arguments, const std::string& class_name) const;

 private:
  const Item* find(std::string_view name) const;
  template <class T>
  const T* find_as(const ModelArgument& argument) const;

  std::vector<Item> items_;
};

const ModelArgument* find_argument(std::span<const ModelArgument> arguments, std::string_view name);  // null when absent

}  // namespace calque
