// Completions for bash, zsh and fish, and the manual page, made from the options of the commands: there is no second list.
#include <algorithm>

#include <fmt/format.h>

#include "base/join.h"
#include "calque/base/version.h"
#include "cli/options.h"

namespace calque::cli {
namespace {

struct CompletedOption {
  std::vector<std::string> names;  // "-o", "--output"
  std::string help;
  std::vector<std::string> choices;
  bool takes_value = false;
};

struct CompletedCommand {
  std::string name, help, group;
  std::vector<CompletedOption> options;
  std::vector<CompletedOption> positionals;
};

// A validator's description lists choices as "a|b".
std::vector<std::string> choices_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t colon = type.find(':');
  if (colon == std::string::npos || type.find('|') == std::string::npos) return {};
  std::vector<std::string> out;
  for (size_t at = colon + 1; at <= type.size();) {
    const size_t end = std::min(type.find('|', at), type.size());
    out.push_back(type.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

CompletedOption completed(const CLI::Option& option) {
  CompletedOption out;
  for (const std::string& name : option.get_snames()) out.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) out.names.push_back("--" + name);
  if (out.names.empty()) out.names.push_back(option.get_name());
  out.help = option.get_description();
  out.choices = choices_of(option);
  if (option.get_type_name().find(":DTYPE") != std::string::npos)
    out.choices = {"auto", "float32", "bfloat16", "float16", "fp32", "bf16", "fp16"};
  out.takes_value = option.get_items_expected_max() > 0;
  return out;
}

CompletedCommand completed(const CLI::App& app) {
  CompletedCommand out{app.get_name(), app.get_description(), app.get_group(), {}, {}};
  for (const CLI::Option* option : app.get_options())
    (option->get_positional() ? out.positionals : out.options).push_back(completed(*option));
  return out;
}

std::vector<CompletedCommand> commands_of(const CLI::App& app) {
  std::vector<CompletedCommand> out;
  for (const CLI::App* one : app.get_subcommands([](const CLI::App* c) { return !c->get_group().empty(); }))
    out.push_back(completed(*one));
  return out;
}

std::string all_names(const std::vector<CompletedOption>& options) {
  std::vector<std::string> names;
  for (const CompletedOption& o : options) names.insert(names.end(), o.names.begin(), o.names.end());
  return join(names, " ");
}

// The same text with each of these letters behind a backslash.
std::string escaped(const std::string& text, std::string_view letters) {
  std::string out;
  for (const char c : text) {
    if (letters.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string bash_script(const CompletedCommand& program, const std::vector<CompletedCommand>& commands) {
  std::vector<std::string> names;
  std::string options, choices;
  const auto add_choices = [&](const std::string& command, const CompletedOption& o) {
    if (o.choices.empty()) return;
    std::vector<std::string> patterns;
    for (const std::string& name : o.names) patterns.push_back(command + ":" + name);
    choices += fmt::format("    {}) words='{}' ;;\n", join(patterns, "|"), join(o.choices, " "));
  };
  for (const CompletedCommand& c : commands) {
    names.push_back(c.name);
    options += fmt::format("    {}) words='{} {}' ;;\n", c.name, all_names(c.options), all_names(program.options));
    for (const CompletedOption& o : c.options) add_choices(c.name, o);
  }
  return fmt::format(R"(# Completion of calque for bash; made by `calque completions bash`.
_calque() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} command='' word words=''
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case $word in -*) ;; *) command=$word; break ;; esac
  done
  case "$command:$previous" in
{}  esac
  if [[ -n $words ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
    return
  fi
  if [[ -z $command ]]; then
    words='{} {}'
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
    return
  fi
  if [[ $cur != -* ]]; then
    COMPREPLY=($(compgen -f -- "$cur"))
    return
  fi
  case $command in
{}  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}}
complete -o filenames -F _calque calque
)",
                     choices, join(names, " "), all_names(program.options), options);
}

std::string zsh_option(const CompletedOption& o) {
  std::string out;
  for (const std::string& name : o.names) {
    const std::string help = escaped(o.help, "[]:'\\");
    const std::string value =
        !o.takes_value ? "" : ":value:" + (o.choices.empty() ? "_files" : "(" + join(o.choices, " ") + ")");
    std::string text = "'*" + name + "[" + help + "]" + value + "'";
    // A quote inside single quotes of a shell.
    for (size_t at = text.find("\\'"); at != std::string::npos; at = text.find("\\'", at + 4)) text.replace(at, 2, "'\\''");
    out += " \\\n        " + text;
  }
  return out;
}

std::string zsh_script(const CompletedCommand& program, const std::vector<CompletedCommand>& commands) {
  std::string described, cases, common;
  for (const CompletedOption& o : program.options) common += zsh_option(o);
  for (const CompletedCommand& c : commands) {
    std::string help = escaped(c.help, ":\\");
    for (size_t at = help.find('\''); at != std::string::npos; at = help.find('\'', at + 4)) help.replace(at, 1, "'\\''");
    described += fmt::format("    '{}:{}'\n", c.name, help);
    std::string options;
    for (const CompletedOption& o : c.options) options += zsh_option(o);
    cases += fmt::format("    {})\n      _arguments -s{}{} \\\n        '*:file:_files' ;;\n", c.name, options, common);
  }
  return fmt::format(R"(#compdef calque
# Completion of calque for zsh; made by `calque completions zsh`.
_calque() {{
  local -a commands
  commands=(
{}  )
  if (( CURRENT == 2 )); then
    _describe 'command' commands
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
{}  esac
}}
_calque "$@"
)",
                     described, cases);
}

std::string fish_script(const CompletedCommand& program, const std::vector<CompletedCommand>& commands) {
  std::string out = "# Completion of calque for fish; made by `calque completions fish`.\n";
  const auto option_line = [&](const std::string& condition, const CompletedOption& o) {
    out += "complete -c calque" + condition;
    for (const std::string& name : o.names)
      out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    if (o.takes_value) out += o.choices.empty() ? " -r" : " -x -a '" + join(o.choices, " ") + "'";
    out += " -d '" + escaped(o.help, "\\'") + "'\n";
  };
  for (const CompletedCommand& c : commands)
    out += fmt::format("complete -c calque -n __fish_use_subcommand -f -a {} -d '{}'\n", c.name, escaped(c.help, "\\'"));
  for (const CompletedOption& o : program.options) option_line("", o);
  for (const CompletedCommand& c : commands)
    for (const CompletedOption& o : c.options) option_line(" -n '__fish_seen_subcommand_from " + c.name + "'", o);
  return out;
}

// Text for troff: no line begins with its control characters, and dashes stay dashes.
std::string roff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
  }
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

