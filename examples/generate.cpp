// Text from a language model, as it comes:  generate FOLDER PROMPT
#include <calque/calque.h>

#include <iostream>

int main(int argc, char** argv) try {
  if (argc != 3) throw calque::UserError("usage: generate FOLDER PROMPT");
  const std::string folder = argv[1], prompt = argv[2];
  const auto model = calque::from_pretrained(folder);
  const auto tokenizer = calque::Tokenizer::from_file(folder);

  const std::vector<int64_t> ids = tokenizer.encode_ids(prompt);
  const calque::Tensor input_ids = calque::tensor(ids).unsqueeze(0);  // a batch of one

  calque::GenerationConfig config = calque::generation_config_of(folder);
  config.max_new_tokens = 24;
  config.do_sample = false;  // always the likeliest token
  // It begins with the prompt.
  calque::TextStreamer streamer(tokenizer, [](std::string_view text) { std::cout << text << std::flush; });
  const auto out = calque::generate(*model, {{calque::arg::input_ids, input_ids}}, config, {.streamer = &streamer});
  std::cout << "\n" << out.sequences.size(1) - input_ids.size(1) << " tokens\n";
} catch (const calque::Error& error) {
  std::cerr << error.what() << "\n";
  return 2;
}
