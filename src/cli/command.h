// The commands of the `calque` program: each has its options and one function. main.cpp reads them from the command
// line, and is the only file that includes the (heavy) library for that; what a function throws, main() turns into a message and an
// exit status: 2 for a UserError (usage or bad input), 1 for ExitStatus{1} (not the same, or a failed check), 3 for a bug.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "calque/file/compare.h"

namespace calque::cli {

struct ExitStatus {  // thrown by a command that is done but has something else than 0 to say
  int status;
};

struct InfoOptions {
  std::string path;
  bool json = false;
};
void run_info(const InfoOptions& options);

struct RunOptions {
  std::string path;
  std::string model;    // of several in the archive; by default "model", or the only one
  std::string inputs;   // a safetensors file, by names of the program's inputs; none for a program that takes nothing
  std::string outputs;  // a safetensors file to write; empty: nothing is written
  bool unchecked = false;
};
void run_program(const RunOptions& options);

struct ForwardOptions {
  std::string model;        // a model folder
  std::string inputs;       // a safetensors file, by names of the forward's arguments
  std::string outputs;      // a safetensors file to write; empty: nothing is written
  std::string model_class;  // by default what the config names
  std::string attention;    // eager or sdpa
  bool train = false;
};
void run_forward(const ForwardOptions& options);

struct DiffOptions {
  std::string a, b, reference;
  SameOptions same;
  bool any_dtype = false;
  double iou = 0.99;
  size_t worst = 10;
  bool json = false;
};
void run_diff(const DiffOptions& options);
// The comparison as a table or as JSON; `program` says how two programs compare, their state aside.
void print_diff(const DiffOptions& options, const FileComparison& comparison, const std::optional<std::string>& program = {});

struct ExportCommandOptions {
  std::string model;                 // an example's name, or a .pt2 file
  std::string output;
  std::string inputs;                // a safetensors file, by names of arguments; by default the example's
  std::vector<std::string> dynamic;  // "x=batch,*", as parse_dynamic_shapes reads it
  bool strict = false;
  bool decompose = false;
  bool apply_fixes = false;
  bool print = false;
};
void run_export(const ExportCommandOptions& options);

struct TraceOptions {
  std::string model;
  std::string level = "aten";      // aten: operators; fx: what was written
  std::string mode = "symbolic";   // real, fake or symbolic; of level aten
  std::string format;              // text, table, code, json, dot or html; by default from the file's name, or text
  std::string output;              // a file; by default standard output
  bool explain = false;
  bool list = false;
};
void run_trace(const TraceOptions& options);

}  // namespace calque::cli
