#include "library_functions.h"

#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "calque/base/error.h"
#include "calque/nn/functional.h"
#include "calque/op/mode.h"

namespace calque {
namespace {

// ---- bodies -------------------------------------------------------------------------------------------------------------

// The operator of the same name: its arguments come in the same order.
Value by_operator(const LibraryFunction& self, const Values& bound) {
  std::string packet = aten_name(self.name.substr(self.name.rfind('.') + 1));
  Values args;
  for (size_t i = 0; i < bound.size(); ++i) {
    if (self.parameters[i].name == "inplace")
      packet += bound[i].to_bool() ? "_" : "";
    else if (self.parameters[i].name == "return_indices")
      packet += bound[i].to_bool() ? "_with_indices" : "";
    else if (self.parameters[i].name == "stride" && bound[i].is_none())
      args.push_back(list({}));
    else
      args.push_back(bound[i]);
  }
  return call(resolve_overload(packet, args), args);
}

// Tensors that may be None, numbers, text: by the places of the signature.
const Tensor& tensor(const Values& v, size_t i) { return v[i].to_tensor_or_none(); }
std::optional<int64_t> optional_int(const Value& v) { return v.is_none() ? std::nullopt : std::optional(v.to_int()); }
std::optional<double> optional_float(const Value& v) { return v.is_none() ? std::nullopt : std::optional(v.to_float()); }
std::optional<DType> optional_dtype(const Value& v) { return v.is_none() ? std::nullopt : std::optional(v.to_dtype()); }

using Body = Value (*)(const LibraryFunction&, const Values&);

struct Entry {
  std::string_view signature;
  Body body;
};

constexpr Entry entries[] = {
    {"torch.nn.functional.silu(input, inplace=False)", by_operator},
    {"torch.nn.functional.hardswish(input, inplace=False)", by_operator},
    {"torch.nn.functional.hardsigmoid(input, inplace=False)", by_operator},
    {"torch.nn.functional.relu6(input, inplace=False)", by_operator},
    {"torch.nn.functional.mish(input, inplace=False)", by_operator},
    {"torch.nn.functional.elu(input, alpha=1.0, inplace=False)", by_operator},
    {"torch.nn.functional.leaky_relu(input, negative_slope=0.01, inplace=False)", by_operator},
    {"torch.nn.functional.hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False)", by_operator},
    {"torch.nn.functional.relu(input, inplace=False)", by_operator},
    {"torch.nn.functional.glu(input, dim=-1)", by_operator},
    {"torch.nn.functional.layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-05)", by_operator},
    {"torch.nn.functional.rms_norm(input, normalized_shape, weight=None, eps=None)", by_operator},
    {"torch.nn.functional.group_norm(input, num_groups, weight=None, bias=None, eps=1e-05)", by_operator},
    {"torch.nn.functional.dropout(input, p=0.5, training=True, inplace=False)", by_operator},
    {"torch.nn.functional.alpha_dropout(input, p=0.5, training=False, inplace=False)", by_operator},
    {"torch.nn.functional.feature_alpha_dropout(input, p=0.5, training=False, inplace=False)", by_operator},
    {"torch.nn.functional.pad(input, pad, mode='constant', value=None)", by_operator},
    {"torch.nn.functional.max_pool1d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, "
     "return_indices=False)",
     by_operator},
    {"torch.nn.functional.max_pool2d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, "
     "return_indices=False)",
     by_operator},
    {"torch.nn.functional.max_pool3d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, "
     "return_indices=False)",
     by_operator},
    {"torch.functional.split(tensor, split_size_or_sections, dim=0)", by_operator},

    {"torch.nn.functional.embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, "
     "scale_grad_by_freq=False, sparse=False)",
     [](const LibraryFunction&, const Values& v) -> Value {
       return functional::embedding(tensor(v, 0), tensor(v, 1), optional_int(v[2]), optional_float(v[3]), v[4].to_float(),
                                    v[5].to_bool(), v[6].to_bool());
     }},
    {"torch.nn.functional.batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, "
     "momentum=0.1, eps=1e-05)",
     [](const LibraryFunction&, const Values& v) -> Value {
       return functional::batch_norm(tensor(v, 0), tensor(v, 1), tensor(v, 2), tensor(v, 3), tensor(v, 4), v[5].to_bool(),
                                     v[6].to_float(), v[7].to_float());
     }},
    {"torch.nn.functional.softmax(input, dim=None, _stacklevel=3, dtype=None)",
     [](const LibraryFunction&, const Values& v) -> Value {
       return functional::softmax(tensor(v, 0), optional_int(v[1]), optional_dtype(v[3]));
     }},
    {"torch.nn.functional.log_softmax(input, dim=None, _stacklevel=3, dtype=None)",
     [](const LibraryFunction&, const Values& v) -> Value {
       return functional::log_softmax(tensor(v, 0), optional_int(v[1]), optional_dtype(v[3]));
     }},
    {"torch.nn.functional.normalize(input, p=2.0, dim=1, eps=1e-12, out=None)",
     [](const LibraryFunction&, const Values& v) -> Value {
       return functional::normalize(tensor(v, 0), v[1].to_float(), v[2].to_int(), v[3].to_float());
     }},
    {"torch.nn.functional.cross_entropy(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, "
     "reduction='mean', label_smoothing=0.0)",
     [](const LibraryFunction&, const Values& v) -> Value {
       return functional::cross_entropy(tensor(v, 0), tensor(v, 1), tensor(v, 2), v[4].to_int(), v[6].to_string(),
                                        v[7].to_float());
     }},
    {"torch.nn.functional.nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, "
     "reduction='mean')",
     [](const LibraryFunction&, const Values& v) -> Value {
       return functional::nll_loss(tensor(v, 0), tensor(v, 1), tensor(v, 2), v[4].to_int(), v[6].to_string());
     }},
    {"torch.nn.functional.mse_loss(input, target, size_average=None, reduce=None, reduction='mean', weight=None)",
     [](const LibraryFunction&, const Values& v) -> Value {
       return functional::mse_loss(tensor(v, 0), tensor(v, 1), v[4].to_string());
     }},
    {"torch.nn.functional.binary_cross_entropy_with_logits(input, target, weight=None, size_average=None, reduce=None, "
     "reduction='mean', pos_weight=None)",
     [](const LibraryFunction&, const Values& v) -> Value {
       return functional::binary_cross_entropy_with_logits(tensor(v, 0), tensor(v, 1), tensor(v, 2), v[5].to_string(),
                                                           tensor(v, 6));
     }},
};

// ---- signatures ---------------------------------------------------------------------------------------------------------

Value literal(std::string_view text) {
  if (text == "None") return {};
  if (text == "True") return true;
  if (text == "False") return false;
  if (text.starts_with("'")) return text.substr(1, text.size() - 2);
  if (text.find_first_of(".e") == std::string_view::npos) {
    int64_t i = 0;
    std::from_chars(text.data(), text.data() + text.size(), i);
    return i;
  }
  double d = 0;
  std::from_chars(text.data(), text.data() + text.size(), d);
  return d;
}

LibraryFunction parsed(const Entry& entry) {
  const size_t open = entry.signature.find('(');
  LibraryFunction f{std::string(entry.signature.substr(0, open)), {}, entry.body};
  std::string_view rest = entry.signature.substr(open + 1, entry.signature.size() - open - 2);
  while (!rest.empty()) {
    const std::string_view item = rest.substr(0, rest.find(", "));
    rest.remove_prefix(std::min(rest.size(), item.size() + 2));
    const size_t equals = item.find('=');
    f.parameters.push_back({std::string(item.substr(0, equals)), equals == std::string_view::npos
                                                                     ? std::nullopt
                                                                     : std::optional(literal(item.substr(equals + 1)))});
  }
  return f;
}

}  // namespace

Values LibraryFunction::bind(const Values& args, const Kwargs& kwargs) const {
  if (args.size() > parameters.size())
    throw UserError(name + ": takes " + std::to_string(parameters.size()) + " arguments, found " +
                    std::to_string(args.size()));
  Values bound = args;
  bound.resize(parameters.size());
  std::vector<bool> given(parameters.size());
  std::fill(given.begin(), given.begin() + static_cast<std::ptrdiff_t>(args.size()), true);
  for (const auto& [key, value] : kwargs) {
    size_t i = 0;
    while (i < parameters.size() && parameters[i].name != key) ++i;
    if (i == parameters.size()) throw UserError(name + ": has no argument named " + key);
    if (given[i]) throw UserError(name + ": got multiple values for argument " + key);
    bound[i] = value;
    given[i] = true;
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (given[i]) continue;
    if (!parameters[i].default_value) throw UserError(name + ": argument " + parameters[i].name + " is missing");
    bound[i] = *parameters[i].default_value;
  }
  return bound;
}

std::pair<Values, Kwargs> LibraryFunction::written(const Values& bound) const {
  std::pair<Values, Kwargs> out;
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (!parameters[i].default_value)
      out.first.push_back(bound[i]);
    else
      out.second.emplace_back(parameters[i].name, bound[i]);
  }
  return out;
}

const std::vector<LibraryFunction>& library_functions() {
  static const std::vector<LibraryFunction> table = [] {
    std::vector<LibraryFunction> t;
    for (const Entry& e : entries) t.push_back(parsed(e));
    return t;
  }();
  return table;
}

const LibraryFunction* find_library_function(std::string_view name) {
  static const std::unordered_map<std::string_view, const LibraryFunction*> by_name = [] {
    std::unordered_map<std::string_view, const LibraryFunction*> m;
    for (const LibraryFunction& f : library_functions()) m.emplace(f.name, &f);
    return m;
  }();
  const auto it = by_name.find(name);
  return it == by_name.end() ? nullptr : it->second;
}

}  // namespace calque
