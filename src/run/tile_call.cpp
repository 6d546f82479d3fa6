#include "run/tile_call.h"

#include <algorithm>

#include "calque/base/error.h"
#include "calque/base/thread.h"
#include "calque/op/mode.h"

namespace calque::run {
namespace {

// Numbers of a tile: a few operands of this size fit a core's second-level cache, and a call of a kernel is little beside them.
constexpr int64_t tile_numbers = 16384;
// Below this, one call after another is as fast.
constexpr int64_t worth_numbers = 2 * tile_numbers;

bool is_dense(const Meta& meta) {
  const SymInts expected = contiguous_strides(SymIntList(meta.sizes));
  return std::equal(meta.strides.begin(), meta.strides.end(), expected.begin(), expected.end(),
                    [](SymInt a, SymInt b) { return identical(a, b); });
}

bool same_sizes(const SymInts& a, const SymInts& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](SymInt x, SymInt y) { return identical(x, y); });
}

// `count` rows from `first` on of a tensor that is cut by rows of `length` numbers.
Tensor rows_of(const Tensor& t, int64_t first, int64_t count, int64_t length) {
  const Meta meta{length == 1 ? SymInts{count} : SymInts{count, length}, length == 1 ? SymInts{1} : SymInts{length, 1},
                  t.dtype(), t.device(), false};
  return Tensor(Ref<TensorImpl>(new TensorImpl(t.storage(), meta, t.storage_offset() + first * length)));
}

// One number a row, beside rows of several.
Tensor column_of(const Tensor& t, int64_t first, int64_t count) {
  const Meta meta{{count, 1}, {1, 1}, t.dtype(), t.device(), false};
  return Tensor(Ref<TensorImpl>(new TensorImpl(t.storage(), meta, t.storage_offset() + first)));
}

Tensor new_tile(DType dtype, int64_t rows, int64_t length) {
  return length == 1 ? Tensor(make_tensor({rows}, dtype)) : Tensor(make_tensor({rows, length}, dtype));
}

}  // namespace

std::unique_ptr<const TileCall> TileCall::make(const Node& call, const ValueIds& ids, const GraphOwner& owner) {
  const Graph* graph = owner.subgraph(call.target().text());
  if (!graph || !call.kwargs().empty()) return nullptr;
  std::unique_ptr<TileCall> made(new TileCall(*graph));
  size_t next = 0;
  const Node* last = nullptr;
  for (const Node* n : graph->nodes()) {
    if (n->kind() == NodeKind::output) {
      if (!last || !n->args()[0].is_node() || n->args()[0].to_node() != last) return nullptr;
    } else if (n->kind() == NodeKind::placeholder) {
      if (next == call.args().size() || !call.args()[next].is_node()) return nullptr;
      made->inputs_.emplace_back(call.args()[next++], ids);
      made->inner_.add(*n);
    } else if (n->op()) {
      made->inner_.add(*n);
      try {
        made->calls_.push_back(std::make_unique<OperatorCall>(*n, made->inner_));
      } catch (const UserError&) {
        return nullptr;  // it is called as a module, and says what is wrong then
      }
      if (!made->calls_.back()->is_pointwise()) return nullptr;
      made->nodes_.push_back(last = n);
    } else {
      return nullptr;
    }
  }
  if (made->calls_.empty() || next != call.args().size()) return nullptr;
  made->last_uses_.resize(made->nodes_.size());
  std::vector<bool> seen(made->inner_.count());
  for (size_t i = made->nodes_.size(); i-- > 0;)
    for (const Node* input : made->nodes_[i]->all_input_nodes()) {
      const uint32_t id = made->inner_.id_of(*input);
      if (!seen[id]) made->last_uses_[i].push_back(id);
      seen[id] = true;
    }
  return made;
}

// What every call gives, from the shape rules alone. False where some result is not as large as the chain's.
bool TileCall::find_shape(const Frame& whole, Shape& shape) const {
  Frame fake;
  fake.values.resize(inner_.count());
  int64_t largest = 0;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const Value& v = whole.values[i];
    if (!v.is_tensor() || !v.to_tensor().defined() || v.to_tensor().is_fake()) return false;
    const Tensor& t = v.to_tensor();
    if (t.device().type != DeviceType::cpu || (grad_enabled() && t.requires_grad())) return false;
    largest = std::max(largest, t.numel());
    fake.values[i] = v;
  }
  if (largest < worth_numbers) return false;
  for (size_t i = 0; i < calls_.size(); ++i) {
    const void* at[OperatorCall::most_arguments];
    if (!calls_[i]->find_arguments(fake, at, true) || calls_[i]->needs_grad(at)) return false;
    shape.metas.push_back(calls_[i]->meta(at));
    const Meta& meta = shape.metas.back();
    if (meta.undefined || meta.device.type != DeviceType::cpu || !is_dense(meta)) return false;
    if (i + 1 < calls_.size()) fake.values[inner_.id_of(*nodes_[i])] = Tensor(make_tensor(meta, true));
  }
  for (const Meta& meta : shape.metas)
    if (!same_sizes(meta.sizes, shape.metas.back().sizes)) return false;
  return find_cuts(whole, shape);
}

