// TensorBase: a handle to sizes, strides, dtype, device and a Storage, without operators. The kernels and what lies below
// them use it; everybody else uses Tensor (calque/op/tensor.h), which is a TensorBase with the operators as methods.
// Copying a handle aliases. Sizes are SymInts: sizes() gives plain integers and throws when one is symbolic, sym_sizes()
// gives them as they are. An undefined handle stands for None.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "calque/base/error.h"
#include "calque/base/list_ref.h"
#include "calque/base/stream.h"
#include "calque/sym/sym_int.h"
#include "calque/tensor/device.h"
#include "calque/tensor/dtype.h"
#include "calque/tensor/scalar.h"
#include "calque/tensor/storage.h"

namespace calque {

class ShapeEnv;

// What a shape rule says of an output: everything but the bytes.
struct Meta {
  SymInts sizes;
  SymInts strides;
  DType dtype = DType::float32;
  Device device;
  bool undefined = false;  // an output that this call does not make (masked off)
};

// Anything a mode hangs onto a tensor (a graph node, a fake mode). Owned by the tensor.
class TensorExtra {
 public:
  virtual ~TensorExtra() = default;
  // Of a tensor that is opaque: what is asked cannot be known. `size` may answer with a symbol of its own.
  [[noreturn]] virtual void refuse(const char* asked) const;
  virtual SymInt size(int64_t d) const;
  // What hangs on a copy of the tensor: `self`, which is this, unless it says something of that one tensor.
  virtual std::shared_ptr<TensorExtra> for_copy(const std::shared_ptr<TensorExtra>& self) { return self; }
};

// What autograd keeps of a tensor (op/grad_node.h). Owned by the tensor.
class TensorHistory {
 public:
  virtual ~TensorHistory() = default;
};

// Under which circumstances a view was made: they decide whether it may be written where gradients are recorded.
enum class ViewKind : uint8_t { plain, no_grad, one_of_many };

class TensorImpl {
 public:
  TensorImpl(Ref<Storage> storage, const Meta& meta, SymInt offset);
  static void* operator new(size_t bytes);
  static void operator delete(void* p, size_t bytes) noexcept;

  // From another tensor: its geometry, dtype and device, and whose symbols its sizes are.
  void take_layout(const TensorImpl& from);
  // From another tensor: whether it wants a gradient, is a leaf, is a view.
  void take_marks(const TensorImpl& from);

  SymInts sizes;
  SymInts strides;
  SymInt offset = 0;  // in elements
  Ref<Storage> storage;
  DType dtype;
  Device device;
  // Read together before each call (is_marked), so they are one byte.
  bool special : 1 = false;  // no kernel may answer: fake, meta or a proxy
  bool requires_grad : 1 = false;
  bool has_base : 1 = false;
  bool symbolic = false;  // some size, stride or offset is symbolic
  bool opaque = false;    // a proxy of which nothing is known, not even its dtype; `extra` says whose
  bool is_leaf = true;
  bool wrapped_number = false;  // made from a Python-like number: weak in promotion
  bool is_view = false;
  ViewKind view_kind = ViewKind::plain;
  uint32_t view_version = 0;  // the storage's when `history` last said where this view comes from
  Ref<TensorImpl> base;       // of a view that an operator made (has_base): the tensor that is none
  std::unique_ptr<TensorHistory> history;
  std::shared_ptr<ShapeEnv> env;  // keeps symbolic sizes alive
  std::shared_ptr<TensorExtra> extra;

  // A view of a tensor that wants a gradient wants one, also when it was made before.
  bool wants_grad() const { return requires_grad || (has_base && base->requires_grad); }
  // Might somebody else than the kernel want to see a call with it?
  bool is_marked() const { return special || requires_grad || has_base; }

 private:
  template <class>
  friend class Ref;
  void destroy() { delete this; }
  std::atomic<uint32_t> refs_{1};
};

class TensorBase {
 public:
  TensorBase() = default;
  explicit TensorBase(Ref<TensorImpl> impl) : impl_(std::move(impl)) {}

  bool defined() const { return static_cast<bool>(impl_); }
  TensorImpl& impl() const { return *impl_; }
  bool is_same(const TensorBase& o) const { return impl_.get() == o.impl_.get(); }
  uint32_t use_count() const { return impl_.use_count(); }

