// What SymInt costs where every number is plain: the shape arithmetic of operators (strides of a contiguous tensor, number of
// elements, broadcasting, the strides of a view) over SymInt and, the same text, over int64_t with and without a check for overflow.
// Prints nanoseconds a call: the median of 15 rounds, the three taking turns, and the ratio to int64_t as it is.

#include <time.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>

#include "calque/sym/sym_int.h"

namespace {

using namespace calque;

struct Checked {  // an integer that overflows as SymInt does, with an error, and is never symbolic
  int64_t value = 0;
  Checked() = default;
  Checked(int64_t v) : value(v) {}
};
[[noreturn, gnu::noinline]] void overflow() { throw std::overflow_error("overflow"); }
Checked operator*(Checked a, Checked b) {
  Checked r;
  if (__builtin_mul_overflow(a.value, b.value, &r.value)) overflow();
  return r;
}
bool holds(Checked a, Checked b) { return a.value == b.value; }
bool holds(int64_t a, int64_t b) { return a == b; }
bool holds(SymInt a, SymInt b) { return guard(a == b); }

constexpr size_t most_dims = 8;
template <class I>
using Dims = std::array<I, most_dims>;

template <class I>
void contiguous_strides(std::span<const I> sizes, Dims<I>& out) {
  I stride = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    out[d] = stride;
    if (!holds(sizes[d], I(0))) stride = stride * sizes[d];
  }
}

template <class I>
I numel(std::span<const I> sizes) {
  I count = 1;
  for (const I& s : sizes) count = count * s;
  return count;
}

template <class I>
bool broadcast(std::span<const I> a, std::span<const I> b, Dims<I>& out) {
  const size_t n = std::max(a.size(), b.size());
  for (size_t i = 0; i < n; ++i) {
    const I x = i < n - a.size() ? I(1) : a[i - (n - a.size())], y = i < n - b.size() ? I(1) : b[i - (n - b.size())];
    if (holds(x, I(1)))
      out[i] = y;
    else if (holds(y, I(1)) || holds(x, y))
      out[i] = x;
    else
      return false;
  }
  return true;
}

/// Strides that give `to` the elements of a tensor of these sizes and strides in order, if any do.
template <class I>
bool view_strides(std::span<const I> sizes, std::span<const I> strides, std::span<const I> to, Dims<I>& out) {
  size_t left = to.size();
  I chunk_stride = strides.back(), old_count = 1, new_count = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    old_count = old_count * sizes[d];
    const bool ends = d == 0 || (!holds(sizes[d - 1], I(1)) && !holds(strides[d - 1], old_count * chunk_stride));
    if (!ends) continue;
    while (left > 0 && (!holds(new_count, old_count) || holds(to[left - 1], I(1)))) {
      out[--left] = new_count * chunk_stride;
      new_count = new_count * to[left];
    }
    if (!holds(new_count, old_count)) return false;
    if (d > 0) {
      chunk_stride = strides[d - 1];
      old_count = new_count = 1;
    }
  }
  return left == 0;
}

double now() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

template <class T>
void keep(T& value) {
  asm volatile("" : "+m"(value));
}

struct Task {
  const char* name;
  std::vector<int64_t> sizes, other;
  int what;
};

template <class I>
double time_of(const Task& task) {
  std::vector<I> sizes(task.sizes.begin(), task.sizes.end()), other(task.other.begin(), task.other.end());
  Dims<I> strides, out;
  contiguous_strides<I>(sizes, strides);
  constexpr int calls = 200'000;
  const double start = now();
  for (int i = 0; i < calls; ++i) {
    keep(sizes[0]);
    keep(other[0]);
    if (task.what == 0)
      contiguous_strides<I>(sizes, out);
    else if (task.what == 1)
      out[0] = numel<I>(sizes);
    else if (task.what == 2)
      broadcast<I>(sizes, other, out);
    else
      view_strides<I>(sizes, {strides.data(), sizes.size()}, other, out);
    keep(out);
  }
  return (now() - start) / calls;
}

double median(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main() {
  const Task tasks[] = {
      {"strides of 2x12x128x64", {2, 12, 128, 64}, {1}, 0},
      {"elements of 2x12x128x64", {2, 12, 128, 64}, {1}, 1},
      {"8 with 8", {8}, {8}, 2},
      {"2x12x128x64 with 12x1x64", {2, 12, 128, 64}, {12, 1, 64}, 2},
      {"view of 2x128x768 as 2x128x12x64", {2, 128, 768}, {2, 128, 12, 64}, 3},
      {"view of 2x12x128x64 as 24x8192", {2, 12, 128, 64}, {24, 8192}, 3},
  };
  fmt::print("{:36}{:>12}{:>12}{:>12}{:>10}{:>12}\n", "ns a call", "SymInt", "checked", "int64_t", "ratio", "to checked");
  for (const Task& task : tasks) {
    std::vector<double> symbolic, checked, plain;
    for (int round = 0; round < 15; ++round) {
      symbolic.push_back(time_of<SymInt>(task));
      checked.push_back(time_of<Checked>(task));
      plain.push_back(time_of<int64_t>(task));
    }
    const double s = median(symbolic), c = median(checked), p = median(plain);
    fmt::print("{:36}{:12.2f}{:12.2f}{:12.2f}{:10.2f}{:12.2f}\n", task.name, s, c, p, s / p, s / c);
  }
  return 0;
}
