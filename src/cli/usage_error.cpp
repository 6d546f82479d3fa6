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
    {"--max-tokens", "--max-new-tokens"},
    {"--n-predict", "--max-new-tokens"},
    {"--num-predict", "--max-new-tokens"},
    {"--temp", "--temperature"},
    {"--stop-strings", "--stop"},
    {"--system-prompt", "--system"},
    {"--pooling", "--pool"},
    {"--src-lang", "--from"},
    {"--tgt-lang", "--to"},
    {"-i", "--inputs"},
    {"-f", "--file"},
    {"-t", "--threads"},
    {"-b", "--batch-size"},
};

// Options of other tools for what is done otherwise here.
constexpr std::pair<const char*, const char*> without_option[] = {
    {"-m", "the model stands without an option behind the command's name"},
    {"--model", "the model stands without an option behind the command's name"},
    {"--model-name-or-path", "the model stands without an option behind the command's name"},
    {"--device", "Calque computes on the processor; leave it out"},
    {"--gpu", "Calque computes on the processor; leave it out"},
    {"--cuda", "Calque computes on the processor; leave it out"},
    {"--cpu", "Calque computes on the processor; leave it out"},
    {"--trust-remote-code", "Calque runs no code of a model's; leave it out"},
    {"--verbose", "every message is shown; leave it out"},
    {"--opset", "`calque export` writes a .pt2 program, not ONNX; leave it out"},
    {"-v", "`calque --version` shows the version"},
    {"-V", "`calque --version` shows the version"},
};

// Commands of other tools, and what does their work here.
constexpr std::pair<const char*, const char*> other_commands[] = {
    {"complete", "`calque generate MODEL -p TEXT` goes on from a text"},
    {"convert", "`calque save` writes a model anew (--dtype, --format), `calque export` writes a .pt2 program"},
    {"encode", "`calque tokenize` gives ids, `calque embed` vectors"},
    {"infer",
     "`calque generate`, `classify`, `embed`, ... use a model; `calque forward` is one pass, `calque run` runs a .pt2 "
     "program"},
    {"list", "`calque models` lists what opens"},
    {"ls", "`calque models` lists what opens"},
    {"pipeline", "`calque generate`, `classify`, `embed`, ... are the pipelines"},
    {"predict",
     "`calque generate`, `classify`, `embed`, ... use a model; `calque forward` is one pass, `calque run` runs a .pt2 "
     "program"},
    {"show", "`calque info PATH` shows what a file or a folder holds"},
};

template <size_t n>
const char* other_name(const std::pair<const char*, const char*> (&table)[n], std::string_view word) {
  const auto* found = std::ranges::find_if(table, [&](const auto& row) { return word == row.first; });
  return found == std::end(table) ? nullptr : found->second;
}

bool has_option(const CLI::App& command, const std::string& name) { return command.get_option_no_throw(name) != nullptr; }

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
  if (const char* ours = other_name(other_words, wanted)) {
    const std::string name = std::string(ours).substr(0, std::string(ours).find(' '));
    if (std::find(known.begin(), known.end(), name) != known.end()) hint = fmt::format("; did you mean '{}'?", ours);
  }
  if (const char* why = other_name(without_option, wanted)) hint = fmt::format(": {}", why);
  if (command.get_name() == "run" && (wanted == "-p" || wanted == "--prompt"))
    hint = ": it runs .pt2 programs on tensors; `calque generate MODEL -p TEXT` writes text";
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
  if (const char* ours = other_name(other_commands, word)) return fmt::format("there is no command '{}'; {}", word, ours);
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
  if (dynamic_cast<const CLI::ExtrasError*>(&error) && !left.empty()) {
    std::error_code ignored;
    std::string what = "; a text of several words stands in quotes";
    if (has_option(command, "--file") && std::filesystem::is_regular_file(left.front(), ignored))
      what = "; a file with a text a line stands behind --file";
    else if (has_option(command, "--prompt") && command.count("--prompt") == 0)
      what = "; a text stands behind -p, in quotes";
    return with_help("'" + left.front() + "' is one argument too many" + what);
  }
  return with_help(reason_of(error));
}

}  // namespace calque::cli