  DType dtype() const { return known("dtype").dtype; }
  Device device() const { return known("device").device; }
  Layout layout() const { return Layout::strided; }
  int64_t dim() const { return static_cast<int64_t>(known("dim").sizes.size()); }
  IntList sizes() const;    // UserError when symbolic
  IntList strides() const;  // UserError when symbolic
  SymIntList sym_sizes() const { return known("sizes").sizes; }
  SymIntList sym_strides() const { return known("strides").strides; }
  int64_t size(int64_t d) const;  // negative d counts from the end; UserError out of range
  int64_t stride(int64_t d) const;
  SymInt sym_size(int64_t d) const;
  SymInt sym_stride(int64_t d) const;
  int64_t numel() const;
  SymInt sym_numel() const;
  int64_t storage_offset() const { return impl_->offset.as_int(); }
  SymInt sym_storage_offset() const { return impl_->offset; }
  int64_t element_size() const { return static_cast<int64_t>(item_size(impl_->dtype)); }
  size_t nbytes() const { return static_cast<size_t>(numel()) * item_size(impl_->dtype); }
  bool is_symbolic() const { return impl_->symbolic; }
  bool is_contiguous(MemoryFormat format = MemoryFormat::contiguous) const;
  bool is_non_overlapping_and_dense() const;
  MemoryFormat suggest_memory_format() const;
  bool is_floating_point() const { return is_floating(dtype()); }
  bool is_fake() const { return impl_->special; }
  bool is_opaque() const { return impl_->opaque; }

  const Ref<Storage>& storage() const { return impl_->storage; }
  // First element. UserError for a tensor without data (fake, meta). `mutable_data` leaves the version as it is: an in-place
  // operator advances it once per call.
  const void* data() const;
  void* mutable_data() const;
  template <class T>
  const T* data_as() const {
    check_dtype(dtype_v<T>);
    return static_cast<const T*>(data());
  }
  template <class T>
  T* mutable_data_as() const {
    check_dtype(dtype_v<T>);
    return static_cast<T*>(mutable_data());
  }
  uint32_t version() const { return impl_->storage->version(); }

  bool requires_grad() const { return impl_->wants_grad(); }
  void set_requires_grad(bool value = true) const;  // UserError for integer dtypes and non-leaves
  bool is_leaf() const { return impl_->is_leaf; }

  std::string str() const;  // as PyTorch prints it
  Meta meta() const { return {impl_->sizes, impl_->strides, impl_->dtype, impl_->device, false}; }

 private:
  void check_dtype(DType expected) const;
  const TensorImpl& known(const char* asked) const {
    if (impl_->opaque) [[unlikely]]
      refuse(asked);
    return *impl_;
  }
  [[noreturn]] void refuse(const char* asked) const;
  Ref<TensorImpl> impl_;
};

// ---- construction -------------------------------------------------------------------------------------------------
// Uninitialised memory as `meta` says; without data when `fake` or on the meta device.
TensorBase make_tensor(const Meta& meta, bool fake = false);
TensorBase make_tensor(IntList sizes, DType dtype);  // contiguous, cpu, uninitialised
// A view of the same storage. `base` may be any tensor; the result keeps its device and kind, and its dtype unless another
// is said. UserError where it would reach outside the storage.
TensorBase make_view(const TensorBase& base, const SymInts& sizes, const SymInts& strides, SymInt offset,
                     std::optional<DType> dtype = std::nullopt);
// The same, for kernels that walk backwards: strides may be negative. No operator gives such a tensor away.
TensorBase make_reversed_view(const TensorBase& base, const SymInts& sizes, const SymInts& strides, SymInt offset);
// The tensor itself becomes such a view, as in-place forms of views do. Where `grow` is set, its storage grows to what it
// reaches (resize_, out=). Nothing is changed when it throws.
void set_geometry(const TensorBase& t, const SymInts& sizes, const SymInts& strides, SymInt offset, bool grow = false);
// A tensor over existing bytes. UserError where it would reach outside of them.
TensorBase from_storage(Ref<Storage> storage, DType dtype, IntList sizes, IntList strides, int64_t offset);
// A 0-d tensor that promotes as the number it holds.
TensorBase wrapped_scalar(const Scalar& value);
TensorBase wrapped_scalar(const Scalar& value, DType dtype, Device device = {});

// ---- shape arithmetic ---------------------------------------------------------------------------------------------
SymInts contiguous_strides(SymIntList sizes);
SymInts strides_for(MemoryFormat format, SymIntList sizes);  // contiguous or channels-last
SymInts broadcast_sizes(SymIntList a, SymIntList b, const char* op);
SymInt product(SymIntList sizes);
int64_t wrap_dim(int64_t d, int64_t ndim, const char* op);  // negative from the end; UserError "Dimension out of range ..."
std::string str(SymIntList sizes);                          // "[2, s0]"
std::string str(IntList sizes);

// Could two elements of the tensor share memory (expanded, overlapping as_strided)?
bool has_internal_overlap(const TensorBase& t);
enum class Overlap { none, partial, full, unknown };
Overlap memory_overlap(const TensorBase& a, const TensorBase& b);

// ---- gradient mode ------------------------------------------------------------------------------------------------
bool grad_enabled();
class GradModeScope {  // sets the calling thread's mode, restores it
 public:
  explicit GradModeScope(bool enabled);
  ~GradModeScope();
  GradModeScope(const GradModeScope&) = delete;
  GradModeScope& operator=(const GradModeScope&) = delete;

 private:
  bool before_;
};
class NoGradGuard : GradModeScope {  // off, as torch.no_grad
 public:
  NoGradGuard() : GradModeScope(false) {}
};

}  // namespace calque
