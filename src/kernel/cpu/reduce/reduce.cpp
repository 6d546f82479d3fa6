#include "kernel/cpu/reduce/reduce.h"

#include <algorithm>
#include <string>
#include <vector>

#include "calque/base/error.h"
#include "calque/base/thread.h"
#include "kernel/cpu/elementwise/convert.h"
#include "kernel/cpu/elementwise/copy.h"
#include "kernel/cpu/reduce/reduce_table.h"
#include "kernel/cpu/simd/isa_table.h"

namespace calque::kernel {

CALQUE_ISA_ARRAY(ReduceRow, reduce_sum_table)
CALQUE_ISA_ARRAY(ReduceRow, reduce_extreme_table)

namespace {

constexpr int64_t reduce_grain = 32768;  // elements below which a thread is not worth waking
constexpr int64_t gather_run = 1024;     // elements converted at once along the reduced dimensions
constexpr int64_t gather_rows = 64;
constexpr int64_t gather_columns = 128;
constexpr int64_t batch = 64;  // outputs whose accumulators are finished together
constexpr int64_t short_run = 32;

struct Axis {
  int64_t size;
  int64_t in;   // bytes
  int64_t out;  // bytes; kept dimensions only
  int64_t second;
  int64_t place;  // reduced dimensions only: what one step adds to the position
};
using Axes = SmallVector<Axis, 6>;

bool keeps_order(Reduction fn) { return fn == Reduction::argmax || fn == Reduction::argmin; }

constexpr bool is_extreme[] = {
#define SUM(...) false
#define EXTREME(...) true
    CALQUE_REDUCTION(CALQUE_REDUCTION_ROWS)
#undef EXTREME
#undef SUM
};

// The tables have a row for each of float, double and int64.
constexpr size_t row_types = 3;

const ReduceRow& find_row(Reduction fn, Compute c) {
  static const ReduceRow none;
  if (c == Compute::c128) return none;
  const auto at = static_cast<size_t>(fn);
  return (is_extreme[at] ? reduce_extreme_table() : reduce_sum_table())[at * row_types + static_cast<size_t>(c)];
}

void sort_by_stride(Axes& axes) {
  std::stable_sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) { return std::abs(a.in) > std::abs(b.in); });
}

// Joins neighbours that one stride walks. Positions join as well where order matters.
Axes coalesce(const Axes& axes, bool by_place) {
  Axes out;
  for (const Axis& a : axes) {
    if (a.size == 1) continue;
    if (!out.empty()) {
      Axis& o = out.back();
      if (o.in == a.in * a.size && o.out == a.out * a.size && o.second == a.second * a.size &&
          (!by_place || o.place == a.place * a.size)) {
        o = {o.size * a.size, a.in, a.out, a.second, a.place};
        continue;
      }
    }
    out.push_back(a);
  }
  if (out.empty()) out.push_back({1, 0, 0, 0, 1});
  return out;
}

// Steps through the outer axes (all but the last), calling fn(byte offset, position) for each.
template <class F>
void each_outer(const Axes& axes, F&& fn) {
  SmallVector<int64_t, 6> index(axes.size(), 0);
  int64_t offset = 0;
  int64_t place = 0;
  const size_t outer = axes.size() - 1;
  while (true) {
    fn(offset, place);
    size_t d = outer;
    while (d-- > 0) {
      offset += axes[d].in;
      place += axes[d].place;
      if (++index[d] < axes[d].size) break;
      offset -= axes[d].in * axes[d].size;
      place -= axes[d].place * axes[d].size;
      index[d] = 0;
    }
    if (d == static_cast<size_t>(-1)) return;
  }
}

class Engine {
 public:
  Engine(Reduction fn, DType common, const TensorBase& self, uint64_t dims, const TensorBase& out, const TensorBase& second,
         const ReduceParameters& parameters);
  void run();

 private:
  struct Unit {
    const char* in;
    char* out;
    char* second;
    int64_t width;
  };
  Unit unit(int64_t i) const;
  void fold(const Unit& u, const Axes& reduced, int64_t place, void* state) const;
  void fold_runs(const Unit& u, const Axes& reduced, int64_t place, void* state) const;
  void fold_tiles(const Unit& u, const Axes& reduced, int64_t place, void* state) const;
  void fold_columns_gathered(const char* in, const Axis& row, int64_t columns, int64_t place, void* state) const;
  void finish(const Unit& u, const void* state) const;
  void gather(const char* from, int64_t stride, void* to, int64_t n) const;
  void run_split(int64_t units);

