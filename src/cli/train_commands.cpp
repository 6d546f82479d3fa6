// The options of calque train and calque grad on the command line.
#include <memory>

#include "calque/train/schedule.h"
#include "cli/options.h"
#include "cli/train.h"

namespace calque::cli {
namespace {

constexpr const char* train_group = "Train";

void add_training_options(CLI::App* command, TrainCommandOptions& o) {
  command->add_option("--task", o.task, "by default what the model's class is for")
      ->check(one_of({"causal-lm", "masked-lm", "seq2seq-lm", "classification"}));
  command->add_option("--steps", o.steps, "steps of the optimizer")->check(positive())->capture_default_str();
  command->add_option("--batch-size", o.batch_size, "texts in a batch")->check(between(1, 65536))->capture_default_str();
  command->add_option("--accumulate", o.accumulate, "batches in a step")->check(positive())->capture_default_str();
  command->add_option("--max-length", o.max_length, "tokens of an example; by default as many as the model reads")
      ->check(positive());
  command->add_option("--optimizer", o.optimizer, "what moves the weights")
      ->check(one_of(optimizer_names()))
      ->capture_default_str();
  command->add_option("--lr", o.lr, "learning rate")->check(not_negative())->capture_default_str();
  command->add_option("--schedule", o.schedule, "how the learning rate changes")
      ->check(one_of(scheduler_names()))
      ->capture_default_str();
  command->add_option("--warmup", o.warmup, "steps in which the learning rate rises from 0")
      ->check(not_negative())
      ->capture_default_str();
  command->add_option("--weight-decay", o.weight_decay, "of matrices; biases and norms do not decay")
      ->check(not_negative())
      ->capture_default_str();
  command->add_option("--max-grad-norm", o.max_grad_norm, "gradients are scaled down to this norm; 0: never")
      ->check(not_negative())
      ->capture_default_str();
  command->add_flag("--bf16", o.bfloat16, "the forward pass under bfloat16 autocast; weights stay as they are");
  command->add_option("--seed", o.seed, "of the order of texts, of masks and of dropout")->capture_default_str();
}

void add_train(CLI::App& app) {
  auto o = std::make_shared<TrainCommandOptions>();
  CLI::App* command =
      app.add_subcommand("train", "A model trained further on texts, with checkpoints from which it goes on");
  command->group(train_group);
  command->add_option("model", o->model, "a model folder, tiny-lm, or ORG/NAME[@REVISION] in the hub's cache")->required();
  command
      ->add_option(
          "--data", o->data,
          "a .txt (a text a line), .jsonl or .csv file: text; text and label; source and target; prompt and completion")
      ->required();
  command->add_option("-o,--output", o->output, "a folder for the model, its checkpoints and loss.svg")->required();
  command->add_option(
      "--lora", o->lora,
      "train a LoRA adapter alone, which is what the folder holds then: r=8,alpha=16,targets=q_proj+v_proj; of r, alpha, "
      "dropout, targets, exclude, save, bias, dora, rslora each may be left out");
  command->add_option("--eval-data", o->eval_data, "texts to evaluate on, at the end and with --eval-every");
  add_training_options(command, *o);
  command->add_option("--eval-every", o->eval_every, "steps from one evaluation to the next")->check(positive());
  command->add_option("--save-every", o->save_every, "steps from one checkpoint to the next; Ctrl-C writes one too")
      ->check(positive());
  command->add_option("--log-every", o->log_every, "steps from one line to the next")
      ->check(positive())
      ->capture_default_str();
  command->add_option("--curve", o->curve, "a .svg file for the loss over the steps; by default loss.svg in the folder");
  command->add_flag("--resume", o->resume, "go on from the last checkpoint in the folder, with the same bits");
  add_class(command, o->model_class);
  add_dtype(command, o->dtype, "of the weights; by default float32, and at the end as they were");
  add_attention(command, o->attention);
  add_json(command, o->json, "for programs to read: a JSON document a step, on a line of its own");
  command->callback([o] { run_train(*o); });
}

void add_grad(CLI::App& app) {
  auto o = std::make_shared<GradCommandOptions>();
  CLI::App* command =
      app.add_subcommand("grad", "The loss of a model for inputs with labels, and its gradient for each parameter");
  command->group(train_group);
  command->add_option("model", o->model, "a model folder, tiny-lm, or ORG/NAME[@REVISION] in the hub's cache")->required();
  command
      ->add_option("--inputs", o->inputs,
                   "a .safetensors or .npz file, tensors by the names of the forward's arguments, labels too")
      ->required();
  command->add_option("--outputs", o->outputs,
                      "a .safetensors or .npz file to write: loss, and gradients by parameter name");
  add_class(command, o->model_class);
  add_attention(command, o->attention);
  add_dtype(command, o->dtype, "compute in this; by default as the weights are");
  command->add_flag("--train", o->train, "in training mode");
  add_json(command, o->json, "for programs to read: the loss, and each gradient's dtype, shape and norm");
  command->callback([o] { run_grad(*o); });
}

}  // namespace

void add_train_commands(CLI::App& app) {
  add_train(app);
  add_grad(app);
}

}  // namespace calque::cli
