// The commands of the `calque` program: each has its options and one function. commands.cpp says how they are written on the command
// line (options.h includes the heavy library for that); what a function throws, main() turns into a message and an exit status: 2 for a UserError (usage or bad input) and for what the system refuses (files, memory, output), 1 for ExitStatus{1}
// (not the same, or a failed check), 3 for a bug.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "calque/base/error.h"
#include "calque/file/compare.h"
#include "cli/writing.h"

namespace calque::cli {

// What fn() gives. A UserError that leaves it is about this file, and names it.
template <class F>
decltype(auto) about_file(const std::string& path, F&& fn) {
  try {
    return fn();
  } catch (UserError& error) {
    if (error.reason().find(path) == std::string_view::npos) error.prepend(path + ": ");
    throw;
  }
}

struct ExitStatus {  // thrown by a command that is done but has something else than 0 to say
  int status;
};

struct InfoOptions {
  std::string path;
  std::string dtype;  // of a model: what it is when it is read in this
  bool json = false;
};
void run_info(const InfoOptions& options);

struct RunOptions {
  std::string path;
  std::string model;    // of several in the archive; by default "model", or the only one
  std::string inputs;   // a safetensors file, by names of the program's inputs; none for a program that takes nothing
  std::string outputs;  // a safetensors file to write; empty: nothing is written
  bool unchecked = false;
  bool eager = false;  // by the interpreter
  bool check = false;  // every step of the plan beside the interpreter
  bool json = false;
};
void run_program(const RunOptions& options);

struct ForwardOptions {
  std::string model;                 // a model folder
  std::string inputs;                // a safetensors file, by names of the forward's arguments
  std::vector<std::string> prompts;  // or texts for the model's tokenizer
  std::string save_inputs;           // a safetensors file to write the inputs to
  std::string outputs;               // a safetensors file to write; empty: nothing is written
  std::string model_class;           // by default what the config names
  std::string attention;             // eager or sdpa
  std::string dtype;                 // by default as the weights are
  bool train = false;
  bool json = false;
};
void run_forward(const ForwardOptions& options);

struct GenerateCommandOptions {
  std::string model;
  std::optional<std::string> prompt;  // "-": standard input
  std::string model_class, dtype;
  std::string assistant;  // the folder of a smaller model that proposes tokens
  WritingOptions writing;
  std::optional<int64_t> prompt_lookup;
  std::optional<double> repetition_penalty;
  std::vector<std::string> stop;
  bool no_prompt = false;
  bool stats = false;
  bool json = false;
};
void run_generate(const GenerateCommandOptions& options);

struct SaveCommandOptions {
  std::string model, output;
  std::string model_class, dtype, max_shard_size, variant, from_variant;
  std::string format = "safetensors";  // or bin
  bool merge = false, json = false;
};
void run_save(const SaveCommandOptions& options);

struct DiffOptions {
  std::string a, b, reference;
  std::string output;              // a page that shows the differences of two graphs; empty: none
  std::string model_class, dtype;  // of models
  SameOptions same;
  bool any_dtype = false;
  double iou = 0.99;
  size_t worst = 10;
  bool json = false;
};
void run_diff(const DiffOptions& options);
// The comparison as a table or as JSON; `program` says how two programs compare, their state aside.
void print_diff(const DiffOptions& options, const FileComparison& comparison,
                const std::optional<std::string>& program = {});

struct ExportCommandOptions {
  std::string model;  // a model folder, an example's name, or a .pt2 file
  std::string output;
  std::string inputs;                         // a safetensors file, by names of arguments; by default the example's
  std::vector<std::string> dynamic;           // "x=batch,*", as parse_dynamic_shapes reads it
  std::string model_class, dtype, attention;  // of a model folder
  bool static_sizes = false;                  // of a model folder: without --dynamic its batch and lengths are dynamic
  bool cache = false;                         // of a model folder: keys and values among the outputs
  bool strict = false;
  bool decompose = false;
  std::optional<size_t> loss;  // the program gets the backward pass of this output
  bool apply_fixes = false;
  bool print = false;
  bool json = false;
};
void run_export(const ExportCommandOptions& options);

struct CompileCommandOptions : ExportCommandOptions {
  std::string program;  // which of several in the archive
};
void run_compile(const CompileCommandOptions& options);

struct TraceOptions {
  std::string model;
  std::string level = "aten";     // aten: operators; fx: what was written
  std::string mode = "symbolic";  // real, fake or symbolic; of level aten
  std::string format;             // text, table, code, json, dot, svg or html; by default from the file's name, or text
  std::string output;             // a file; by default, and with "-", standard output
  std::optional<size_t> depth;    // of svg and html: down to which modules are open
  std::string inputs;             // of a model folder: a safetensors file; by default made up
  std::string input_names;        // of a model folder, at level fx: instead of inputs
  std::string to_folder;          // of a model folder, at level fx: a Python package
  std::string model_class, dtype, attention;
  bool check = false;  // of a model folder, at level fx: run the graph beside the model
  bool explain = false;
  bool pytorch_guards = false;
  bool list = false;
};
void run_trace(const TraceOptions& options);
// A page with the graphs of two programs or models side by side.
void draw_diff(const DiffOptions& options);

// What bench and profile run (workload.h).
struct WorkloadOptions {
  std::string path;     // a model folder, an example's name, or a .pt2 file
  std::string program;  // which of several in the archive
  std::string inputs;   // a safetensors file, by names of arguments; by default made up, or those of the program
  std::string model_class, dtype, attention;
};
struct BenchOptions : WorkloadOptions {
  std::optional<size_t> runs;  // by default as many as two seconds take
  bool eager = false;
  bool json = false;
};
void run_bench(const BenchOptions& options);

struct ProfileOptions : WorkloadOptions {
  std::string output;  // a .json file, for Chrome and Perfetto, or a .html page; empty: none
  int runs = 10;
  size_t top = 15;     // rows of each table
  bool eager = false;  // a step for each node, as it is written
  bool json = false;
};
void run_profile(const ProfileOptions& options);

struct ReplayOptions {
  std::string path;     // a recording of compile()
  std::string backend;  // by default the one that failed
  bool json = false;
};
void run_replay(const ReplayOptions& options);

struct ModelsOptions {
  std::string architecture;  // empty: all
  bool json = false;
  bool markdown = false;
};
void run_models(const ModelsOptions& options);

}  // namespace calque::cli
