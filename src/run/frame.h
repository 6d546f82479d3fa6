// Frame: the values of one run of a plan, by their ids. Frames are kept for the next run, so that a run allocates none.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "calque/op/value.h"

namespace calque::run {

struct Frame {
  Values values;
  // Places that results of one size in bytes take in turns (run/memory_plan.h). Each is made, or made anew, by the first result that
  // finds it empty, of another size, or held by somebody still.
  mutable std::vector<Ref<Storage>> slots = {};
};

class FramePool {
 public:
  // A frame for the life of the lease; it goes back empty after a run that came to its end, and is dropped after another.
  class Lease {
   public:
    Lease(FramePool& pool, size_t num_values, size_t num_slots) : pool_(pool), frame_(pool.take(num_values, num_slots)) {}
    ~Lease() {
      if (done_) pool_.give_back(std::move(frame_));
    }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    Frame& operator*() const { return *frame_; }
    void done() { done_ = true; }

   private:
    FramePool& pool_;
    std::unique_ptr<Frame> frame_;
    bool done_ = false;
  };

 private:
  std::unique_ptr<Frame> take(size_t num_values, size_t num_slots) {
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        std::unique_ptr<Frame> frame = std::move(free_.back());
        free_.pop_back();
        return frame;
      }
    }
    auto frame = std::make_unique<Frame>();
    frame->values.resize(num_values);
    frame->slots.resize(num_slots);
    return frame;
  }
  void give_back(std::unique_ptr<Frame> frame) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(frame));
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<Frame>> free_;
};

}  // namespace calque::run
