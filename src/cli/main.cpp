// The `calque` program: reads the command line and runs one command.
#include <CLI/CLI.hpp>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>

#include "calque/base/error.h"
#include "calque/base/version.h"
#include "calque/base/warning.h"
#include "cli/command.h"
#include "cli/memory.h"
#include "cli/output.h"
#include "cli/signals.h"
#include "cli/task_commands.h"

namespace calque::cli {
namespace {

constexpr const char* out_of_memory =
    "the command needs more memory than there is; take a smaller model, input or dtype, or raise --memory-limit if it is "
    "set";

void add_info(CLI::App& app) {
  auto o = std::make_shared<InfoOptions>();
  CLI::App* command =
      app.add_subcommand("info",
                         "What a model folder, a safetensors file, a .pt2 program or a checkpoint of torch.save holds: "
                         "classes, tensors, dtypes, parameters, bytes, FLOPs; inputs, outputs, symbols, operators");
  command->add_option("path", o->path, "a model folder or tiny-lm, or a .safetensors, .pt2, .pt or .bin file")->required();
  command->add_flag("--json", o->json, "for programs to read");
  command->callback([o] { run_info(*o); });
}

void add_run(CLI::App& app) {
  auto o = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand("run", "Runs a program on tensors from a safetensors file");
  command->add_option("program", o->path, "a .pt2 file")->required();
  command->add_option("--inputs", o->inputs,
                      "a .safetensors file with the program's inputs by name (calque info shows them)");
  command->add_option("--outputs", o->outputs, "a .safetensors file to write: outputs by path (0, a, b.0)");
  command->add_option("--model", o->model, "which of several programs in the archive");
  command->add_flag("--unchecked", o->unchecked, "do not check the inputs against what the program was exported for");
  command->callback([o] { run_program(*o); });
}

void add_forward(CLI::App& app) {
  auto o = std::make_shared<ForwardOptions>();
  CLI::App* command = app.add_subcommand("forward", "One forward pass of a model folder on tensors from a safetensors file");
  command->add_option("model", o->model, "a folder with config.json and weights, or tiny-lm")->required();
  command->add_option("--inputs", o->inputs, "a .safetensors file, tensors by the names of the forward's arguments");
  command
      ->add_option("-p,--prompt", o->prompts,
                   "instead of inputs: a text for the model's tokenizer (may be given several times)")
      ->allow_extra_args(false);
  command->add_option("--save-inputs", o->save_inputs, "a .safetensors file to write the inputs to");
  command->add_option("--outputs", o->outputs,
                      "a .safetensors file to write, tensors by the names of the output's fields (logits, hidden_states.0)");
  command->add_option("--class", o->model_class, "the model class; by default the first that config.json names");
  command->add_option("--attention", o->attention, "eager or sdpa")->check(CLI::IsMember({"eager", "sdpa"}));
  command->add_option("--dtype", o->dtype, "compute in float32, bfloat16 or float16; by default as the weights are")
      ->check(CLI::IsMember({"auto", "float32", "bfloat16", "float16"}));
  command->add_flag("--train", o->train, "in training mode");
  command->add_flag("--json", o->json, "for programs to read: each output's dtype, shape and values");
  command->callback([o] { run_forward(*o); });
}

void add_generate(CLI::App& app) {
  auto o = std::make_shared<GenerateCommandOptions>();
  CLI::App* command = app.add_subcommand("generate", "Text that goes on from a prompt, shown as it comes");
  command->add_option("model", o->model, "a folder with config.json, weights and tokenizer.json, or tiny-lm")->required();
  command->add_option("-p,--prompt", o->prompt, "the prompt; - reads standard input");
  command
      ->add_option("-n,--max-new-tokens", o->max_new_tokens,
                   "at most this many; by default what the model's generation_config.json says, or 128")
      ->check(CLI::PositiveNumber);
  command->add_flag("--greedy", o->greedy, "always the likeliest token, whatever generation_config.json says");
  command->add_option("--temperature", o->temperature, "sample, with the scores divided by this");
  command->add_option("--top-k", o->top_k, "sample among this many");
  command->add_option("--top-p", o->top_p, "sample among the likeliest that add up to this");
  command->add_option("--min-p", o->min_p, "sample among those at least this likely, beside the likeliest");
  command->add_option("--repetition-penalty", o->repetition_penalty, "above 1: tokens that have been are less likely");
  command->add_option("--num-beams", o->num_beams, "beam search with this many")->check(CLI::PositiveNumber);
  command->add_option("--assistant", o->assistant, "a smaller model with the same tokenizer, which proposes tokens");
  command
      ->add_option("--prompt-lookup", o->prompt_lookup, "propose up to this many tokens that followed the last ones before")
      ->check(CLI::PositiveNumber);
  command->add_option("--seed", o->seed, "sample, the same text each time");
  command->add_option("--stop", o->stop, "stop when this text has come (may be given several times)")
      ->allow_extra_args(false);
  command->add_option("--set", o->set, "KEY=VALUE: any other setting of generation_config.json, the value as JSON")
      ->allow_extra_args(false);
  command->add_option("--class", o->model_class, "the model class; by default the first that config.json names");
  command->add_option("--dtype", o->dtype, "compute in float32, bfloat16 or float16; by default as the weights are")
      ->check(CLI::IsMember({"auto", "float32", "bfloat16", "float16"}));
  command->add_flag("--no-prompt", o->no_prompt, "without the prompt");
  command->add_flag("--stats", o->stats, "tokens a second, on standard error");
  command->add_flag("--json", o->json, "for programs to read: text, ids and times");
  command->callback([o] { run_generate(*o); });
}

void add_save(CLI::App& app) {
  auto o = std::make_shared<SaveCommandOptions>();
  CLI::App* command = app.add_subcommand("save", "A model folder written anew: another dtype, other shards, another format");
  command->add_option("model", o->model, "a folder with config.json and weights, or tiny-lm")->required();
  command->add_option("-o,--output", o->output, "the folder to write; one that is there is exchanged whole")->required();
  command->add_option("--dtype", o->dtype, "of the weights: float32, bfloat16 or float16; by default as they are")
      ->check(CLI::IsMember({"auto", "float32", "bfloat16", "float16"}));
  command->add_option("--max-shard-size", o->max_shard_size, "5GB, 200MiB: more than this is several files with an index");
  command->add_option("--format", o->format, "safetensors or bin (torch.save's)")
      ->check(CLI::IsMember({"safetensors", "bin"}))
      ->capture_default_str();
  command->add_option("--variant", o->variant, "fp16: model.fp16.safetensors");
  command->add_option("--class", o->model_class, "the model class; by default the first that config.json names");
  command->callback([o] { run_save(*o); });
}

void add_export(CLI::App& app) {
  auto o = std::make_shared<ExportCommandOptions>();
  CLI::App* command = app.add_subcommand(
      "export",
      "A .pt2 program of a model folder, of a built-in example, or of another program with other sizes or decomposed");
  command
      ->add_option("model", o->model, "a model folder or tiny-lm, an example's name (calque trace --list), or a .pt2 file")
      ->required();
  command->add_option("-o,--output", o->output, "the .pt2 file to write")->required();
  command->add_option("--inputs", o->inputs, "a .safetensors file with example inputs by argument name");
  command
      ->add_option("--dynamic", o->dynamic,
                   "NAME=D,D...: what may differ of an argument's sizes; D is *, a number, name, name:MIN..MAX, or 2*name+1")
      ->allow_extra_args(false);
  command->add_flag("--static", o->static_sizes,
                    "of a model folder: all sizes as the inputs have them; without --dynamic batch and lengths may differ");
  command->add_flag("--cache", o->cache,
                    "of a model folder: keys and values among the outputs, where the config asks for them");
  command->add_option("--class", o->model_class,
                      "of a model folder: the class; by default the first that config.json names");
  command->add_option("--dtype", o->dtype, "of a model folder: float32, bfloat16 or float16; by default as the weights are")
      ->check(CLI::IsMember({"auto", "float32", "bfloat16", "float16"}));
  command->add_option("--attention", o->attention, "of a model folder: eager or sdpa")
      ->check(CLI::IsMember({"eager", "sdpa"}));
  command->add_flag("--strict", o->strict, "the form of PyTorch's strict export: the state that is used, each tensor once");
  command->add_flag("--decompose", o->decompose, "to the functional core-ATen form");
  command->add_flag("--apply-fixes", o->apply_fixes,
                    "change the dynamic sizes as a constraint violation suggests, and try again");
  command->add_flag("--print", o->print, "print the program as PyTorch does");
  command->callback([o] { run_export(*o); });
}

void add_diff(CLI::App& app) {
  auto o = std::make_shared<DiffOptions>();
  CLI::App* command = app.add_subcommand("diff",
                                         "Are two safetensors files, two model folders or two .pt2 programs the same? Exit "
                                         "status 0: same, 1: different, 2: bad input");
  command->add_option("a", o->a, "a .safetensors or .pt2 file or a model folder: what is expected")->required();
  command->add_option("b", o->b, "a .safetensors or .pt2 file or a model folder: what is judged")->required();
  command->add_option("--tol", o->same.tol, "absolute and relative tolerance")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_option("--reference", o->reference, "the same tensors in float64: B may be about as far from it as A is");
  command->add_flag("--cosine", o->same.cosine, "compare by cosine similarity, at least 0.99");
  command->add_flag("--equal-nan", o->same.equal_nan, "NaN equals NaN");
  command->add_flag("--ignore-non-float", o->same.ignore_non_float, "integers and booleans are the same whatever they hold");
  command->add_flag("--any-dtype", o->any_dtype, "cast A's tensors to B's dtypes instead of asking for equal ones");
  command->add_flag("--larger-multiplier", o->same.larger_multiplier_for_small,
                    "with a reference: up to 10 (8) times A's error for tensors of up to 10 (500) elements");
  command->add_flag("--max-multiplier", o->same.max_multiplier,
                    "with a reference: up to 10 times A's error for all tensors");
  CLI::Option* iou = command->add_option("--iou", o->iou, "booleans agree when intersection over union is at least this")
                         ->check(CLI::Range(0.0, 1.0));
  command->add_option("--worst", o->worst, "rows of the table")->capture_default_str();
  command->add_option("-o,--output", o->output, "of programs and models: a .html page with both graphs side by side");
  command->add_flag("--json", o->json, "for programs to read, all tensors");
  command->callback([o, iou] {
    o->same.exact_dtype = !o->any_dtype;
    if (iou->count() > 0) o->same.bool_iou = o->iou;
    run_diff(*o);
  });
}

void add_trace(CLI::App& app) {
  auto o = std::make_shared<TraceOptions>();
  CLI::App* command = app.add_subcommand(
      "trace", "The graph of a model folder, a program or a built-in example, and why it holds for which sizes");
  command->add_option("model", o->model, "a model folder or tiny-lm, a .pt2 file, or an example's name (--list shows them)");
  command->add_option("--inputs", o->inputs, "of a model folder: a .safetensors file with example inputs by argument name");
  command->add_option("--class", o->model_class,
                      "of a model folder: the class; by default the first that config.json names");
  command->add_option("--attention", o->attention, "of a model folder: eager or sdpa")
      ->check(CLI::IsMember({"eager", "sdpa"}));
  command->add_flag("--list", o->list, "the examples");
  command->add_option("--level", o->level, "aten: operators; fx: what was written")
      ->check(CLI::IsMember({"aten", "fx"}))
      ->capture_default_str();
  command->add_option("--mode", o->mode, "what to trace with, at level aten")
      ->check(CLI::IsMember({"real", "fake", "symbolic"}))
      ->capture_default_str();
  command->add_option("--format", o->format, "by default what the output's name says, or text")
      ->check(CLI::IsMember({"text", "table", "code", "json", "dot", "svg", "html"}));
  command->add_option("-o,--output", o->output,
                      "a .txt, .py, .json, .dot, .svg or .html file to write, or - for standard output");
  command->add_option("--depth", o->depth,
                      "of svg and html: how deep modules are open; by default as a readable size allows");
  command->add_flag("--explain", o->explain, "every symbol, guard and specialisation, with its operator, line and reason");
  command->add_flag("--pytorch-guards", o->pytorch_guards,
                    "ask of sizes also what PyTorch asks and the graph does not need, for comparison");
  command->callback([o] { run_trace(*o); });
}

// An option that is given has a value: an empty one is a mistake (an unset variable of a script), not a wish for the default.
// Prompts may be empty.
void refuse_empty_names(CLI::App& app) {
  const auto wrong = [](std::string& text) { return text.empty() ? "expected a name, found an empty one" : ""; };
  const CLI::Validator not_empty(wrong, "");
  for (CLI::App* command : app.get_subcommands({}))
    for (CLI::Option* option : command->get_options())
      if (option->get_type_name() == "TEXT" && !option->check_lname("prompt")) option->check(not_empty);
}

// Reads the command line and runs the command. What it throws is the caller's.
int run_command(int argc, char** argv) {
  CLI::App app{"Calque traces, exports and runs PyTorch and Hugging Face models."};
  app.set_version_flag("--version", "calque " + std::string(version()));
  app.require_subcommand(0, 1);
  app.fallthrough();  // --memory-limit may stand behind the command
  std::string memory_limit;
  app.add_option("--memory-limit", memory_limit, "the most memory that a command may use for tensors: 8G, 500MB")
      ->envname("CALQUE_MEMORY_LIMIT");
  unsigned time_limit = 0;
  app.add_option("--time-limit", time_limit, "the most seconds that a command may take; 0 is no limit");
  app.parse_complete_callback([&] {  // before the command runs
    apply_memory_limit(memory_limit);
    limit_time(time_limit);
  });
  add_info(app);
  add_run(app);
  add_forward(app);
  add_generate(app);
  add_save(app);
  add_export(app);
  add_diff(app);
  add_trace(app);
  add_task_commands(app);
  refuse_empty_names(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const ExitStatus& exit) {
    return exit.status;
  }
  return 0;
}

// The status of what was thrown, after a message. What the user or the system can mend is 2; what only we can is 3.
int status_of_failure() {
  try {
    throw;
  } catch (const ExitStatus& exit) {
    return exit.status;
  } catch (const UserError& error) {
    say(error.what());
    return 2;
  } catch (const std::filesystem::filesystem_error& error) {
    say(error.path1().string() + ": " + error.code().message());
    return 2;
  } catch (const std::system_error& error) {  // of printing, or of a thread that the system does not give
    if (!std::ferror(stdout))
      say(error.what());
    else if (error.code() != std::errc::broken_pipe)
      say("cannot write standard output: " + error.code().message());
    return 2;
  } catch (const std::bad_alloc&) {
    say(out_of_memory);
    return 2;
  } catch (const std::length_error&) {  // more elements than a container can ever have
    say(out_of_memory);
    return 2;
  } catch (const std::exception& error) {
    say(error.what());
    return 3;
  }
}

}  // namespace
}  // namespace calque::cli

int main(int argc, char** argv) {
  using namespace calque::cli;
  try {
    occupy_standard_descriptors();
    end_cleanly_on_signals();
    calque::set_warning_sink([](std::string_view message) { say("warning: " + std::string(message)); });
    const int status = run_command(argc, argv);
    flush_output();
    return status;
  } catch (...) {
    return status_of_failure();
  }
}
