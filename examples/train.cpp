// Trains a language model on a text file, a line a text: example_train FOLDER FILE.txt. Writes the model to ./trained.
#include <calque/calque.h>
#include <calque/train/trainer.h>

#include <cstdio>

using namespace calque;

int main(int argc, char** argv) try {
  if (argc != 3) return std::puts("usage: example_train FOLDER FILE.txt"), 2;
  const auto model = from_pretrained(argv[1], {.dtype = DType::float32});
  make_trainable(*model);
  const Tokenizer tokenizer = Tokenizer::from_file(argv[1]);
  const TrainData data(*model, tokenizer, read_train_texts(argv[2], TrainTask::causal_lm), TrainTask::causal_lm);

  AdamW optimizer(trainable_groups(*model, 0.01), {.lr = 5e-4});
  auto schedule = cosine_schedule_with_warmup(optimizer, 2, 12);
  Trainer trainer(*model, data, optimizer, schedule, {.batch_size = 4});
  for (int i = 0; i < 12; ++i) {
    const TrainStep step = trainer.step();
    std::printf("step %d: loss %.3f of %d tokens\n", static_cast<int>(step.step), step.loss, static_cast<int>(step.tokens));
  }
  std::puts(trainer.steps().back().loss < trainer.steps().front().loss ? "it learnt" : "it did not learn");
  save_pretrained(*model, "trained", {.companions_of = argv[1]});
} catch (const Error& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 2;
}
