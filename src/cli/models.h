// Models on the command line: which arguments name one, where its folder is, and what goes into its forward.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "calque/hub/model_io.h"
#include "cli/command.h"

namespace calque {
class PretrainedModel;
}

namespace calque::cli {

// A folder, or the name of a model that comes with the program ("tiny-lm").
bool names_model(const std::string& name);
// The folder itself, or where the model that comes with the program is: in share/calque/models beside an installed bin/, or
// in assets/ of the tree that the program was built in. UserError says where it was looked for.
std::string model_folder(const std::string& name);

struct ModelChoice {
  std::string name;                           // as names_model takes it
  std::string model_class, dtype, attention;  // empty: as the folder says ("auto" too, for the dtype), sdpa
};
std::shared_ptr<PretrainedModel> load_model(const ModelChoice& choice);
// Keys and values are not among the outputs unless a call asks for them.
void without_cache(PretrainedModel& model);

// Tensors of a safetensors file by the names of the forward's arguments, nested ones by path (past_key_values.0.1); an argument
// that is no tensor (use_cache) is one of no dimensions. UserErrors begin with the command's name.
ModelInputs read_model_inputs(const std::string& command, const std::string& path, const PretrainedModel& model);

// What usually differs of a model's inputs, as --dynamic takes it: "input_ids=batch,seq".
std::vector<std::string> usual_dynamic_sizes(const Kwargs& inputs);

// Multiplications and additions of the products of matrices in one forward pass on these inputs, counted in its graph as
// torch.utils.flop_counter counts them.
double forward_flops(PretrainedModel& model, const ModelInputs& inputs);

void run_model_info(const InfoOptions& options);
// Configurations, then weights, tensor by tensor. Prints and throws as run_diff does.
void run_model_diff(const DiffOptions& options);

}  // namespace calque::cli
