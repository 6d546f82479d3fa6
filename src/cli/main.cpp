// The `calque` program: reads the command line and runs one command.
#include <CLI/CLI.hpp>

#include <cstdio>
#include <exception>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "calque/base/error.h"
#include "calque/base/version.h"
#include "cli/command.h"

namespace calque::cli {
namespace {

void add_info(CLI::App& app) {
  auto o = std::make_shared<InfoOptions>();
  CLI::App* command = app.add_subcommand("info", "What a safetensors file, a .pt2 program or a checkpoint of torch.save holds: tensors, dtypes, shapes, bytes; inputs, outputs, symbols, operators");
  command->add_option("path", o->path, "a .safetensors, .pt2, .pt or .bin file")->required();
  command->add_flag("--json", o->json, "for programs to read");
  command->callback([o] { run_info(*o); });
}

void add_run(CLI::App& app) {
  auto o = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand("run", "Runs a program on tensors from a safetensors file");
  command->add_option("program", o->path, "a .pt2 file")->required();
  command->add_option("--inputs", o->inputs, "a .safetensors file with the program's inputs by name (calque info shows them)");
  command->add_option("--outputs", o->outputs, "a .safetensors file to write: outputs by path (0, a, b.0)");
  command->add_option("--model", o->model, "which of several programs in the archive");
  command->add_flag("--unchecked", o->unchecked, "do not check the inputs against what the program was exported for");
  command->callback([o] { run_program(*o); });
}

void add_forward(CLI::App& app) {
  auto o = std::make_shared<ForwardOptions>();
  CLI::App* command = app.add_subcommand("forward", "One forward pass of a model folder on tensors from a safetensors file");
  command->add_option("model", o->model, "a folder with config.json and weights")->required();
  command->add_option("--inputs", o->inputs, "a .safetensors file, tensors by the names of the forward's arguments")->required();
  command->add_option("--outputs", o->outputs, "a .safetensors file to write, tensors by the names of the output's fields (logits, hidden_states.0)");
  command->add_option("--class", o->model_class, "the model class; by default the first that config.json names");
  command->add_option("--attention", o->attention, "eager or sdpa")->check(CLI::IsMember({"eager", "sdpa"}));
  command->add_flag("--train", o->train, "in training mode");
  command->callback([o] { run_forward(*o); });
}

void add_export(CLI::App& app) {
  auto o = std::make_shared<ExportCommandOptions>();
  CLI::App* command = app.add_subcommand("export", "A .pt2 program of a built-in example, or of another program with other sizes or decomposed");
  command->add_option("model", o->model, "an example's name (calque trace --list), or a .pt2 file")->required();
  command->add_option("-o,--output", o->output, "the .pt2 file to write")->required();
  command->add_option("--inputs", o->inputs, "a .safetensors file with example inputs by argument name");
  command->add_option("--dynamic", o->dynamic, "NAME=D,D...: what may differ of an argument's sizes; D is *, a number, name, name:MIN..MAX, or 2*name+1")->allow_extra_args(false);
  command->add_flag("--strict", o->strict, "capture the program as written first, and refuse what that cannot promise");
  command->add_flag("--decompose", o->decompose, "to the functional core-ATen form");
  command->add_flag("--apply-fixes", o->apply_fixes, "change the dynamic sizes as a constraint violation suggests, and try again");
  command->add_flag("--print", o->print, "print the program as PyTorch does");
  command->callback([o] { run_export(*o); });
}

void add_diff(CLI::App& app) {
  auto o = std::make_shared<DiffOptions>();
  CLI::App* command = app.add_subcommand("diff", "Are two safetensors files, or two .pt2 programs, the same? Exit status 0: same, 1: different, 2: bad input");
  command->add_option("a", o->a, "a .safetensors or .pt2 file: what is expected")->required();
  command->add_option("b", o->b, "a .safetensors or .pt2 file: what is judged")->required();
  command->add_option("--tol", o->same.tol, "absolute and relative tolerance")->check(CLI::NonNegativeNumber)->capture_default_str();
  command->add_option("--reference", o->reference, "the same tensors in float64: B may be about as far from it as A is");
  command->add_flag("--cosine", o->same.cosine, "compare by cosine similarity, at least 0.99");
  command->add_flag("--equal-nan", o->same.equal_nan, "NaN equals NaN");
  command->add_flag("--ignore-non-float", o->same.ignore_non_float, "integers and booleans are the same whatever they hold");
  command->add_flag("--any-dtype", o->any_dtype, "cast A's tensors to B's dtypes instead of asking for equal ones");
  command->add_flag("--larger-multiplier", o->same.larger_multiplier_for_small, "with a reference: up to 10 (8) times A's error for tensors of up to 10 (500) elements");
  command->add_flag("--max-multiplier", o->same.max_multiplier, "with a reference: up to 10 times A's error for all tensors");
  CLI::Option* iou = command->add_option("--iou", o->iou, "booleans agree when intersection over union is at least this")->check(CLI::Range(0.0, 1.0));
  command->add_option("--worst", o->worst, "rows of the table")->capture_default_str();
  command->add_flag("--json", o->json, "for programs to read, all tensors");
  command->callback([o, iou] {
    o->same.exact_dtype = !o->any_dtype;
    if (iou->count() > 0) o->same.bool_iou = o->iou;
    run_diff(*o);
  });
}

void add_trace(CLI::App& app) {
  auto o = std::make_shared<TraceOptions>();
  CLI::App* command = app.add_subcommand("trace", "The graph of a built-in example module, and why it holds for which sizes");
  command->add_option("model", o->model, "an example's name (--list shows them)");
  command->add_flag("--list", o->list, "the examples");
  command->add_option("--level", o->level, "aten: operators; fx: what was written")->check(CLI::IsMember({"aten", "fx"}))->capture_default_str();
  command->add_option("--mode", o->mode, "what to trace with, at level aten")->check(CLI::IsMember({"real", "fake", "symbolic"}))->capture_default_str();
  command->add_option("--format", o->format, "by default what the output's name says, or text")->check(CLI::IsMember({"text", "table", "code", "json", "dot", "html"}));
  command->add_option("-o,--output", o->output, "a file to write instead of standard output");
  command->add_flag("--explain", o->explain, "every symbol, guard and specialisation, with its operator, line and reason");
  command->callback([o] { run_trace(*o); });
}

}  // namespace
}  // namespace calque::cli

int main(int argc, char** argv) {
  CLI::App app{"Calque traces, exports and runs PyTorch and Hugging Face models."};
  app.set_version_flag("--version", "calque " + std::string(calque::version()));
  app.require_subcommand(0, 1);
  calque::cli::add_info(app);
  calque::cli::add_run(app);
  calque::cli::add_forward(app);
  calque::cli::add_export(app);
  calque::cli::add_diff(app);
  calque::cli::add_trace(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const calque::cli::ExitStatus& exit) {
    return exit.status;
  } catch (const calque::UserError& error) {
    fmt::print(stderr, "calque: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "calque: {}\n", error.what());
    return 3;
  }
  return 0;
}
