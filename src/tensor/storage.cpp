#include "calque/tensor/storage.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "calque/base/error.h"
#include "calque/base/memory.h"
#include "calque/base/small_blocks.h"

namespace calque {
namespace {

constexpr size_t header_bytes = (sizeof(Storage) + Storage::alignment - 1) / Storage::alignment * Storage::alignment;
// Blocks from here on get their own pages and are kept for reuse when freed; smaller ones are small blocks, header and all.
constexpr size_t large = small_block_limit - header_bytes + 1;

// Four size classes per power of two: at most a quarter of a block is slack.
size_t size_class(size_t nbytes) {
  if (memory_is_watched) return nbytes;
  size_t step = size_t{1} << 12;
  while (step * 8 <= nbytes) step <<= 1;
  return (nbytes + step - 1) / step * step;
}

class BlockCache {
 public:
  static BlockCache& instance() {
    static auto* cache = new BlockCache;  // outlives every static tensor
    return *cache;
  }

  void* take(size_t capacity) {
    {
      const std::lock_guard lock(mutex_);
      const auto it = free_.find(capacity);
      if (it != free_.end() && !it->second.empty()) {
        void* p = it->second.back();
        it->second.pop_back();
        held_ -= capacity;
        return p;
      }
    }
    if (!try_claim_memory(capacity)) {
      clear();  // what is kept for reuse counts, too
      claim_memory(capacity);
    }
    void* p = nullptr;
    if (posix_memalign(&p, memory_is_watched ? Storage::alignment : 4096, capacity) != 0) {
      release_memory(capacity);
      refuse_memory(capacity);
    }
#ifdef MADV_HUGEPAGE
    if (capacity >= (size_t{4} << 20)) madvise(p, capacity, MADV_HUGEPAGE);
#endif
    return p;
  }

  void give(void* p, size_t capacity) {
    {
      const std::lock_guard lock(mutex_);
      if (held_ + capacity <= limit_) {
        free_[capacity].push_back(p);
        held_ += capacity;
        return;
      }
    }
    std::free(p);
    release_memory(capacity);
  }

  void set_limit(size_t bytes) {
    {
      const std::lock_guard lock(mutex_);
      limit_ = bytes;
    }
    if (bytes == 0) clear();
  }

  size_t held() {
    const std::lock_guard lock(mutex_);
    return held_;
  }

  void clear() {
    const std::lock_guard lock(mutex_);
    for (auto& [capacity, blocks] : free_)
      for (void* p : blocks) std::free(p);
    free_.clear();
    release_memory(held_);
    held_ = 0;
  }

 private:
  BlockCache() {
    if (const char* text = std::getenv("CALQUE_CACHE_BYTES")) limit_ = std::strtoull(text, nullptr, 10);
  }

  std::mutex mutex_;
  std::map<size_t, std::vector<void*>> free_;
  size_t held_ = 0;
  size_t limit_ = memory_is_watched ? 0 : size_t{512} << 20;
};

}  // namespace

Storage* Storage::make(size_t bytes_behind) {
  const size_t bytes = header_bytes + bytes_behind;
  auto* s = new (take_small_block(bytes)) Storage;
  s->header_ = bytes;
  return s;
}

Ref<Storage> Storage::allocate(size_t nbytes) {
  if (nbytes > SIZE_MAX / 2) refuse_memory(nbytes);
  if (nbytes < large && (!memory_is_watched || nbytes == 0)) {
    Storage* s = make(nbytes);
    s->data_ = reinterpret_cast<std::byte*>(s) + header_bytes;
    s->nbytes_ = nbytes;
    return Ref<Storage>(s);
  }
  const size_t capacity = size_class(nbytes);
  Ref<Storage> s(make(0));
  s->data_ = BlockCache::instance().take(capacity);
  s->nbytes_ = nbytes;
  s->capacity_ = capacity;
  return s;
}

Ref<Storage> Storage::borrow(void* data, size_t nbytes, std::shared_ptr<const void> owner, bool read_only) {
  Storage* s = make(0);
  s->data_ = data;
  s->nbytes_ = nbytes;
  s->owner_ = std::move(owner);
  s->read_only_ = read_only;
  return Ref<Storage>(s);
}

Ref<Storage> Storage::without_data(size_t nbytes) {
  Storage* s = make(0);
  s->nbytes_ = nbytes;
  return Ref<Storage>(s);
}

void Storage::release_data() {
  if (capacity_) BlockCache::instance().give(data_, capacity_);
  data_ = nullptr;
  capacity_ = 0;
}

void Storage::destroy() {
  release_data();
  const size_t bytes = header_;
  this->~Storage();
  give_small_block(this, bytes);
}

void Storage::resize(size_t nbytes) {
  if (owner_ && data_)
    throw UserError("resize: this storage is borrowed (a mapped file or foreign memory) and cannot change its size");
  if (!has_data() || owner_) {
    nbytes_ = nbytes;
    return;
  }
  const size_t capacity = size_class(std::max(nbytes, large));
  void* fresh = BlockCache::instance().take(capacity);
  if (nbytes_) std::memcpy(fresh, data_, std::min(nbytes, nbytes_));
  release_data();
  data_ = fresh;
  nbytes_ = nbytes;
  capacity_ = capacity;
}

void set_block_cache_limit(size_t bytes) { BlockCache::instance().set_limit(bytes); }
size_t block_cache_bytes() { return BlockCache::instance().held(); }
void clear_block_cache() { BlockCache::instance().clear(); }

}  // namespace calque