  Compute compute_;
  const ReduceRow* row_;
  DType dtype_;
  ReduceParameters parameters_;
  LoadFn load_;
  NormalizeFn normalize_ = nullptr;
  StoreFn store_out_ = nullptr;
  StoreFn store_second_ = nullptr;
  int64_t item_;
  int direct_ = -1;  // a ReduceHeld, or -1 when elements are converted first
  bool by_tiles_ = false;
  Axes kept_, reduced_;
  const char* in_ = nullptr;
  char* out_ = nullptr;
  char* second_ = nullptr;
  int64_t unit_width_ = 1;
  int64_t units_per_row_ = 1;
  int64_t outputs_ = 1;
  int64_t elements_ = 1;
};

Engine::Engine(Reduction fn, DType common, const TensorBase& self, uint64_t dims, const TensorBase& out,
               const TensorBase& second, const ReduceParameters& parameters)
    : compute_(compute_type(common)), dtype_(self.dtype()), parameters_(parameters), item_(self.element_size()) {
  // Products and variances are computed in double, then rounded once.
  if (compute_ == Compute::f32 && (fn == Reduction::prod || fn == Reduction::variance)) compute_ = Compute::f64;
  row_ = &find_row(fn, compute_);
  if (row_->components == 0)
    throw UserError(ErrorKind::unsupported_operator,
                    "this reduction is not implemented for '" + std::string(name(common)) + "'");
  load_ = load_fn(dtype_, compute_);
  if (dtype_ != common) normalize_ = normalize_fn(common);
  if (dtype_ == common || !normalize_) {
    const bool native = (compute_ == Compute::f32 && dtype_ == DType::float32) ||
                        (compute_ == Compute::f64 && dtype_ == DType::float64) ||
                        (compute_ == Compute::i64 && dtype_ == DType::int64);
    if (native)
      direct_ = held_as_computed;
    else if (dtype_ == DType::bfloat16 && row_->run[held_bfloat16])
      direct_ = held_bfloat16;
    else if (dtype_ == DType::float16 && row_->run[held_float16])
      direct_ = held_float16;
  }
  const IntList sizes = self.sizes();
  const IntList strides = self.strides();
  const TensorBase& shape = out.defined() ? out : second;
  const bool keepdim = shape.dim() == self.dim();
  int64_t place = 1;
  size_t o = static_cast<size_t>(shape.dim());
  Axes kept, reduced;
  for (size_t d = sizes.size(); d-- > 0;) {
    if (dims >> d & 1U) {
      if (keepdim) --o;
      reduced.push_back({sizes[d], strides[d] * item_, 0, 0, place});
      place *= sizes[d];
    } else {
      --o;
      kept.push_back({sizes[d], strides[d] * item_, out.defined() ? out.strides()[o] * out.element_size() : 0,
                      second.defined() ? second.strides()[o] * second.element_size() : 0, 0});
      outputs_ *= sizes[d];
    }
  }
  std::reverse(kept.begin(), kept.end());
  std::reverse(reduced.begin(), reduced.end());
  elements_ = place;
  parameters_.count = elements_;
  sort_by_stride(kept);
  if (!keeps_order(fn)) sort_by_stride(reduced);
  kept_ = coalesce(kept, false);
  reduced_ = coalesce(reduced, keeps_order(fn));
  in_ = outputs_ * elements_ != 0 ? static_cast<const char*>(self.data()) : nullptr;
  if (out.defined()) {
    out_ = outputs_ ? static_cast<char*>(out.mutable_data()) : nullptr;
    store_out_ = store_fn(compute_, out.dtype());
  }
  if (second.defined()) {
    second_ = outputs_ ? static_cast<char*>(second.mutable_data()) : nullptr;
    store_second_ = store_fn(keeps_order(fn) ? Compute::i64 : compute_, second.dtype());
  }

  if (outputs_ == 0) return;
  const Axis& k = kept_.back();
  const Axis& r = reduced_.back();
  const bool kept_dense = k.in == item_ || k.size == 1;
  const bool reduced_dense = r.in == item_ || r.size == 1;
  if (outputs_ == 1)
    by_tiles_ = false;
  else if (reduced_dense && r.size > 1)
    by_tiles_ = r.size < short_run && k.size >= 16;
  else if (kept_dense)
    by_tiles_ = k.size >= 8 || elements_ < short_run;
  else
    by_tiles_ = elements_ < short_run && k.size >= 16;

  if (by_tiles_) {
    // Tiles of nearly equal width, as many as threads can share.
    const int64_t most = direct_ >= 0 && kept_dense ? reduce_tile_width : gather_columns;
    int64_t tiles = (k.size + most - 1) / most;
    const int64_t threads = num_threads();
    if (outputs_ / k.size == 1 && tiles % threads && k.size >= 64 * threads) tiles += threads - tiles % threads;
    unit_width_ = std::min(most, ((k.size + tiles - 1) / tiles + 15) / 16 * 16);
  } else {
    unit_width_ = std::min(batch, k.size);
  }
  units_per_row_ = (k.size + unit_width_ - 1) / std::max<int64_t>(unit_width_, 1);
}

