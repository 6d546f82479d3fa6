// Storage: the bytes behind one or more tensors. Reference-counted; owned (allocated with its header), borrowed (kept
// alive by an owner object, e.g. a mapped file) or without data (fake and meta tensors). Views share a Storage, and
// with it the version counter that in-place operators advance.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace calque {

// A pointer to an object that counts its own references (`refs_` and `destroy()`).
template <class T>
class Ref {
 public:
  Ref() = default;
  explicit Ref(T* adopted) : p_(adopted) {}  // takes over one reference
  static Ref share(T* alive) {               // one more reference to an object that has some
    alive->refs_.fetch_add(1, std::memory_order_relaxed);
    return Ref(alive);
  }
  Ref(const Ref& o) : p_(o.p_) {
    if (p_) p_->refs_.fetch_add(1, std::memory_order_relaxed);
  }
  Ref(Ref&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  Ref& operator=(Ref o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~Ref() {
    if (p_ && p_->refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) p_->destroy();
  }
  T* get() const { return p_; }
  T* operator->() const { return p_; }
  T& operator*() const { return *p_; }
  explicit operator bool() const { return p_ != nullptr; }
  uint32_t use_count() const { return p_ ? p_->refs_.load(std::memory_order_relaxed) : 0; }

 private:
  T* p_ = nullptr;
};

class Storage {
 public:
  static constexpr size_t alignment = 64;

  static Ref<Storage> allocate(size_t nbytes);  // uninitialised
  // Bytes owned by someone else, alive as long as `owner`. Writing into `read_only` bytes is a UserError.
  static Ref<Storage> borrow(void* data, size_t nbytes, std::shared_ptr<const void> owner, bool read_only = false);
  static Ref<Storage> without_data(size_t nbytes);  // fake or meta

  void* data() const { return data_; }
  size_t nbytes() const { return nbytes_; }
  bool has_data() const { return data_ != nullptr || nbytes_ == 0; }
  bool is_read_only() const { return read_only_; }
  bool is_borrowed() const { return owner_ != nullptr; }
  uint32_t version() const { return version_.load(std::memory_order_relaxed); }
  void bump_version() { version_.fetch_add(1, std::memory_order_relaxed); }
  void resize(size_t nbytes);  // keeps the common prefix; owned storages only (resize_)

 private:
  template <class>
  friend class Ref;
  Storage() = default;
  ~Storage() = default;
  static Storage* make(size_t bytes_behind);
  void destroy();
  void release_data();

  std::atomic<uint32_t> refs_{1};
  std::atomic<uint32_t> version_{0};
  void* data_ = nullptr;
  size_t nbytes_ = 0;
  size_t capacity_ = 0;  // of a block from the cache; 0 when the bytes follow the header or are borrowed
  size_t header_ = 0;    // of the block that this object is in, the bytes that follow it included
  bool read_only_ = false;
  std::shared_ptr<const void> owner_;
};

// Bytes of freed large blocks kept for reuse, per process. Reuse avoids the page faults of fresh memory.
// 0 disables; the default is 512 MiB or CALQUE_CACHE_BYTES.
void set_block_cache_limit(size_t bytes);
size_t block_cache_bytes();
void clear_block_cache();

}  // namespace calque
