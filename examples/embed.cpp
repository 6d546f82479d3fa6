// Vectors of sentences, and which are alike:  embed FOLDER
// The mean of the last hidden states over the tokens that are no padding, of length one.
#include <calque/calque.h>

#include <iostream>

using namespace calque;

int main(int argc, char** argv) try {
  if (argc != 2) throw UserError("usage: embed FOLDER");
  LoadOptions options;
  options.task = "default";  // the model without a head
  options.dtype = DType::float32;
  const auto model = from_pretrained(argv[1], options);
  const Tokenizer tokenizer = Tokenizer::from_file(argv[1]);
  const std::vector<std::string> texts = {"The whale dived.", "The whale went down.", "Interest rates rose by a quarter."};

  // One batch: shorter rows are filled up, and the mask says where.
  const std::vector<Encoding> rows = tokenizer.encode_batch(texts);
  int64_t longest = 0;
  for (const Encoding& row : rows) longest = std::max<int64_t>(longest, std::ssize(row.ids));
  const Tensor ids = zeros({std::ssize(rows), longest}, DType::int64), mask = zeros_like(ids);
  for (size_t i = 0; i < rows.size(); ++i) {
    ids[i].slice(0, 0, std::ssize(rows[i].ids)) = tensor(rows[i].ids);
    mask[i].slice(0, 0, std::ssize(rows[i].ids)) = 1;
  }

  const NoGradGuard no_grad;
  const Tensor hidden = (*model)({{arg::input_ids, ids}, {arg::attention_mask, mask}}).last_hidden_state();
  const Tensor weight = mask.unsqueeze(-1).to(hidden.dtype());
  Tensor vectors = (hidden * weight).sum(1) / weight.sum(1);
  vectors = vectors / vectors.norm(2, 1, true);
  std::cout << "vectors " << vectors.sizes() << "\n" << matmul(vectors, vectors.t()) << "\n";
} catch (const Error& error) {
  std::cerr << error.what() << "\n";
  return 2;
}
