// How a page is put together, and the parts of a graph's that are no data, put into the program from page.css and page.js when it is built.
#pragma once

#include <string>
#include <string_view>

namespace calque::draw {

extern const std::string_view page_style;
extern const std::string_view page_script;

// A page that needs nothing else and asks no network. `data` is a JSON text, in the element of that id; nothing in it ends the element.
std::string html_page(std::string_view title, std::string_view style, std::string_view script, std::string_view data);

}  // namespace calque::draw
