// Marks on a tensor that say which of its dimensions a compiled function takes as dynamic. They belong to the one tensor
// object, not to its copies or views, and count when a function is captured with it. Not for tensors in use by other threads.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "calque/op/value.h"

namespace calque {

struct DynamicMarks {
  struct Range {
    std::optional<int64_t> min, max;
  };
  std::map<int64_t, Range> dynamic;  // specialising one is an error
  std::set<int64_t> weakly_dynamic;  // a wish
  std::set<int64_t> static_dimensions;
};

// UserError for a dimension that the tensor does not have, or a tensor that is marked otherwise there.
void mark_dynamic(const Tensor& tensor, int64_t dimension, std::optional<int64_t> min = {}, std::optional<int64_t> max = {});
void maybe_mark_dynamic(const Tensor& tensor, int64_t dimension);
void mark_static(const Tensor& tensor, int64_t dimension);
void mark_static(const Tensor& tensor);  // every dimension
void clear_marks(const Tensor& tensor);
const DynamicMarks* marks_of(const Tensor& tensor);  // null without any

// Why a dimension is static, or none: it is not marked so and may become dynamic.
enum class TensorStaticReason : uint8_t { parameter, not_tensor, marked };
std::optional<TensorStaticReason> tensor_always_has_static_shape(const Value& value, bool is_parameter);
std::string tensor_static_reason_to_user_message(TensorStaticReason reason);

}  // namespace calque
