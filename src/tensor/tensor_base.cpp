#include "calque/tensor/tensor_base.h"

#include <algorithm>
#include <new>

#include "calque/base/small_blocks.h"
#include "calque/sym/expr.h"
#include "calque/sym/observer.h"
#include "calque/sym/shape_env.h"
#include "calque/tensor/regions.h"
#include "calque/tensor/wrapped_number.h"

namespace calque {
namespace {

bool any_symbolic(SymIntList values) {
  return std::any_of(values.begin(), values.end(), [](SymInt v) { return v.is_symbolic(); });
}

// Whose symbols the sizes are; `likely` is shared where it is that one, which is cheaper than to ask the expression.
std::shared_ptr<ShapeEnv> env_of_any(const TensorImpl& t, const std::shared_ptr<ShapeEnv>& likely = nullptr) {
  const auto owner = [](SymInt s) { return s.is_symbolic() ? s.expr()->env() : nullptr; };
  ShapeEnv* env = owner(t.offset);
  for (size_t d = 0; d < t.sizes.size() && !env; ++d) {
    env = owner(t.sizes[d]);
    if (!env) env = owner(t.strides[d]);
  }
  if (!env) return nullptr;
  return env == likely.get() ? likely : env->shared_from_this();
}

[[noreturn]] void throw_geometry(const char* why, SymIntList sizes, SymIntList strides, SymInt offset) {
  throw UserError(std::string(why) + ": sizes " + str(sizes) + ", strides " + str(strides) + ", offset " + offset.str());
}

// How many bytes of a storage a tensor reaches, counted from the storage's start. Every tensor is measured here when it is
// made: sizes, strides and offset are not negative, and neither the number of elements nor that of bytes overflows, so
// that arithmetic on them cannot wrap later. 0 for a tensor without elements, and where a number is symbolic.
size_t reached_bytes(SymIntList sizes, SymIntList strides, SymInt offset, DType dtype, bool may_reverse = false) {
  if (sizes.size() != strides.size()) [[unlikely]]
    throw_geometry("a tensor needs one stride for each size", sizes, strides, offset);
  int64_t first = 0, last = 0, count = 1, step = 0;
  bool wraps = false, empty = false;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d].is_symbolic() || strides[d].is_symbolic()) return 0;
    const int64_t size = sizes[d].as_int();
    const int64_t stride = strides[d].as_int();
    if (size < 0) [[unlikely]]
      throw_geometry("a tensor's sizes must be 0 or more", sizes, strides, offset);
    if (stride < 0 && !may_reverse) [[unlikely]]
      throw_geometry("a tensor's strides must be 0 or more", sizes, strides, offset);
    if (size == 0) {
      empty = true;
      continue;
    }
    wraps |= __builtin_mul_overflow(count, size, &count);
    wraps |= __builtin_mul_overflow(size - 1, stride, &step);
    int64_t& end = stride < 0 ? first : last;
    wraps |= __builtin_add_overflow(end, step, &end);
  }
  if (offset.is_symbolic()) return 0;
  const int64_t begin = offset.as_int();
  int64_t bytes = 0;
  wraps |= __builtin_add_overflow(first, begin, &first);
  wraps |= __builtin_add_overflow(last, 1, &last);
  wraps |= __builtin_add_overflow(last, begin, &last);
  wraps |= __builtin_mul_overflow(last, static_cast<int64_t>(item_size(dtype)), &bytes);
  wraps |= __builtin_mul_overflow(count, static_cast<int64_t>(item_size(dtype)), &count);
  if (begin < 0 || (first < 0 && !empty)) [[unlikely]]
    throw_geometry("a tensor cannot begin before its storage", sizes, strides, offset);
  if (wraps) [[unlikely]]
    throw_geometry("a tensor cannot be as large as that (the number of its bytes overflows)", sizes, strides, offset);
  return empty ? 0 : static_cast<size_t>(bytes);
}