std::string manual_options(const std::vector<CompletedOption>& options) {
  std::string out;
  for (const CompletedOption& o : options) {
    std::vector<std::string> names;
    for (const std::string& name : o.names) names.push_back("\\fB" + roff(name) + "\\fR");
    out += ".TP\n" + join(names, ", ") +
           (o.takes_value ? " \\fI" + (o.choices.empty() ? "VALUE" : roff(join(o.choices, "|"))) + "\\fR" : "") + "\n" +
           roff(o.help) + "\n";
  }
  return out;
}

std::string manual_page(const CompletedCommand& program, const std::vector<CompletedCommand>& commands) {
  std::string out = fmt::format(
      ".TH CALQUE 1 \"\" \"calque {}\" \"User Commands\"\n.SH NAME\ncalque \\- traces, exports and runs PyTorch and Hugging "
      "Face models\n.SH SYNOPSIS\n\\fBcalque\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n.SH DESCRIPTION\n{}\n"
      "A model is a folder as Hugging Face writes it, ORG/NAME[@REVISION] in the hub's cache, or tiny\\-lm, which comes "
      "with the "
      "program. Programs are .pt2 files of torch.export. Tensors go in and out as safetensors files.\n"
      ".SH OPTIONS OF EVERY COMMAND\n{}",
      version(), roff(program.help), manual_options(program.options));
  std::string group;
  for (const CompletedCommand& c : commands) {
    if (c.group != group) out += fmt::format(".SH {}\n", roff(c.group));
    group = c.group;
    std::vector<std::string> places;
    for (const CompletedOption& o : c.positionals) places.push_back("\\fI" + roff(o.names.front()) + "\\fR");
    out += fmt::format(".SS calque {} {}\n{}\n{}{}", roff(c.name), join(places, " "), roff(c.help),
                       manual_options(c.positionals), manual_options(c.options));
  }
  out +=
      ".SH EXIT STATUS\n0 done; 1 not the same, or a failed check; 2 usage, bad input, or something that the system "
      "refused; 3 "
      "a bug of Calque.\n.SH ENVIRONMENT\n.TP\n\\fBHF_HUB_CACHE\\fR, \\fBHF_HOME\\fR\nwhere the hub's cache is\n.TP\n"
      "\\fBCALQUE_NUM_THREADS\\fR, \\fBCALQUE_MEMORY_LIMIT\\fR\nas \\-\\-threads and \\-\\-memory\\-limit\n";
  return out;
}

}  // namespace

std::string completions(const CLI::App& app, const std::string& shell) {
  const CompletedCommand program = completed(app);
  std::vector<CompletedCommand> commands = commands_of(app);
  if (shell == "bash") return bash_script(program, commands);
  if (shell == "zsh") return zsh_script(program, commands);
  if (shell == "fish") return fish_script(program, commands);
  // The manual shows the commands by group, as --help does.
  std::vector<std::string> groups;
  for (const CompletedCommand& c : commands)
    if (std::find(groups.begin(), groups.end(), c.group) == groups.end()) groups.push_back(c.group);
  std::stable_sort(commands.begin(), commands.end(), [&](const CompletedCommand& a, const CompletedCommand& b) {
    return std::find(groups.begin(), groups.end(), a.group) < std::find(groups.begin(), groups.end(), b.group);
  });
  return manual_page(program, commands);
}

}  // namespace calque::cli
