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

// A folder, the name of a model that comes with the program ("tiny-lm"), or a name in the hub's cache: ORG/NAME, or NAME when the cache
// has it, with @REVISION behind it for another revision than main. A folder or file of that name counts before the cache.
bool names_model(const std::string& name);
// The folder itself, the snapshot in the hub's cache, or where the model that comes with the program is: in share/calque/models beside
// an installed bin/, or in assets/ of the tree that the program was built in. UserError says where it was looked for.
std::string model_folder(const std::string& name);
// The variant of weights that is read where a choice names none. Set before the command runs.
void set_read_variant(const std::string& variant);
const std::string& current_read_variant();

struct ModelChoice {
  std::string name;                           // as names_model takes it
  std::string model_class, dtype, attention;  // empty: as the folder says ("auto" too, for the dtype), sdpa
  std::string variant = {};
};
std::shared_ptr<PretrainedModel> load_model(const ModelChoice& choice);
// UserError where something else than a model was given with an option that only models have.
void refuse_model_options(const std::string& command, const ModelChoice& choice);
// Keys and values are not among the outputs unless a call asks for them.
void without_cache(PretrainedModel& model);

// Tensors of a safetensors file by the names of the forward's arguments, nested ones by path (past_key_values.0.1); an argument
// that is no tensor (use_cache) is one of no dimensions. UserErrors begin with the command's name.
ModelInputs read_model_inputs(const std::string& command, const std::string& path, const PretrainedModel& model);

// The names of inputs that the tokenizer in the model's folder gives and that its class takes: "input_ids", "token_type_ids", ...
std::vector<std::string> tokenizer_input_names(const std::string& folder, const PretrainedModel& model);
// Made-up inputs of the usual sizes: what the class needs, and whatever its tokenizer gives.
ModelInputs made_up_inputs(const std::string& folder, const PretrainedModel& model);

// What usually differs of a model's inputs, as --dynamic takes it: "input_ids=batch,seq".
std::vector<std::string> usual_dynamic_sizes(const Kwargs& inputs);

// Multiplications and additions of the products of matrices in one forward pass on these inputs, counted in its graph as
// torch.utils.flop_counter counts them.
double forward_flops(PretrainedModel& model, const ModelInputs& inputs);

void run_model_info(const InfoOptions& options);
// Configurations, then weights, tensor by tensor. Prints and throws as run_diff does.
void run_model_diff(const DiffOptions& options);

}  // namespace calque::cli