// The same question for what is asked most: plain numbers, none of them negative or 0. A symbolic word is negative, too.
bool plainly_inside(const TensorImpl& owner, SymIntList sizes, SymIntList strides, SymInt offset, DType dtype) {
  const auto item = static_cast<int64_t>(item_size(dtype));
  int64_t last = offset.word(), count = item, step = 0, signs = last;
  bool wraps = false;
  for (size_t d = 0; d < sizes.size(); ++d) {
    const int64_t size = sizes[d].word(), stride = strides[d].word();
    signs |= (size - 1) | stride;
    wraps |= __builtin_mul_overflow(count, size, &count);
    wraps |= __builtin_mul_overflow(size - 1, stride, &step);
    wraps |= __builtin_add_overflow(last, step, &last);
  }
  return signs >= 0 && !wraps && last < static_cast<int64_t>(owner.storage->nbytes()) / item;
}

void check_inside(const TensorImpl& owner, SymIntList sizes, SymIntList strides, SymInt offset, DType dtype,
                  bool may_reverse = false) {
  if (sizes.size() == strides.size() && plainly_inside(owner, sizes, strides, offset, dtype)) [[likely]]
    return;
  const size_t reached = reached_bytes(sizes, strides, offset, dtype, may_reverse);
  if (!owner.special && reached > owner.storage->nbytes()) [[unlikely]]
    throw UserError("sizes " + str(sizes) + ", strides " + str(strides) + " at offset " + offset.str() + " reach " +
                    std::to_string(reached) + " bytes into a storage of " + std::to_string(owner.storage->nbytes()));
}

// The geometry has been checked.
void take_geometry(TensorImpl& t, const SymInts& sizes, const SymInts& strides, SymInt offset,
                   const std::shared_ptr<ShapeEnv>& likely) {
  t.sizes = sizes;
  t.strides = strides;
  t.offset = offset;
  t.symbolic = offset.is_symbolic() || any_symbolic(sizes) || any_symbolic(strides);
  if (t.symbolic) t.env = env_of_any(t, likely);
}

TensorBase view_of(const TensorBase& base, const SymInts& sizes, const SymInts& strides, SymInt offset, DType dtype) {
  const TensorImpl& b = base.impl();
  auto* impl = new TensorImpl(b.storage, Meta{{}, {}, dtype, b.device, false}, 0);
  take_geometry(*impl, sizes, strides, offset, b.env);
  impl->special = b.special;
  impl->is_view = true;
  return TensorBase(Ref<TensorImpl>(impl));
}

[[noreturn]] void throw_symbolic(const char* what, SymIntList values) {
  throw UserError(std::string("this tensor has symbolic ") + what + " " + str(values) + "; use sym_" + what +
                  "(), or run the operator under a mode that understands them");
}

IntList plain(SymIntList values) {
  return {reinterpret_cast<const int64_t*>(values.data()), values.size()};  // a plain SymInt is its word
}

}  // namespace

void TensorImpl::take_layout(const TensorImpl& from) {
  sizes = from.sizes;
  strides = from.strides;
  offset = from.offset;
  symbolic = from.symbolic;
  dtype = from.dtype;
  device = from.device;
  env = from.env;
}

void TensorImpl::take_marks(const TensorImpl& from) {
  requires_grad = from.requires_grad;
  is_leaf = from.is_leaf;
  is_view = from.is_view;
}

TensorImpl::TensorImpl(Ref<Storage> s, const Meta& meta, SymInt first)
    : sizes(meta.sizes),
      strides(meta.strides),
      offset(first),
      storage(std::move(s)),
      dtype(meta.dtype),
      device(meta.device) {
  symbolic = offset.is_symbolic() || any_symbolic(sizes) || any_symbolic(strides);
  if (symbolic) [[unlikely]]
    env = env_of_any(*this);
}

void* TensorImpl::operator new(size_t bytes) { return take_small_block(bytes); }
void TensorImpl::operator delete(void* p, size_t bytes) noexcept { give_small_block(p, bytes); }

void TensorExtra::refuse(const char* asked) const {
  throw InternalError(std::string("the ") + asked + " of an opaque tensor was asked");
}
SymInt TensorExtra::size(int64_t) const { throw InternalError("the size of an opaque tensor was asked"); }

IntList TensorBase::sizes() const {
  if (impl_->symbolic) [[unlikely]]
    if (any_symbolic(sym_sizes())) throw_symbolic("sizes", impl_->sizes);
  return plain(impl_->sizes);
}

