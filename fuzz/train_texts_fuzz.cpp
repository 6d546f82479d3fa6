// Any bytes as a file of texts to train on: the first byte says which ending and task. Read, or one UserError, nothing else.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "calque/base/error.h"
#include "calque/train/data.h"

using namespace calque;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  constexpr const char* names[] = {"fuzz.txt", "fuzz.jsonl", "fuzz.csv"};
  constexpr TrainTask tasks[] = {TrainTask::causal_lm, TrainTask::masked_lm, TrainTask::seq2seq_lm,
                                 TrainTask::classification};
  const std::string_view content(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    parse_train_texts(content, names[data[0] % 3], tasks[data[0] / 3 % 4]);
  } catch (const UserError&) {
  }
  return 0;
}
