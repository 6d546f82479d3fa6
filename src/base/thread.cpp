#include "calque/base/thread.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "calque/base/error.h"

namespace calque {
namespace {

thread_local bool inside_chunk = false;

void pause_briefly() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Spins for a few tens of microseconds, which covers the gap between one operator and the next, and then sleeps, until
/// `state` no longer holds `value`. Returns what it holds instead.
int wait_while(const std::atomic<int>& state, int value) noexcept {
  using Clock = std::chrono::steady_clock;
  constexpr auto spin_time = std::chrono::microseconds(40);
  const auto start = Clock::now();
  do {
    for (int i = 0; i < 32; ++i) {
      const int now = state.load(std::memory_order_acquire);
      if (now != value) return now;
      pause_briefly();
    }
  } while (Clock::now() - start < spin_time);
  for (;;) {
    const int now = state.load(std::memory_order_acquire);
    if (now != value) return now;
    state.wait(value, std::memory_order_acquire);
  }
}

struct Job {
  detail::ChunkFunction function;
  void* context;
  int64_t begin;
  int64_t size;
  int64_t chunks;

  void run(int64_t chunk) const {
    // size * i / chunks, in parts that do not overflow.
    const auto bound = [this](int64_t i) { return begin + size / chunks * i + size % chunks * i / chunks; };
    function(context, bound(chunk), bound(chunk + 1));
  }
};

/// Runs one chunk marked as being inside, and keeps what it throws.
std::exception_ptr run_guarded(const Job& job, int64_t chunk) noexcept {
  const bool outer = inside_chunk;
  inside_chunk = true;
  std::exception_ptr error;
  try {
    job.run(chunk);
  } catch (...) {
    error = std::current_exception();
  }
  inside_chunk = outer;
  return error;
}

/// What one worker and the callers share. The caller moves idle -> pending; the worker pending -> running -> done, or the
/// caller takes the chunk back (pending -> idle) and runs it itself when the worker is late; the caller done -> idle.
/// All of it is one line of the cache, so that one transfer brings the worker its work.
struct alignas(64) Slot {
  enum State : int { idle, pending, running, done, stop };
  std::atomic<int> state{idle};
  Job job{};
  std::exception_ptr error;
};
static_assert(sizeof(Slot) == 64);

class Pool {
 public:
  /// False when another caller holds the pool.
  bool try_run(const Job& job) {
    std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return false;
    const auto helpers = static_cast<size_t>(job.chunks - 1);
    start(helpers);
    for (size_t i = 0; i < helpers; ++i) {
      slots_[i]->job = job;
      slots_[i]->state.store(Slot::pending, std::memory_order_release);
      slots_[i]->state.notify_one();
    }
    std::exception_ptr error = run_guarded(job, 0);
    for (size_t i = 0; i < helpers; ++i) {
      Slot& slot = *slots_[i];
      std::exception_ptr chunk_error;
      int expected = Slot::pending;
      if (slot.state.compare_exchange_strong(expected, Slot::idle, std::memory_order_acq_rel)) {
        chunk_error = run_guarded(job, static_cast<int64_t>(i) + 1);
      } else {
        if (expected == Slot::running) wait_while(slot.state, Slot::running);
        chunk_error = std::exchange(slot.error, nullptr);
        slot.state.store(Slot::idle, std::memory_order_release);
      }
      if (!error) error = std::move(chunk_error);
    }
    lock.unlock();
    if (error) std::rethrow_exception(error);
    return true;
  }

  /// Ends the workers past the first `count`, after a running job.
  void shrink(size_t count) {
    const std::lock_guard lock(mutex_);
    for (size_t i = count; i < slots_.size(); ++i) {
      slots_[i]->state.store(Slot::stop, std::memory_order_release);
      slots_[i]->state.notify_one();
    }
    for (size_t i = count; i < threads_.size(); ++i) threads_[i].join();
    threads_.resize(std::min(threads_.size(), count));
    slots_.resize(std::min(slots_.size(), count));
  }

 private:
  void start(size_t count) {
    while (threads_.size() < count) {
      slots_.push_back(std::make_unique<Slot>());
      Slot& slot = *slots_.back();
      const auto chunk = static_cast<int64_t>(slots_.size());
      try {
        threads_.emplace_back([this, &slot, chunk] { work(slot, chunk); });
      } catch (...) {
        slots_.pop_back();
        throw;
      }
    }
  }

  void work(Slot& slot, int64_t chunk) noexcept {
    for (;;) {
      int state = slot.state.load(std::memory_order_acquire);
      while (state != Slot::pending && state != Slot::stop) state = wait_while(slot.state, state);
      if (state == Slot::stop) return;
      if (!slot.state.compare_exchange_strong(state, Slot::running, std::memory_order_acq_rel)) continue;
      slot.error = run_guarded(slot.job, chunk);
      slot.state.store(Slot::done, std::memory_order_release);
      slot.state.notify_one();
    }
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<std::thread> threads_;
};

/// Never destroyed: objects with static lifetime may still compute while the process ends. A forked child has no workers,
/// and gets its work done because the caller takes back every chunk that nobody started.
Pool& pool() {
  static Pool* const instance = new Pool;
  return *instance;
}

int default_threads() noexcept {
  if (const char* text = std::getenv("CALQUE_NUM_THREADS")) {
    int count = 0;
    const char* end = text + std::strlen(text);
    const auto [rest, error] = std::from_chars(text, end, count);
    if (error == std::errc() && rest == end && count >= 1) return count;
  }
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

std::atomic<int>& thread_count() noexcept {
  static std::atomic<int> count{default_threads()};
  return count;
}

}  // namespace

int num_threads() noexcept { return thread_count().load(std::memory_order_relaxed); }

void set_num_threads(int count) {
  if (count < 1) throw UserError("set_num_threads: expected a count of at least 1, found " + std::to_string(count));
  if (inside_chunk) throw UserError("set_num_threads: called from inside a parallel_for; call it before");
  thread_count().store(count, std::memory_order_relaxed);
  pool().shrink(static_cast<size_t>(count - 1));
}

bool in_parallel_region() noexcept { return inside_chunk; }

int64_t parallel_chunks(int64_t size, int64_t grain) noexcept {
  if (grain < 1) grain = 1;
  return std::clamp<int64_t>(size / grain, 1, num_threads());
}

void detail::run_chunks(int64_t begin, int64_t end, int64_t chunks, ChunkFunction function, void* context) {
  const Job job{function, context, begin, end - begin, chunks};
  if (!inside_chunk && pool().try_run(job)) return;
  std::exception_ptr error;
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    std::exception_ptr chunk_error = run_guarded(job, chunk);
    if (!error) error = std::move(chunk_error);
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace calque