IntList TensorBase::strides() const {
  if (impl_->symbolic) [[unlikely]]
    if (any_symbolic(impl_->strides)) throw_symbolic("strides", impl_->strides);
  return plain(impl_->strides);
}

// Unlike operators, which take a 0-d tensor to have dimension 0, there is nothing to read.
static size_t existing_dim(int64_t d, int64_t dims, const char* what) {
  if (dims == 0)
    throw UserError(std::string(what) + ": dimension " + std::to_string(d) +
                    " was asked for of a tensor that has no dimensions");
  return static_cast<size_t>(wrap_dim(d, dims, what));
}
SymInt TensorBase::sym_size(int64_t d) const {
  if (impl_->opaque) [[unlikely]]
    return impl_->extra->size(d);
  return impl_->sizes[existing_dim(d, dim(), "size")];
}
void TensorBase::refuse(const char* asked) const {
  if (impl_->extra) impl_->extra->refuse(asked);
  throw InternalError("an opaque tensor without a tracer");
}
SymInt TensorBase::sym_stride(int64_t d) const { return impl_->strides[existing_dim(d, dim(), "stride")]; }
int64_t TensorBase::size(int64_t d) const { return sym_size(d).as_int(); }
int64_t TensorBase::stride(int64_t d) const { return sym_stride(d).as_int(); }
SymInt TensorBase::sym_numel() const {
  SymObserver* observer = thread_context().sym_observer;
  if (!observer || !impl_->symbolic) return product(sym_sizes());
  const SymObserverScope quiet(nullptr);
  const SymInt count = product(sym_sizes());
  if (count.is_symbolic()) observer->counted(*impl_, count);
  return count;
}
int64_t TensorBase::numel() const {
  int64_t n = 1;
  for (const int64_t s : sizes()) n *= s;  // cannot overflow: construction checked the product
  return n;
}

const void* TensorBase::data() const {
  const Storage& s = *impl_->storage;
  if (!s.has_data() || impl_->special) [[unlikely]]
    throw UserError("this tensor has no data (it is fake or on the meta device, sizes " + calque::str(sym_sizes()) +
                    "); only its shape, dtype and device can be read");
  return static_cast<const std::byte*>(s.data()) + impl_->offset.as_int() * element_size();
}

void* TensorBase::mutable_data() const {
  if (impl_->storage->is_read_only()) [[unlikely]]
    throw UserError("this tensor's memory is read-only (a mapped file); clone() it before writing");
  return const_cast<void*>(data());
}

void TensorBase::check_dtype(DType expected) const {
  if (dtype() != expected)
    throw UserError("expected a tensor of dtype " + std::string(name(expected)) + ", found " + std::string(name(dtype())));
}

void TensorBase::set_requires_grad(bool value) const {
  if (value && !is_floating(dtype()) && !is_complex(dtype()))
    throw UserError("requires_grad: only tensors of floating point and complex dtype can require gradients, found " +
                    std::string(name(dtype())));
  if (!value && !impl_->is_leaf)
    throw UserError("requires_grad: only leaf tensors can stop requiring gradients; use detach()");
  impl_->requires_grad = value;
}

// PyTorch's walk from the innermost dimension outwards; dimensions of size 1 may have any stride.
static bool strides_follow(SymIntList sizes, SymIntList strides, const int* order, size_t n) {
  SymInt expected = 1;
  for (size_t i = 0; i < n; ++i) {
    const auto d = static_cast<size_t>(order[i]);
    if (guard_or(sizes[d] == 1, false)) continue;
    if (!guard_or(strides[d] == expected, false)) return false;
    expected *= sizes[d];
  }
  return true;
}

// Strides that are the products of the sizes behind them, letter for letter: nothing has to be asked.
static bool plainly_contiguous(const SymInts& sizes, const SymInts& strides) {
  SymInt expected = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    if (!identical(strides[d], expected)) return false;
    if (d > 0) expected *= sizes[d];
  }
  return true;
}

