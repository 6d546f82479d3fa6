// The parts of a profile's page that are no data, put into the program from page.css and page.js when it is built.
#pragma once

#include <string_view>

namespace calque::profile {

extern const std::string_view page_style;
extern const std::string_view page_script;

}  // namespace calque::profile
