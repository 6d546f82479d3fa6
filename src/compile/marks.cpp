#include "calque/compile/marks.h"

#include <memory>
#include <typeinfo>

#include "calque/base/error.h"

namespace calque {
namespace {

class MarksExtra final : public TensorExtra {
 public:
  std::shared_ptr<TensorExtra> for_copy(const std::shared_ptr<TensorExtra>&) override { return nullptr; }
  DynamicMarks marks;
};

MarksExtra* marks_extra(const Tensor& t) {
  TensorExtra* extra = t.defined() && !t.impl().special ? t.impl().extra.get() : nullptr;
  return extra && typeid(*extra) == typeid(MarksExtra) ? static_cast<MarksExtra*>(extra) : nullptr;
}

DynamicMarks& own_marks(const Tensor& t) {
  if (!t.defined()) throw UserError("mark: expected a tensor, found an undefined one");
  if (t.is_fake()) throw UserError("mark: expected a tensor with data, found a fake one; its sizes are symbols already");
  MarksExtra* extra = marks_extra(t);
  if (!extra) {
    auto fresh = std::make_shared<MarksExtra>();
    extra = fresh.get();
    t.impl().extra = std::move(fresh);
  }
  return extra->marks;
}

int64_t dimension_of(const Tensor& t, int64_t dimension, const char* what) {
  if (!t.defined()) throw UserError(std::string(what) + ": expected a tensor, found an undefined one");
  return wrap_dim(dimension, t.dim(), what);
}

}  // namespace

void mark_dynamic(const Tensor& tensor, int64_t dimension, std::optional<int64_t> min, std::optional<int64_t> max) {
  dimension = dimension_of(tensor, dimension, "mark_dynamic");
  if (min && max && *min > *max)
    throw UserError("mark_dynamic: expected a minimum of at most the maximum, found " + std::to_string(*min) + " and " +
                    std::to_string(*max));
  DynamicMarks& marks = own_marks(tensor);
  if (marks.static_dimensions.contains(dimension))
    throw UserError("mark_dynamic: dimension " + std::to_string(dimension) +
                    " is marked static; clear_marks() takes that back");
  marks.dynamic[dimension] = {min, max};
}

void maybe_mark_dynamic(const Tensor& tensor, int64_t dimension) {
  dimension = dimension_of(tensor, dimension, "maybe_mark_dynamic");
  own_marks(tensor).weakly_dynamic.insert(dimension);
}

void mark_static(const Tensor& tensor, int64_t dimension) {
  dimension = dimension_of(tensor, dimension, "mark_static");
  DynamicMarks& marks = own_marks(tensor);
  if (marks.dynamic.contains(dimension))
    throw UserError("mark_static: dimension " + std::to_string(dimension) +
                    " is marked dynamic; clear_marks() takes that back");
  marks.static_dimensions.insert(dimension);
}

void mark_static(const Tensor& tensor) {
  own_marks(tensor);
  for (int64_t d = 0; d < tensor.dim(); ++d) mark_static(tensor, d);
}

void clear_marks(const Tensor& tensor) {
  if (marks_extra(tensor)) tensor.impl().extra = nullptr;
}

const DynamicMarks* marks_of(const Tensor& tensor) {
  const MarksExtra* extra = marks_extra(tensor);
  return extra ? &extra->marks : nullptr;
}

std::optional<TensorStaticReason> tensor_always_has_static_shape(const Value& value, bool is_parameter) {
  if (!value.is_tensor()) return TensorStaticReason::not_tensor;
  if (is_parameter) return TensorStaticReason::parameter;
  const DynamicMarks* marks = marks_of(value.to_tensor());
  const auto rank = static_cast<size_t>(value.to_tensor().dim());
  if (marks && rank != 0 && marks->static_dimensions.size() == rank) return TensorStaticReason::marked;
  return std::nullopt;
}

std::string tensor_static_reason_to_user_message(TensorStaticReason reason) {
  switch (reason) {
    case TensorStaticReason::parameter: return "mark_dynamic on parameter, parameters are always static today.";
    case TensorStaticReason::not_tensor: return "mark_dynamic on a non tensor, how did this happen?";
    case TensorStaticReason::marked: return "mark_dynamic on a tensor that is marked static.";
  }
  throw InternalError("a reason outside its enumeration");
}

}  // namespace calque