bool TensorBase::is_contiguous(MemoryFormat format) const {
  const size_t n = impl_->sizes.size();
  if (impl_->symbolic && format == MemoryFormat::contiguous && plainly_contiguous(impl_->sizes, impl_->strides)) return true;
  if (!impl_->symbolic) {
    if (format == MemoryFormat::contiguous) {  // asked several times in every call: one pass over plain words
      bool follows = true;
      int64_t expected = 1;
      for (size_t d = n; d-- > 0;) {
        const int64_t size = impl_->sizes[d].word();
        if (size == 0) return true;
        follows = follows && (size == 1 || impl_->strides[d].word() == expected);
        expected *= size;
      }
      return follows;
    }
  } else if (format == MemoryFormat::contiguous && guard_or(sym_numel() == 0, false)) {
    return true;
  }
  if (format == MemoryFormat::channels_last || format == MemoryFormat::channels_last_3d) {
    static constexpr int order4[] = {1, 3, 2, 0};
    static constexpr int order5[] = {1, 4, 3, 2, 0};
    if (n != (format == MemoryFormat::channels_last ? 4U : 5U)) return false;
    return strides_follow(impl_->sizes, impl_->strides, n == 4 ? order4 : order5, n);
  }
  SymInt expected = 1;
  SymInt made = 1;  // as contiguous_strides makes them, for sizes that might be 0
  for (size_t d = n; d-- > 0;) {
    const SymInt size = impl_->sizes[d];
    if (!impl_->symbolic) {
      if (size.word() == 1) continue;
      if (impl_->strides[d].word() != expected.word()) return false;
    } else {
      if (guard_or(size == 1, false)) continue;
      if (!identical(impl_->strides[d], made) && !guard_or(impl_->strides[d] == expected, false)) return false;
      made *= sym_max(size, 1);
    }
    expected *= size;
  }
  return true;
}

bool TensorBase::is_non_overlapping_and_dense() const {
  const size_t n = impl_->sizes.size();
  if (is_contiguous()) return true;
  SmallVector<int, 8> order(n);
  for (size_t i = 0; i < n; ++i) order[i] = static_cast<int>(i);
  // Sizes below 2 go last; others by stride.
  const auto& sizes = impl_->sizes;
  const auto& strides = impl_->strides;
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    const auto i = static_cast<size_t>(a);
    const auto j = static_cast<size_t>(b);
    if (guard_or(sizes[i] < 2, false)) return false;
    if (guard_or(sizes[j] < 2, false)) return true;
    return guard_or(strides[i] < strides[j], false);
  });
  SymInt expected = 1;
  for (const int o : order) {
    const auto d = static_cast<size_t>(o);
    if (guard_or(sizes[d] < 2, false)) return true;
    if (!guard_or(strides[d] == expected, false)) return false;
    expected *= sizes[d];
  }
  return true;
}

// PyTorch's is_channels_last_strides: strides must not decrease from C outwards (W, H, D, N), with ties broken so that
// an ambiguous N111 tensor counts as contiguous.
MemoryFormat TensorBase::suggest_memory_format() const {
  const size_t n = impl_->sizes.size();
  if (n != 4 && n != 5) return MemoryFormat::contiguous;
  static constexpr int order4[] = {1, 3, 2, 0};
  static constexpr int order5[] = {1, 4, 3, 2, 0};
  const int* order = n == 4 ? order4 : order5;
  const auto& sizes = impl_->sizes;
  const auto& strides = impl_->strides;
  if (guard_or(strides[1] == 0, false)) return MemoryFormat::contiguous;
  SymInt min = 0;
  for (size_t i = 0; i < n; ++i) {
    const auto d = static_cast<size_t>(order[i]);
    if (guard_or(sizes[d] == 0, false)) return MemoryFormat::contiguous;
    if (guard_or(strides[d] < min, false)) return MemoryFormat::contiguous;
    if (d == 0 && identical(min, strides[1])) return MemoryFormat::contiguous;
    min = strides[d];
    if (guard_or(sizes[d] > 1, true)) min *= sizes[d];
  }
  return n == 4 ? MemoryFormat::channels_last : MemoryFormat::channels_last_3d;
}

