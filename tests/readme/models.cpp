#include <calque/export/export.h>
#include <calque/export/pt2.h>
#include <calque/generate/model_generate.h>
#include <calque/hub/from_pretrained.h>

#include <iostream>

int main(int argc, char** argv) try {
  const std::string folder = argc > 1 ? argv[1] : "model";  // as Hugging Face writes it
  const auto model = calque::from_pretrained(folder);
  const calque::Tokenizer tokenizer = calque::Tokenizer::from_file(folder);
  const std::vector<int64_t> ids = tokenizer.encode_ids("Call me Ishmael.");
  const calque::Tensor input_ids = calque::tensor_of<int64_t>(ids, {1, std::ssize(ids)});

  // One forward pass, inputs and outputs under transformers' names.
  std::cout << calque::str((*model)({{calque::arg::input_ids, input_ids}})["logits"].sizes()) << "\n";

  // The model as a program for any batch and length, for torch.export.load too.
  const auto sizes = calque::parse_dynamic_shapes({"input_ids=batch,seq"}, {"input_ids"});
  calque::save_program(calque::export_program(*model, {}, {{"input_ids", input_ids}}, {.dynamic_shapes = sizes}),
                       "model.pt2");

  // Text, as it comes.
  calque::TextStreamer streamer(tokenizer, [](std::string_view text) { std::cout << text << std::flush; });
  calque::GenerationConfig config = calque::generation_config_of(folder);
  config.max_new_tokens = 32;
  calque::generate(*model, {{calque::arg::input_ids, input_ids}}, config, {.streamer = &streamer});
} catch (const calque::UserError& error) {  // what, where, expected, found, and what to do
  std::cerr << error.what() << "\n";
  return 2;
}
