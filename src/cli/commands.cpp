// The commands of the program and their options: how they are written, grouped as people look for them.
#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/options.h"

namespace calque::cli {
namespace {

constexpr const char* look_group = "Look at models and files, and write them anew";
constexpr const char* capture_group = "Trace, export and run programs";

void add_info(CLI::App& app) {
  auto o = std::make_shared<InfoOptions>();
  CLI::App* command =
      app.add_subcommand("info",
                         "What a model folder, a safetensors file, a .pt2 program or a checkpoint of torch.save holds: "
                         "classes, tensors, dtypes, parameters, bytes, FLOPs; inputs, outputs, symbols, operators");
  command->group(look_group);
  command->add_option("path", o->path, "a model folder or tiny-lm, or a .safetensors, .pt2, .pt or .bin file")->required();
  add_dtype(command, o->dtype, "of a model folder: what it is in this; by default as the weights are");
  add_json(command, o->json);
  command->callback([o] { run_info(*o); });
}

void add_run(CLI::App& app) {
  auto o = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand("run", "Runs a program on tensors from a safetensors file");
  command->group(capture_group);
  command->add_option("program", o->path, "a .pt2 file")->required();
  command->add_option("--inputs", o->inputs,
                      "a .safetensors, .npz or .npy file with the program's inputs by name (calque info shows them)");
  command->add_option("--outputs", o->outputs, "a .safetensors, .npz or .npy file to write: outputs by path (0, a, b.0)");
  command->add_option("--model", o->model, "which of several programs in the archive");
  command->add_flag("--unchecked", o->unchecked, "do not check the inputs against what the program was exported for");
  CLI::Option* eager = command->add_flag("--eager", o->eager, "node by node, without a plan");
  command
      ->add_flag("--check", o->check, "compare each step of the plan with the interpreter; exit status 1 where one differs")
      ->excludes(eager);
  add_json(command, o->json, "for programs to read: each output's dtype, shape and, up to 1,000 elements, values");
  command->callback([o] { run_program(*o); });
}

void add_forward(CLI::App& app) {
  auto o = std::make_shared<ForwardOptions>();
  CLI::App* command = app.add_subcommand("forward", "One forward pass of a model folder on tensors from a safetensors file");
  command->group(use_group);
  command->add_option("model", o->model, "a model folder, tiny-lm, or ORG/NAME[@REVISION] in the hub's cache")->required();
  command->add_option("--inputs", o->inputs, "a .safetensors or .npz file, tensors by the names of the forward's arguments");
  command
      ->add_option("-p,--prompt", o->prompts,
                   "instead of inputs: a text for the model's tokenizer (may be given several times)")
      ->allow_extra_args(false);
  command->add_option("--save-inputs", o->save_inputs, "a .safetensors file to write the inputs to");
  command->add_option(
      "--outputs", o->outputs,
      "a .safetensors or .npz file to write, tensors by the names of the output's fields (logits, hidden_states.0)");
  add_class(command, o->model_class);
  add_attention(command, o->attention);
  add_dtype(command, o->dtype, "compute in this; by default as the weights are");
  command->add_flag("--train", o->train, "in training mode");
  add_json(command, o->json, "for programs to read: each output's dtype, shape and values");
  command->callback([o] { run_forward(*o); });
}

void add_generate(CLI::App& app) {
  auto o = std::make_shared<GenerateCommandOptions>();
  CLI::App* command = app.add_subcommand("generate", "Text that goes on from a prompt, shown as it comes");
  command->group(use_group);
  command
      ->add_option("model", o->model,
                   "a model folder with tokenizer.json, tiny-lm, or ORG/NAME[@REVISION] in the hub's cache")
      ->required();
  command->add_option("-p,--prompt", o->prompt, "the prompt; without it, or as -, standard input where that is no terminal");
  add_writing(command, o->writing, "at most this many; by default what the model's generation_config.json says, or 128");
  command->add_option("--repetition-penalty", o->repetition_penalty, "above 1: tokens that have been are less likely");
  command->add_option("--assistant", o->assistant, "a smaller model with the same tokenizer, which proposes tokens");
  command
      ->add_option("--prompt-lookup", o->prompt_lookup, "propose up to this many tokens that followed the last ones before")
      ->check(positive());
  command->add_option("--stop", o->stop, "stop when this text has come (may be given several times)")
      ->allow_extra_args(false);
  add_class(command, o->model_class);
  add_dtype(command, o->dtype, "compute in this; by default as the weights are");
  command->add_flag("--no-prompt", o->no_prompt, "without the prompt");
  command->add_flag("--stats", o->stats, "tokens a second, on standard error");
  command->add_flag("--json", o->json, "for programs to read: text, ids and times");
  command->callback([o] { run_generate(*o); });
}

void add_save(CLI::App& app) {
  auto o = std::make_shared<SaveCommandOptions>();
  CLI::App* command = app.add_subcommand("save", "A model folder written anew: another dtype, other shards, another format");
  command->group(look_group);
  command->add_option("model", o->model, "a model folder, tiny-lm, or ORG/NAME[@REVISION] in the hub's cache")->required();
  command->add_option("-o,--output", o->output, "the folder to write; one that is there is exchanged whole")->required();
  add_dtype(command, o->dtype, "of the weights that are written; by default as they are");
  command->add_option("--max-shard-size", o->max_shard_size, "5GB, 200MiB: more than this is several files with an index");
  command->add_flag("--merge", o->merge,
                    "of a model with an adapter: the whole model with the adapter in its weights; else the adapter alone");
  command->add_option("--format", o->format, "safetensors or bin (torch.save's)")
      ->check(one_of({"safetensors", "bin"}))
      ->capture_default_str();
  command->add_option("--variant", o->variant, "of the weights that are written: fp16 for model.fp16.safetensors");
  command->add_option("--from-variant", o->from_variant, "of the weights that are read");
  add_class(command, o->model_class);
  add_json(command, o->json, "for programs to read: the files and their bytes");
  command->callback([o] { run_save(*o); });
}

// What export and compile make a program of.
// `name`: of the argument; a command with an option --model calls it otherwise, as newer releases of CLI11 ask.
void add_source(CLI::App& command, ExportCommandOptions& o, const char* name) {
  command.group(capture_group);
  command.add_option(name, o.model, "a model folder or tiny-lm, an example's name (calque trace --list), or a .pt2 file")
      ->required();
  command.add_option("--inputs", o.inputs, "a .safetensors file with example inputs by argument name");
  command
      .add_option("--dynamic", o.dynamic,
                  "NAME=D,D...: what may differ of an argument's sizes; D is *, a number, name, name:MIN..MAX, or 2*name+1")
      ->allow_extra_args(false);
  command.add_flag("--static", o.static_sizes,
                   "of a model folder: all sizes as the inputs have them; without --dynamic batch and lengths may differ");
  add_class(&command, o.model_class);
  add_dtype(&command, o.dtype, "of a model folder; by default as the weights are");
  add_attention(&command, o.attention);
}

void add_compile(CLI::App& app) {
  auto o = std::make_shared<CompileCommandOptions>();
  CLI::App* command = app.add_subcommand(
      "compile", "A program with the packed weights of its plan beside it: its first call is as fast as the others");
  add_source(*command, *o, "path");
  command->add_option("-o,--output", o->output, "the .pt2 file to write; PyTorch opens it too")->required();
  command->add_option("--model", o->program, "which of several programs in an archive");
  add_json(command, o->json, "for programs to read: nodes, tensors, bytes, inputs, which sizes may vary, packed weights");
  command->callback([o] { run_compile(*o); });
}

void add_replay(CLI::App& app) {
  auto o = std::make_shared<ReplayOptions>();
  CLI::App* command = app.add_subcommand(
      "replay", "A graph that compile() failed on, as CALQUE_RECORD=FOLDER kept it, given to its backend again");
  command->group(capture_group);
  command->add_option("recording", o->path, "a recording_N.json")->required();
  command->add_option("--backend", o->backend, "calque, eager or aot_eager; by default the one that failed");
  add_json(command, o->json);
  command->callback([o] { run_replay(*o); });
}

void add_export(CLI::App& app) {
  auto o = std::make_shared<ExportCommandOptions>();
  CLI::App* command = app.add_subcommand(
      "export",
      "A .pt2 program of a model folder, of a built-in example, or of another program with other sizes or decomposed");
  add_source(*command, *o, "model");
  command->add_option("-o,--output", o->output, "the .pt2 file to write; - is standard output")->required();
  command->add_flag("--cache", o->cache,
                    "of a model folder: keys and values among the outputs, where the config asks for them");
  command->add_flag("--strict", o->strict, "the form of PyTorch's strict export: the state that is used, each tensor once");
  command->add_flag("--decompose", o->decompose, "to the functional core-ATen form");
  command->add_option("--backward", o->loss,
                      "with the backward pass of this output (a number), the loss; implies --decompose");
  command->add_flag("--apply-fixes", o->apply_fixes,
                    "change the dynamic sizes as a constraint violation suggests, and try again");
  command->add_flag("--print", o->print, "print the program as PyTorch does");
  add_json(command, o->json, "for programs to read: nodes, tensors, bytes, inputs, and which sizes may vary");
  command->callback([o] { run_export(*o); });
}

void add_diff(CLI::App& app) {
  auto o = std::make_shared<DiffOptions>();
  CLI::App* command = app.add_subcommand("diff",
                                         "Are two safetensors files, two model folders or two .pt2 programs the same? Exit "
                                         "status 0: same, 1: different, 2: bad input");
  command->group(look_group);
  command->add_option("a", o->a, "a .safetensors or .pt2 file or a model folder: what is expected")->required();
  command->add_option("b", o->b, "a .safetensors or .pt2 file or a model folder: what is judged")->required();
  command->add_option("--tol", o->same.tol, "absolute and relative tolerance")->check(not_negative())->capture_default_str();
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
                         ->check(between(0, 1));
  command->add_option("--worst", o->worst, "rows of the table")->capture_default_str();
  add_class(command, o->model_class);
  add_dtype(command, o->dtype, "of model folders: both are read in this; by default as the weights are");
  command->add_option("-o,--output", o->output, "of programs and models: a .html page with both graphs side by side");
  add_json(command, o->json, "for programs to read, all tensors");
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
  command->group(capture_group);
  command->add_option("model", o->model, "a model folder or tiny-lm, a .pt2 file, or an example's name (--list shows them)");
  command->add_option("--inputs", o->inputs, "of a model folder: a .safetensors file with example inputs by argument name");
  add_class(command, o->model_class);
  add_dtype(command, o->dtype, "of a model folder; by default as the weights are");
  add_attention(command, o->attention);
  command->add_flag("--list", o->list, "the examples");
  command->add_option("--level", o->level, "aten: operators; fx: what was written")
      ->check(one_of({"aten", "fx"}))
      ->capture_default_str();
  command->add_option("--input-names,--inputs-names", o->input_names,
                      "of a model folder, at level fx: what the graph takes, as input_ids,attention_mask,labels");
  command->add_flag(
      "--check", o->check,
      "of a model folder, at level fx: run the graph beside the model at other sizes; exit status 1 when they differ");
  command->add_option("--to-folder", o->to_folder,
                      "of a model folder, at level fx: a Python package with the graph, which PyTorch runs");
  command->add_option("--mode", o->mode, "what to trace with, at level aten")
      ->check(one_of({"real", "fake", "symbolic"}))
      ->capture_default_str();
  command->add_option("--format", o->format, "by default what the output's name says, or text")
      ->check(one_of({"text", "table", "code", "json", "dot", "svg", "html"}));
  command->add_option("-o,--output", o->output,
                      "a .txt, .py, .json, .dot, .svg or .html file to write, or - for standard output");
  command->add_option("--depth", o->depth,
                      "of svg and html: how deep modules are open; by default as a readable size allows");
  command->add_flag("--explain", o->explain, "every symbol, guard and specialisation, with its operator, line and reason");
  command->add_flag("--pytorch-guards", o->pytorch_guards,
                    "ask of sizes also what PyTorch asks and the graph does not need, for comparison");
  command->add_flag_callback(
      "--json", [o] { o->format = "json"; }, "for programs to read: the same as --format json");
  command->callback([o] { run_trace(*o); });
}

void add_workload(CLI::App* command, WorkloadOptions& o) {
  command->add_option("path", o.path, "a model folder or tiny-lm, an example's name (calque trace --list), or a .pt2 file")
      ->required();
  command->add_option(
      "--inputs", o.inputs,
      "a .safetensors, .npz or .npy file with inputs by argument name; by default made up, or the program's own");
  command->add_option("--model", o.program, "of a .pt2 file: which of several programs in it");
  add_class(command, o.model_class);
  add_dtype(command, o.dtype, "of a model folder; by default as the weights are");
  add_attention(command, o.attention);
}

void add_bench(CLI::App& app) {
  auto o = std::make_shared<BenchOptions>();
  CLI::App* command = app.add_subcommand("bench", "How long a program, or one forward pass of a model, takes");
  command->group(capture_group);
  add_workload(command, *o);
  command->add_option("-n,--runs", o->runs, "how often it runs; by default for two seconds")->check(positive());
  command->add_flag("--eager", o->eager, "operator by operator, without a plan");
  add_json(command, o->json);
  command->callback([o] { run_bench(*o); });
}

void add_profile(CLI::App& app) {
  auto o = std::make_shared<ProfileOptions>();
  CLI::App* command = app.add_subcommand(
      "profile", "Where the time of a program, or of one forward pass of a model, goes: by operator and by module");
  command->group(capture_group);
  add_workload(command, *o);
  command->add_option("-n,--runs", o->runs, "how often it runs; times are medians")
      ->check(positive())
      ->capture_default_str();
  command->add_option("--top", o->top, "rows of each table")->check(positive())->capture_default_str();
  command->add_option("-o,--output", o->output, "a .json file, which chrome://tracing and Perfetto open, or a .html page");
  command->add_flag("--eager", o->eager, "operator by operator, as the program has them, without the passes of a plan");
  add_json(command, o->json, "for programs to read, all steps");
  command->callback([o] { run_profile(*o); });
}

void add_models(CLI::App& app) {
  auto o = std::make_shared<ModelsOptions>();
  CLI::App* command =
      app.add_subcommand("models", "The architectures and classes that Calque has, and what each class does");
  command->group(look_group);
  command->add_option("architecture", o->architecture, "one of them alone");
  add_json(command, o->json);
  command->add_flag("--markdown", o->markdown, "as docs/models.md has it");
  command->callback([o] { run_models(*o); });
}

}  // namespace

void add_commands(CLI::App& app) {
  add_generate(app);
  add_forward(app);
  add_info(app);
  add_models(app);
  add_diff(app);
  add_save(app);
  add_trace(app);
  add_export(app);
  add_compile(app);
  add_run(app);
  add_bench(app);
  add_profile(app);
  add_replay(app);
}

}  // namespace calque::cli