TensorBase make_tensor(const Meta& meta, bool fake) {
  const bool special = fake || meta.device.type != DeviceType::cpu;
  const size_t nbytes = reached_bytes(meta.sizes, meta.strides, 0, meta.dtype);
  Ref<Storage> storage = special ? Storage::without_data(nbytes) : Storage::allocate(nbytes);
  auto* impl = new TensorImpl(std::move(storage), meta, 0);
  impl->special = special;
  return TensorBase(Ref<TensorImpl>(impl));
}

TensorBase make_tensor(IntList sizes, DType dtype) {
  const SymIntList s = as_sym(sizes);
  return make_tensor(Meta{SymInts(s.begin(), s.end()), contiguous_strides(s), dtype, Device{}, false});
}

TensorBase make_view(const TensorBase& base, const SymInts& sizes, const SymInts& strides, SymInt offset,
                     std::optional<DType> dtype) {
  const DType seen = dtype.value_or(base.impl().dtype);
  check_inside(base.impl(), sizes, strides, offset, seen);
  return view_of(base, sizes, strides, offset, seen);
}

TensorBase make_reversed_view(const TensorBase& base, const SymInts& sizes, const SymInts& strides, SymInt offset) {
  check_inside(base.impl(), sizes, strides, offset, base.impl().dtype, true);
  return view_of(base, sizes, strides, offset, base.impl().dtype);
}

void set_geometry(const TensorBase& t, const SymInts& sizes, const SymInts& strides, SymInt offset, bool grow) {
  TensorImpl& impl = t.impl();
  if (grow) {
    const size_t needed = reached_bytes(sizes, strides, offset, impl.dtype);
    if (needed > impl.storage->nbytes()) impl.storage->resize(needed);
  } else {
    check_inside(impl, sizes, strides, offset, impl.dtype);
  }
  take_geometry(impl, sizes, strides, offset, impl.env);
}

TensorBase from_storage(Ref<Storage> storage, DType dtype, IntList sizes, IntList strides, int64_t offset) {
  const SymIntList s = as_sym(sizes);
  const SymIntList t = as_sym(strides);
  const Meta meta{SymInts(s.begin(), s.end()), SymInts(t.begin(), t.end()), dtype, Device{}, false};
  const TensorBase made{Ref<TensorImpl>(new TensorImpl(std::move(storage), meta, offset))};
  check_inside(made.impl(), meta.sizes, meta.strides, offset, dtype);
  return made;
}

TensorBase wrapped_scalar(const Scalar& value) {
  const DType dtype = value.is_floating() ? DType::float64 : value.is_complex() ? DType::complex128 : value.dtype();
  TensorBase t = wrapped_scalar(value, dtype);
  t.impl().wrapped_number = true;
  return t;
}

TensorBase wrapped_scalar(const Scalar& value, DType dtype, Device device) {
  const Meta meta{{}, {}, dtype, device, false};
  TensorBase t = make_tensor(meta, value.is_symbolic());
  if (value.is_symbolic()) t.impl().extra = std::make_shared<WrappedNumber>(value);
  if (!t.impl().special)
    dispatch(dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      *static_cast<T*>(t.mutable_data()) = value.to<T>();
    });
  return t;
}

SymInts contiguous_strides(SymIntList sizes) {
  SymInts strides(sizes.size());
  SymInt running = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    strides[d] = running;
    running *= sym_max(sizes[d], 1);
  }
  return strides;
}

SymInts strides_for(MemoryFormat format, SymIntList sizes) {
  if (format == MemoryFormat::contiguous || format == MemoryFormat::preserve) return contiguous_strides(sizes);
  const size_t n = format == MemoryFormat::channels_last ? 4 : 5;
  if (sizes.size() != n && sizes.size() != n - 1)
    throw UserError("memory format " + std::string(name(format)) + " needs a tensor of " + std::to_string(n) +
                    " dimensions, found " + std::to_string(sizes.size()));
  // Innermost first: C, W, H, (D), N; an unbatched tensor has no N.
  SymInts strides(sizes.size());
  const size_t channel = sizes.size() - (n - 1);
  SymInt running = 1;
  strides[channel] = running;
  running *= sizes[channel];
  for (size_t d = sizes.size(); d-- > channel + 1;) {
    strides[d] = running;
    running *= sizes[d];
  }
  if (channel == 1) strides[0] = running;
  return strides;
}

