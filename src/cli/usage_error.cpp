// What was wrong with a command line, in words.
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "cli/options.h"
#include "hub/near_names.h"

namespace calque::cli {
namespace {

// What users of Python's tools write for something that has another name here.
constexpr std::pair<const char*, const char*> other_words[] = {
    {"--fp16", "--dtype fp16"},
    {"--half", "--dtype fp16"},
    {"--bf16", "--dtype bf16"},
    {"--torch-dtype", "--dtype"},
    {"--text", "--prompt"},
    {"--max-length", "--max-new-tokens"},
    {"--num-threads", "--threads"},
    {"--attn-implementation", "--attention"},
    {"--dynamic-shapes", "--dynamic"},
    {"--silent", "--quiet"},
    {"--output-file", "--output"},
    {"--out", "--output"},
};

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> out;
  for (const CLI::App* app : {&command, static_cast<const CLI::App*>(command.get_parent())}) {
    if (!app) continue;
    for (const CLI::Option* option : app->get_options()) {
      for (const std::string& name : option->get_lnames()) out.push_back("--" + name);
      for (const std::string& name : option->get_snames()) out.push_back("-" + name);
    }
  }
  return out;
}

std::string unknown_option(const CLI::App& command, std::string option) {
  option = option.substr(0, option.find('='));
  const std::vector<std::string> known = option_names(command);
  std::string hint = did_you_mean(option, known);
  std::string wanted = option;
  std::replace(wanted.begin(), wanted.end(), '_', '-');
  for (const auto& [theirs, ours] : other_words) {
    const std::string name = std::string(ours).substr(0, std::string(ours).find(' '));
    if (wanted == theirs && std::find(known.begin(), known.end(), name) != known.end())
      hint = fmt::format("; did you mean '{}'?", ours);
  }
  return "there is no option " + option + hint;
}

std::string unknown_command(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names, near;
  for (const CLI::App* one : app.get_subcommands([](const CLI::App* c) { return !c->get_group().empty(); }))
    names.push_back(one->get_name());
  for (const std::string& name : names) {
    const bool begins = word.size() >= 3 && name.starts_with(word);
    if (begins || edit_distance(word, name) <= std::max<size_t>(1, word.size() / 3)) near.push_back("'" + name + "'");
  }
  std::error_code ignored;
  if (std::filesystem::exists(word, ignored))
    return fmt::format("'{}' is no command; `calque info {}` shows what it is, `calque --help` lists the commands", word,
                       word);
  if (!near.empty() && near.size() <= 3)
    return fmt::format("there is no command '{}'; did you mean {}?", word, listed(near, "or"));
  return fmt::format("there is no command '{}'; `calque --help` lists them: {}", word, listed(names));
}

// CLI11's own words, without what is no use to a reader.
std::string reason_of(const CLI::ParseError& error) {
  const std::string text = error.what();
  const size_t colon = text.find(": ");
  if (dynamic_cast<const CLI::RequiredError*>(&error)) return text.substr(0, text.find(" is required")) + " is missing";
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) && text.ends_with("missing"))
    return "the value of " + text.substr(0, std::min(colon, text.size())) + " is missing";
  if (dynamic_cast<const CLI::ConversionError*>(&error) && text.starts_with("Could not convert: ")) {
    const std::string rest = text.substr(std::string("Could not convert: ").size());
    const size_t equals = rest.find(" = ");
    if (equals != std::string::npos)
      return rest.substr(0, equals) + ": expected a number, found '" + rest.substr(equals + 3) + "'";
  }
  return text;
}

}  // namespace

std::string usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<CLI::App*> used = app.get_subcommands();
  const CLI::App& command = used.empty() ? app : *used.front();
  const std::string name = used.empty() ? "calque" : "calque " + command.get_name();
  const auto with_help = [&](const std::string& text) {
    const std::string start = used.empty() ? "" : command.get_name() + ": ";
    return start + text + (text.ends_with("?") ? " " : "; ") + "`" + name + " --help` shows the options";
  };
  const std::vector<std::string> left = app.remaining(true);
  if (used.empty() && !left.empty() && !left.front().starts_with("-")) return unknown_command(app, left.front());
  for (const std::string& one : left)
    if (one.size() > 1 && one.front() == '-' && one != "--") return with_help(unknown_option(command, one));
  if (dynamic_cast<const CLI::ExtrasError*>(&error) && !left.empty())
    return with_help("'" + left.front() + "' is one argument too many; a text of several words stands in quotes");
  return with_help(reason_of(error));
}

}  // namespace calque::cli
