// What the options of several commands share: names of dtypes, ranges and choices whose errors are sentences. Includes the (heavy)
// library that reads the command line; for the files that declare commands.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

#include "cli/writing.h"

namespace calque::cli {

inline constexpr const char* use_group = "Use a model";  // where help shows a command

// Every message says what was expected and what was found, with the nearest choice where one is near.
CLI::Validator one_of(const std::vector<std::string>& choices);
CLI::Validator positive();
CLI::Validator not_negative();
CLI::Validator between(double least, double most);
// To be given to transform(): fp16, half, float16, bf16, bfloat16, fp32, float, float32, fp64, double, float64, auto; the value becomes PyTorch's name.
CLI::Validator dtype_name();

CLI::Option* add_dtype(CLI::App* command, std::string& dtype, const std::string& what);
CLI::Option* add_json(CLI::App* command, bool& json, const std::string& what = "for programs to read");
CLI::Option* add_class(CLI::App* command, std::string& model_class);
CLI::Option* add_attention(CLI::App* command, std::string& attention);
void add_writing(CLI::App* command, WritingOptions& options, const std::string& most = "at most this many");

// What every command takes, wherever it stands on the line.
struct CommonOptions {
  std::string memory_limit, variant;
  std::vector<std::string> operators;  // shared libraries
  unsigned time_limit = 0;
  int threads = 0;  // 0: all cores
  bool quiet = false;
};
void add_common_options(CLI::App& app, CommonOptions& options);

// All commands of the program, their callbacks run them.
void add_commands(CLI::App& app);

// What was wrong with a command line, in one sentence that names the command; with what was meant, where that is near.
std::string usage_error(const CLI::App& app, const CLI::ParseError& error);

// Scripts that complete commands and options for a shell (bash, zsh, fish), and the manual page (man), from the same options.
std::string completions(const CLI::App& app, const std::string& shell);

}  // namespace calque::cli
