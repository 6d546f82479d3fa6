// One sink for warnings. The default sink drops them after counting; a program installs its own. Each distinct text is
// delivered once unless asked otherwise. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace calque {

using WarningSink = std::function<void(std::string_view message)>;

void warn(std::string message);               // delivered once per distinct text, by default
WarningSink set_warning_sink(WarningSink s);  // returns the one before
void set_warn_always(bool always);            // deliver repeats too
uint64_t warning_count();                     // every warn() call, delivered or not
void reset_warnings();                        // forget which texts were delivered

}  // namespace calque