Engine::Unit Engine::unit(int64_t i) const {
  const Axis& k = kept_.back();
  const int64_t start = i % units_per_row_ * unit_width_;
  Unit u{in_ + start * k.in, out_ ? out_ + start * k.out : nullptr, second_ ? second_ + start * k.second : nullptr,
         std::min(unit_width_, k.size - start)};
  int64_t rest = i / units_per_row_;
  for (size_t d = kept_.size() - 1; d-- > 0;) {
    const int64_t at = rest % kept_[d].size;
    rest /= kept_[d].size;
    u.in += at * kept_[d].in;
    if (out_) u.out += at * kept_[d].out;
    if (second_) u.second += at * kept_[d].second;
  }
  return u;
}

void Engine::gather(const char* from, int64_t stride, void* to, int64_t n) const {
  load_(from, stride, to, n);
  if (normalize_) normalize_(to, n);
}

void Engine::fold_runs(const Unit& u, const Axes& reduced, int64_t place, void* state) const {
  const Axis& inner = reduced.back();
  const Axis& k = kept_.back();
  alignas(64) std::byte buffer[gather_run * 8];
  const int64_t width_bytes = compute_size(compute_);
  const bool dense = inner.in == item_ || inner.size == 1;
  const bool is_direct = direct_ >= 0 && dense;
  const ReduceRunFn run = row_->run[is_direct ? direct_ : held_as_computed];
  const bool join =
      !is_direct && inner.size < gather_run / 4 && reduced.size() > 1 && (inner.place == 1 || !row_->two_results);
  for (int64_t j = 0; j < u.width; ++j) {
    const char* base = u.in + j * k.in;
    if (is_direct) {
      each_outer(reduced, [&](int64_t offset, int64_t at) {
        run(base + offset, inner.size, place + at, state, j, unit_width_, parameters_);
      });
    } else if (join) {  // short pieces go into one buffer
      int64_t filled = 0;
      int64_t first = place;
      each_outer(reduced, [&](int64_t offset, int64_t at) {
        if (filled && (filled + inner.size > gather_run || first + filled != place + at)) {
          run(buffer, filled, first, state, j, unit_width_, parameters_);
          filled = 0;
        }
        if (!filled) first = place + at;
        gather(base + offset, inner.in, buffer + filled * width_bytes, inner.size);
        filled += inner.size;
      });
      run(buffer, filled, first, state, j, unit_width_, parameters_);
    } else {
      each_outer(reduced, [&](int64_t offset, int64_t at) {
        for (int64_t i = 0; i < inner.size; i += gather_run) {
          const int64_t n = std::min(gather_run, inner.size - i);
          gather(base + offset + i * inner.in, inner.in, buffer, n);
          run(buffer, n, place + at + i * inner.place, state, j, unit_width_, parameters_);
        }
      });
    }
  }
}

void Engine::fold_columns_gathered(const char* in, const Axis& row, int64_t columns, int64_t place, void* state) const {
  const Axis& k = kept_.back();
  alignas(64) std::byte buffer[gather_rows * gather_columns * 8];
  const int64_t width_bytes = compute_size(compute_);
  for (int64_t r = 0; r < row.size; r += gather_rows) {
    const int64_t rows = std::min(gather_rows, row.size - r);
    for (int64_t i = 0; i < rows; ++i)
      gather(in + (r + i) * row.in, k.in, buffer + i * gather_columns * width_bytes, columns);
    row_->tile[held_as_computed](buffer, gather_columns, rows, columns, place + r * row.place, state, unit_width_,
                                 parameters_);
  }
}

