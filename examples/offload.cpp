// A model larger than the memory it may take:  offload FOLDER
// What does not fit stays in the weight file, and is mapped for the time of its module's call.
#include <calque/calque.h>
#include <calque/hub/offload.h>

#include <iostream>

using namespace calque;

int main(int argc, char** argv) try {
  if (argc != 2) throw UserError("usage: offload FOLDER");
  DispatchOptions options;
  options.max_memory = max_memory({{"cpu", "4MB"}, {"disk", "100GB"}});
  const auto [model, report] = load_dispatched(argv[1], {}, options);
  std::cout << describe_device_map(*model, model->dispatched->map);

  int on_disk = 0;
  for (const auto& [name, parameter] : model->named_parameters()) on_disk += !parameter.storage()->has_data();
  std::cout << on_disk << " parameters are on disk\n";

  const NoGradGuard no_grad;
  const Tensor ids = arange(1, 9).unsqueeze(0);
  const Tensor logits = (*model)({{arg::input_ids, ids}}).logits();
  const Tensor wanted = (*from_pretrained(argv[1]))({{arg::input_ids, ids}}).logits();  // all of it in memory
  std::cout << (equal(logits, wanted) ? "the same logits\n" : "other logits\n");
  return on_disk > 0 && equal(logits, wanted) ? 0 : 1;
} catch (const Error& error) {
  std::cerr << error.what() << "\n";
  return 2;
}
