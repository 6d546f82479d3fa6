// What the text commands share: where texts come from, and how answers are shown.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "calque/base/error.h"
#include "calque/base/warning.h"
#include "cli/models.h"
#include "cli/progress.h"
#include "cli/task.h"
#include "text/utf8.h"

namespace calque::cli {
namespace {

// Without the mark that some editors put in front of a text. Bytes that are no text are said, once.
std::vector<std::string> lines_of(std::istream& in, const std::string& name) {
  std::vector<std::string> out;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (out.empty() && line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);
    if (!is_valid_utf8(line))
      warn(
          fmt::format("{}: line {} is not UTF-8; what is no character counts as U+FFFD. "
                      "`iconv -f ISO-8859-1 -t UTF-8` converts texts of Western Europe",
                      name, out.size() + 1));
    out.push_back(std::move(line));
  }
  return out;
}

std::string all_of(std::istream& in) {
  std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace

std::vector<std::string> texts_of(const std::string& command, const TaskOptions& options, const std::string& beside) {
  if (options.prompts.empty() == options.file.empty())
    throw UserError(command + ": give the text with -p, or a file with a text a line with --file (- is standard input)" +
                    (options.prompts.empty() ? beside : ", and not both"));
  std::vector<std::string> out = options.prompts;
  for (std::string& text : out)
    if (text == "-") text = all_of(std::cin);
  if (options.file == "-") {
    out = lines_of(std::cin, "standard input");
  } else if (!options.file.empty()) {
    std::ifstream in(options.file);
    if (!in || std::filesystem::is_directory(options.file))
      throw UserError(ErrorKind::bad_file, options.file + ": cannot be read; expected a file with a text a line");
    out = lines_of(in, options.file);
  }
  if (out.empty()) throw UserError(ErrorKind::bad_file, command + ": " + options.file + " has no lines");
  return out;
}

LoadOptions load_options(const TaskOptions& options) {
  LoadOptions out;
  out.model_class = options.model_class;
  out.attention = options.attention;
  out.variant = current_read_variant();
  out.progress = progress_bar("loading " + options.model);
  if (!options.dtype.empty()) out.dtype = dtype_option(options.dtype);
  return out;
}

TaskProgress progress_bar(const std::string& what) {
  const auto progress = std::make_shared<Progress>(what);
  return [progress](size_t done, size_t all) { progress->update(done, all); };
}

void print_json_line(const nlohmann::ordered_json& json) {
  fmt::print("{}\n", json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

std::string ending_of(const std::string& path, std::initializer_list<std::string_view> known) {
  const size_t dot = path.rfind('.');
  const std::string ending =
      dot == std::string::npos || path.find('/', dot) != std::string::npos ? "" : path.substr(dot + 1);
  if (std::ranges::find(known, ending) != known.end()) return ending;
  std::string list;
  size_t i = 0;
  for (const std::string_view one : known) {
    if (i > 0) list += i + 1 == known.size() ? " or " : ", ";
    list += "." + std::string(one), ++i;
  }
  throw UserError(path + ": its ending says what is written; expected " + list);
}

TextInput split_pair(const std::string& command, const std::string& line, size_t number) {
  const size_t tab = line.find('\t');
  if (tab == std::string::npos)
    throw UserError(fmt::format("{}: text {} has no tab; expected two texts with a tab between them", command, number + 1));
  return {line.substr(0, tab), line.substr(tab + 1)};
}

}  // namespace calque::cli
