// The generated tables behind unicode.h, as compact lists. Only unicode.cpp and normal_forms.cpp read them.
#pragma once

#include <cstdint>
#include <span>

namespace calque {

extern const std::span<const uint32_t> unicode_property_runs;
extern const std::span<const int32_t> unicode_lower_ranges;
extern const std::span<const uint32_t> unicode_decompositions;
extern const std::span<const uint32_t> unicode_decomposition_pool;
extern const std::span<const uint32_t> unicode_class_runs;
extern const std::span<const uint32_t> unicode_compositions;

}  // namespace calque