SymInts broadcast_sizes(SymIntList a, SymIntList b, const char* op) {
  const SymIntList& longer = a.size() >= b.size() ? a : b;
  const SymIntList& shorter = a.size() >= b.size() ? b : a;
  SymInts out(longer.begin(), longer.end());
  const size_t lead = longer.size() - shorter.size();
  for (size_t i = shorter.size(); i-- > 0;) {  // from the last one, as PyTorch: the order of the guards
    SymInt& x = out[lead + i];
    const SymInt y = shorter[i];
    if (identical(x, y)) continue;
    if (guard_or(y == 1, false)) continue;
    if (guard_or(x == 1, false)) {
      x = y;
      continue;
    }
    if (!check(x == y))
      throw UserError(std::string(op) + ": the size of tensor a (" + a[a.size() - shorter.size() + i].str() +
                      ") must match the size of tensor b (" + b[b.size() - shorter.size() + i].str() +
                      ") at non-singleton dimension " + std::to_string(lead + i) + " (sizes " + str(a) + " and " + str(b) +
                      ")");
    if (x.is_symbolic() && !y.is_symbolic()) x = y;
  }
  return out;
}

SymInt product(SymIntList sizes) {
  SymInt n = 1;
  for (const SymInt s : sizes) n *= s;
  return n;
}

int64_t wrap_dim(int64_t d, int64_t ndim, const char* op) {
  const int64_t n = ndim == 0 ? 1 : ndim;  // a 0-d tensor accepts 0 and -1
  if (d < -n || d >= n) [[unlikely]]
    throw UserError(std::string(op) + ": Dimension out of range (expected to be in range of [" + std::to_string(-n) + ", " +
                    std::to_string(n - 1) + "], but got " + std::to_string(d) + ")");
  return d < 0 ? d + n : d;
}

std::string str(SymIntList sizes) {
  std::string s = "[";
  for (size_t i = 0; i < sizes.size(); ++i) s += (i ? ", " : "") + sizes[i].str();
  return s + "]";
}
std::string str(IntList sizes) { return str(as_sym(sizes)); }

bool has_internal_overlap(const TensorBase& t) {
  if (!t.is_symbolic() && t.numel() == 0) return false;
  const auto sizes = t.sym_sizes();
  const auto strides = t.sym_strides();
  for (const SymInt size : sizes)
    if (identical(size, 0)) return false;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (!strides[d].is_symbolic() && strides[d].as_int() == 0 && guard_or(sizes[d] > 1, false)) return true;
  return false;
}

Overlap memory_overlap(const TensorBase& a, const TensorBase& b) {
  if (a.is_same(b)) return Overlap::full;
  if (a.storage().get() != b.storage().get()) return Overlap::none;
  if (a.is_symbolic() || b.is_symbolic()) return Overlap::unknown;
  if (a.numel() == 0 || b.numel() == 0) return Overlap::none;
  if (!a.is_non_overlapping_and_dense() || !b.is_non_overlapping_and_dense()) return Overlap::unknown;
  const int64_t a_begin = a.storage_offset() * a.element_size();
  const int64_t a_end = a_begin + a.numel() * a.element_size();
  const int64_t b_begin = b.storage_offset() * b.element_size();
  const int64_t b_end = b_begin + b.numel() * b.element_size();
  if (a_begin == b_begin && a_end == b_end) {
    const bool same = std::equal(a.strides().begin(), a.strides().end(), b.strides().begin(), b.strides().end());
    return same ? Overlap::full : Overlap::partial;
  }
  return a_begin < b_end && b_begin < a_end ? Overlap::partial : Overlap::none;
}

bool grad_enabled() { return thread_context().grad_enabled; }
void set_grad_enabled(bool enabled) {
  thread_context().grad_enabled = enabled;
  if (RegionObserver* observer = region_observer()) observer->grad_mode_set(enabled);
}
GradModeScope::GradModeScope(bool enabled) : before_(grad_enabled()) { set_grad_enabled(enabled); }
GradModeScope::~GradModeScope() { set_grad_enabled(before_); }

}  // namespace calque