bool TileCall::find_cuts(const Frame& whole, Shape& shape) const {
  const SymInts& sizes = shape.metas.back().sizes;
  const int64_t numbers = product(SymIntList(sizes)).as_int();
  if (numbers < worth_numbers || sizes.empty()) return false;
  const int64_t last = sizes.back().as_int();
  bool by_rows = false;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const Tensor& t = whole.values[i].to_tensor();
    const IntList own = t.sizes();
    const auto d = static_cast<int64_t>(own.size());
    if (t.numel() == 1) {
      shape.cuts.push_back(Cut::none);
    } else if (t.numel() == numbers && same_sizes(SymInts(own.begin(), own.end()), sizes) && t.is_contiguous()) {
      shape.cuts.push_back(Cut::tile);
    } else if (t.numel() == last && d >= 1 && own[static_cast<size_t>(d - 1)] == last && t.stride(-1) == 1) {
      shape.cuts.push_back(Cut::none);  // one row, the same for all
      by_rows = true;
    } else if (d == static_cast<int64_t>(sizes.size()) && own.back() == 1 && t.numel() * last == numbers &&
               t.is_contiguous()) {
      shape.cuts.push_back(Cut::row);
      by_rows = true;
    } else {
      return false;
    }
  }
  shape.row_length = by_rows ? last : 1;
  shape.rows = numbers / shape.row_length;
  return !by_rows || last <= tile_numbers;
}

void TileCall::run_rows(const Frame& whole, const Shape& shape, const Tensor& out, int64_t begin, int64_t end) const {
  const int64_t length = shape.row_length;
  Frame frame;
  frame.values.resize(inner_.count());
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const Tensor& t = whole.values[i].to_tensor();
    if (shape.cuts[i] != Cut::none) continue;
    // A row for all rows has one dimension here, whatever number of ones stood before it.
    frame.values[i] = t.dim() > 1 ? Tensor(make_view(t, {t.numel()}, {1}, t.storage_offset())) : t;
  }
  int64_t made_for = 0;
  for (int64_t row = begin; row < end;) {
    const int64_t rows = std::min(std::max<int64_t>(1, tile_numbers / length), end - row);
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const Tensor& t = whole.values[i].to_tensor();
      if (shape.cuts[i] == Cut::tile) frame.values[i] = rows_of(t, row, rows, length);
      if (shape.cuts[i] == Cut::row) frame.values[i] = column_of(t, row, rows);
    }
    for (size_t i = 0; i < calls_.size(); ++i) {
      Value& result = frame.values[inner_.id_of(*nodes_[i])];
      if (i + 1 == calls_.size())
        result = rows_of(out, row, rows, length);
      else if (made_for != rows)
        result = new_tile(shape.metas[i].dtype, rows, length);
      const void* at[OperatorCall::most_arguments];
      calls_[i]->find_arguments(frame, at);
      calls_[i]->compute(at, result.to_tensor());
    }
    made_for = rows;
    row += rows;
  }
}

Value TileCall::run_one_by_one(Frame& whole) const {
  for (size_t i = 0; i < calls_.size(); ++i) {
    try {
      whole.values[inner_.id_of(*nodes_[i])] = calls_[i]->run(whole, {last_uses_[i]});
    } catch (Error& e) {
      name_step(e, *nodes_[i]);
      throw;
    }
    for (const uint32_t id : last_uses_[i]) whole.values[id] = Value();
  }
  return whole.values[inner_.id_of(*nodes_.back())];
}

Value TileCall::run(const Frame& frame, const Place& place) const {
  Frame whole;
  whole.values.resize(inner_.count());
  for (size_t i = 0; i < inputs_.size(); ++i) whole.values[i] = inputs_[i].read(frame);
  if (modes_active()) return run_one_by_one(whole);
  Shape shape;
  bool fits = false;
  try {
    fits = find_shape(whole, shape);
  } catch (const Error&) {
    // One after another, the calls say which of them fails.
  }
  if (!fits) return run_one_by_one(whole);
  const Meta& meta = shape.metas.back();
  // Kernels of floating results do not fail: what they have written over is not needed again.
  Tensor out = is_floating(meta.dtype) ? take_over(frame, place, meta, 2) : Tensor();
  if (!out.defined()) out = new_result(frame, place, meta);
  const int64_t grain = std::max<int64_t>(1, tile_numbers / 2 / shape.row_length);
  try {
    parallel_for(0, shape.rows, grain, [&](int64_t begin, int64_t end) { run_rows(whole, shape, out, begin, end); });
  } catch (const UserError&) {
    return run_one_by_one(whole);
  }
  return out;
}

}  // namespace calque::run