void Engine::fold_tiles(const Unit& u, const Axes& reduced, int64_t place, void* state) const {
  const Axis& inner = reduced.back();
  const Axis& k = kept_.back();
  const bool is_direct = direct_ >= 0 && (k.in == item_ || k.size == 1) && inner.in % item_ == 0;
  each_outer(reduced, [&](int64_t offset, int64_t at) {
    if (is_direct)
      row_->tile[direct_](u.in + offset, inner.in / item_, inner.size, u.width, place + at, state, unit_width_, parameters_);
    else
      fold_columns_gathered(u.in + offset, inner, u.width, place + at, state);
  });
}

void Engine::fold(const Unit& u, const Axes& reduced, int64_t place, void* state) const {
  if (elements_ == 0) return;
  if (by_tiles_)
    fold_tiles(u, reduced, place, state);
  else
    fold_runs(u, reduced, place, state);
}

void Engine::finish(const Unit& u, const void* state) const {
  alignas(64) std::byte values[reduce_tile_width * 8];
  alignas(64) std::byte second[reduce_tile_width * 8];
  // All slots are finished; those beyond the unit's width hold the start value.
  row_->finish(state, unit_width_, parameters_, values, second);
  if (out_) store_out_(values, u.out, kept_.back().out, u.width);
  if (second_) store_second_(second, u.second, kept_.back().second, u.width);
}

// Few outputs behind many elements: the longest reduced axis is cut, one set of accumulators a piece, merged in order.
void Engine::run_split(int64_t units) {
  size_t longest = 0;
  for (size_t d = 1; d < reduced_.size(); ++d)
    if (reduced_[d].size > reduced_[longest].size) longest = d;
  const int64_t length = reduced_[longest].size;
  const int64_t piece_grain = std::max<int64_t>(1, reduce_grain * length / (outputs_ * elements_));
  const int64_t pieces = parallel_chunks(length, piece_grain);
  const int64_t slots = unit_width_ * row_->components;
  std::vector<double> states(static_cast<size_t>(pieces * units * slots));
  parallel_for(0, pieces, 1, [&](int64_t b, int64_t e) {
    for (int64_t piece = b; piece < e; ++piece) {
      const int64_t from = length * piece / pieces;
      const int64_t to = length * (piece + 1) / pieces;
      Axes part = reduced_;
      part[longest].size = to - from;
      for (int64_t i = 0; i < units; ++i) {
        double* state = states.data() + (piece * units + i) * slots;
        row_->start(state, unit_width_);
        Unit u = unit(i);
        u.in += from * reduced_[longest].in;
        fold(u, part, from * reduced_[longest].place, state);
      }
    }
  });
  for (int64_t i = 0; i < units; ++i) {
    double* state = states.data() + i * slots;
    for (int64_t piece = 1; piece < pieces; ++piece)
      row_->merge(state, states.data() + (piece * units + i) * slots, unit_width_);
    finish(unit(i), state);
  }
}

void Engine::run() {
  if (outputs_ == 0) return;
  const int64_t units = outputs_ / kept_.back().size * units_per_row_;
  const int64_t total = outputs_ * std::max<int64_t>(elements_, 1);
  const int threads = num_threads();
  if (units < threads && total >= 2 * reduce_grain && elements_ > 1 && !in_parallel_region()) return run_split(units);
  const int64_t per_unit = std::max<int64_t>(1, total / units);
  parallel_for(0, units, std::max<int64_t>(1, reduce_grain / per_unit), [&](int64_t b, int64_t e) {
    alignas(64) double state[reduce_tile_width * 4];
    for (int64_t i = b; i < e; ++i) {
      const Unit u = unit(i);
      row_->start(state, unit_width_);
      fold(u, reduced_, 0, state);
      finish(u, state);
    }
  });
}

}  // namespace

void reduce(Reduction fn, DType common, const TensorBase& self, uint64_t dims, const TensorBase& out,
            const TensorBase& second, ReduceParameters parameters) {
  // A product in a narrow dtype is computed in double: the cast to the narrow one comes first.
  if (fn == Reduction::prod && self.dtype() != common && is_reduced_float(common)) {
    const TensorBase cast = make_tensor(self.sizes(), common);
    copy(self, cast);
    Engine(fn, common, cast, dims, out, second, parameters).run();
    return;
  }
  Engine(fn, common, self, dims, out, second, parameters).run();
}

}  // namespace calque::kernel
