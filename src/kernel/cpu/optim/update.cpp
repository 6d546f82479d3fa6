#include "kernel/cpu/optim/update.h"

#include <algorithm>
#include <vector>

#include "calque/base/error.h"
#include "calque/base/thread.h"
#include "kernel/cpu/not_implemented.h"
#include "kernel/cpu/simd/isa_table.h"

namespace calque::kernel {

CALQUE_ISA_ARRAY(UpdateRow, update_table)

namespace {

constexpr int64_t grain = 16384;  // elements for which another thread is worth waking

UpdateFn rule_for(size_t rule, DType dtype, bool rounded) {
  const UpdateRow& row = update_table()[rule];
  if (dtype == DType::float32) return row.f32;
  if (dtype == DType::float64) return row.f64;
  if (dtype == DType::bfloat16) return rounded ? row.bf16_rounded : row.bf16;
  if (dtype == DType::float16) return rounded ? row.f16_rounded : row.f16;
  not_implemented("optimizer step", dtype);
}

// A part as the loop sees it.
struct Stretch {
  std::array<char*, 5> arrays;
  int64_t begin;  // of its elements in the range of all
  int64_t item;
  UpdateFn run;
  const void* numbers;
};

}  // namespace

void update(std::span<const UpdatePart> parts, bool rounded) {
  std::vector<Stretch> stretches;
  stretches.reserve(parts.size());
  int64_t total = 0;
  for (const UpdatePart& part : parts) {
    const DType dtype = part.parameter.dtype();
    Stretch s{{},
              total,
              part.parameter.element_size(),
              rule_for(part.numbers.index(), dtype, rounded),
              std::visit([](const auto& numbers) -> const void* { return &numbers; }, part.numbers)};
    s.arrays[0] = static_cast<char*>(part.parameter.mutable_data());
    s.arrays[1] = static_cast<char*>(const_cast<void*>(part.gradient.data()));
    for (size_t i = 0; i < part.state.size(); ++i)
      s.arrays[i + 2] = part.state[i].defined() ? static_cast<char*>(part.state[i].mutable_data()) : nullptr;
    total += part.parameter.numel();
    stretches.push_back(s);
  }
  parallel_for(0, total, grain, [&](int64_t begin, int64_t end) {
    auto s = std::upper_bound(stretches.begin(), stretches.end(), begin,
                              [](int64_t place, const Stretch& stretch) { return place < stretch.begin; });
    for (--s; begin < end; ++s) {
      const int64_t stop = std::min(end, std::next(s) == stretches.end() ? total : std::next(s)->begin);
      void* arrays[5];
      for (size_t i = 0; i < 5; ++i) arrays[i] = s->arrays[i] ? s->arrays[i] + (begin - s->begin) * s->item : nullptr;
      s->run(arrays, stop - begin, s->numbers);
      begin = stop;
    }
  });
}

}  // namespace calque::kernel
