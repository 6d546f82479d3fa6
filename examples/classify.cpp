// Labels and scores of texts:  classify FOLDER
// The folder's class may be another one: its weights serve for the body, and the head is newly made, which the report says.
#include <calque/calque.h>

#include <iomanip>
#include <iostream>

using namespace calque;

int main(int argc, char** argv) try {
  if (argc != 2) throw UserError("usage: classify FOLDER");
  LoadOptions options;
  options.task = "sequence-classification";
  options.dtype = DType::float32;
  options.config_updates = {{"id2label", dict({{"0", "calm"}, {"1", "stormy"}, {"2", "foggy"}})}, {"pad_token_id", 0}};
  const auto [model, report] = load_pretrained(argv[1], options);
  for (const std::string& key : report.missing_keys) std::cout << "newly made: " << key << "\n";

  const Tokenizer tokenizer = Tokenizer::from_file(argv[1]);
  const Value labels = *model->config().find("id2label");
  const NoGradGuard no_grad;
  for (const std::string text : {"The sea was like glass.", "Waves broke over the bow."}) {
    const Tensor ids = tensor(tokenizer.encode_ids(text)).unsqueeze(0);
    const ModelOutput out = (*model)({{arg::input_ids, ids}});
    const Tensor scores = out.logits().softmax(-1)[0];
    const auto best = scores.argmax().item<int64_t>();
    std::cout << text << "  " << getitem(labels, Value(best)).to_string() << " " << std::fixed << std::setprecision(3)
              << scores[best].item<float>() << " of " << scores.sum().item<float>() << "\n";
  }
} catch (const Error& error) {
  std::cerr << error.what() << "\n";
  return 2;
}
