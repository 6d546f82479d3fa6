#include "calque/nn/recurrent.h"

#include <cmath>

#include "calque/nn/init.h"
#include "calque/op/aten/empty.h"
#include "calque/op/aten/recurrent.h"
#include "calque/op/aten/zeros.h"
#include "calque/tensor/number_text.h"

namespace calque {

static void uniform_all(const Module& module, int64_t hidden_size) {
  const double bound = hidden_size > 0 ? 1 / std::sqrt(static_cast<double>(hidden_size)) : 0;
  for (const Tensor& parameter : module.parameters()) init::uniform_(parameter, -bound, bound);
}

// ---- sequences ------------------------------------------------------------------------------------------------------

RecurrentBase::RecurrentBase(int64_t gates, int64_t input_size, int64_t hidden_size, const RecurrentOptions& options)
    : input_size(input_size), hidden_size(hidden_size), options(options) {
  if (hidden_size <= 0) throw UserError("hidden_size must be greater than zero");
  if (options.num_layers <= 0) throw UserError("num_layers must be greater than zero");
  if (options.proj_size < 0) throw UserError("proj_size should be a positive integer or zero to disable projections");
  if (options.proj_size >= hidden_size) throw UserError("proj_size has to be smaller than hidden_size");
  if (options.dropout < 0 || options.dropout > 1) {
    throw UserError(
        "dropout should be a number in range [0, 1] representing the probability of an element being zeroed, found " +
        python_repr(options.dropout));
  }
  const int64_t output = options.proj_size > 0 ? options.proj_size : hidden_size;
  const int64_t directions = options.bidirectional ? 2 : 1;
  for (int64_t layer = 0; layer < options.num_layers; ++layer) {
    for (int64_t direction = 0; direction < directions; ++direction) {
      const std::string suffix = "_l" + std::to_string(layer) + (direction ? "_reverse" : "");
      const auto add_parameter = [&](const char* name, SymIntList sizes) {
        register_parameter(name + suffix, empty(sizes, options.factory.dtype, std::nullopt, options.factory.device));
      };
      add_parameter("weight_ih", {gates * hidden_size, layer == 0 ? input_size : output * directions});
      add_parameter("weight_hh", {gates * hidden_size, output});
      if (options.bias) {
        add_parameter("bias_ih", {gates * hidden_size});
        add_parameter("bias_hh", {gates * hidden_size});
      }
      if (options.proj_size > 0) add_parameter("weight_hr", {options.proj_size, hidden_size});
    }
  }
  reset_parameters();
}

void RecurrentBase::reset_parameters() { uniform_all(*this, hidden_size); }

std::string RecurrentBase::extra_repr() const {
  std::string out = std::to_string(input_size) + ", " + std::to_string(hidden_size);
  if (options.proj_size != 0) out += ", proj_size=" + std::to_string(options.proj_size);
  if (options.num_layers != 1) out += ", num_layers=" + std::to_string(options.num_layers);
  if (!options.bias) out += ", bias=False";
  if (options.batch_first) out += ", batch_first=True";
  if (options.dropout != 0) out += ", dropout=" + python_repr(options.dropout);
  if (options.bidirectional) out += ", bidirectional=True";
  return out;
}

std::vector<Tensor> RecurrentBase::flat_weights() const {
  std::vector<Tensor> out;
  for (const auto& slot : parameter_slots()) out.push_back(slot->tensor);
  return out;
}

std::pair<Tensor, bool> RecurrentBase::batched(const Tensor& input) const {
  if (input.dim() != 2 && input.dim() != 3)
    throw UserError(class_name() + ": Expected input to be 2D or 3D, got " + std::to_string(input.dim()) + "D instead");
  const bool has_batch = input.dim() == 3;
  if (!guard_or(input.sym_size(-1) == input_size, true)) {
    throw UserError(class_name() + ": input.size(-1) must be equal to input_size. Expected " + std::to_string(input_size) +
                    ", got " + input.sym_size(-1).str());
  }
  return {has_batch ? input : input.unsqueeze(options.batch_first ? 0 : 1), has_batch};
}

Tensor RecurrentBase::state(const Tensor& given, const Tensor& input, bool was_batched, int64_t width) const {
  const SymInt count = options.num_layers * (options.bidirectional ? 2 : 1),
               batch = input.sym_size(options.batch_first ? 0 : 1);
  if (!given.defined()) return zeros({count, batch, width}, input.dtype(), std::nullopt, input.device());
  if (given.dim() != (was_batched ? 3 : 2)) {
    throw UserError(class_name() + ": For " + (was_batched ? "batched 3-D" : "unbatched 2-D") +
                    " input, hx should also be " + (was_batched ? "3" : "2") + "-D but got " + std::to_string(given.dim()) +
                    "-D tensor");
  }
  const Tensor hx = was_batched ? given : given.unsqueeze(1);
  if (calque::str(hx.sym_sizes()) != calque::str(SymIntList({count, batch, SymInt(width)}))) {
    throw UserError(class_name() + ": Expected hidden size " + calque::str(SymIntList({count, batch, SymInt(width)})) +
                    ", got " + calque::str(hx.sym_sizes()));
  }
  return hx;
}

RNN::RNN(int64_t input_size, int64_t hidden_size, const RecurrentOptions& options)
    : Typed(1, input_size, hidden_size, options) {
  if (options.proj_size > 0) throw UserError("proj_size argument is only supported for LSTM, not RNN or GRU");
  if (options.nonlinearity != "tanh" && options.nonlinearity != "relu")
    throw UserError("Unknown nonlinearity '" + options.nonlinearity + "'. Select from 'tanh' or 'relu'.");
}

std::tuple<Tensor, Tensor> RNN::forward(const Tensor& given, const Tensor& hx) {
  const auto [input, has_batch] = batched(given);
  const Tensor start = state(hx, input, has_batch, hidden_size);
  const std::vector<Tensor> weights = flat_weights();
  auto [output, h] = options.nonlinearity == "tanh"
                         ? rnn_tanh(input, start, weights, options.bias, options.num_layers, options.dropout, training(),
                                    options.bidirectional, options.batch_first)
                         : rnn_relu(input, start, weights, options.bias, options.num_layers, options.dropout, training(),
                                    options.bidirectional, options.batch_first);
  if (has_batch) return {output, h};
  return {output.squeeze(options.batch_first ? 0 : 1), h.squeeze(1)};
}

GRU::GRU(int64_t input_size, int64_t hidden_size, const RecurrentOptions& options)
    : Typed(3, input_size, hidden_size, options) {
  if (options.proj_size > 0) throw UserError("proj_size argument is only supported for LSTM, not RNN or GRU");
}

std::tuple<Tensor, Tensor> GRU::forward(const Tensor& given, const Tensor& hx) {
  const auto [input, has_batch] = batched(given);
  auto [output, h] = gru(input, state(hx, input, has_batch, hidden_size), flat_weights(), options.bias, options.num_layers,
                         options.dropout, training(), options.bidirectional, options.batch_first);
  if (has_batch) return {output, h};
  return {output.squeeze(options.batch_first ? 0 : 1), h.squeeze(1)};
}

LSTM::LSTM(int64_t input_size, int64_t hidden_size, const RecurrentOptions& options)
    : Typed(4, input_size, hidden_size, options) {}

std::tuple<Tensor, LSTM::States> LSTM::forward(const Tensor& given, const std::optional<States>& hx) {
  const auto [input, has_batch] = batched(given);
  const int64_t output_size = options.proj_size > 0 ? options.proj_size : hidden_size;
  const std::vector<Tensor> start{state(hx ? std::get<0>(*hx) : Tensor(), input, has_batch, output_size),
                                  state(hx ? std::get<1>(*hx) : Tensor(), input, has_batch, hidden_size)};
  auto [output, h, c] = lstm(input, start, flat_weights(), options.bias, options.num_layers, options.dropout, training(),
                             options.bidirectional, options.batch_first);
  if (has_batch) return {output, {h, c}};
  return {output.squeeze(options.batch_first ? 0 : 1), {h.squeeze(1), c.squeeze(1)}};
}

// ---- cells ----------------------------------------------------------------------------------------------------------

static Tensor made(SymIntList sizes, const Factory& factory, bool wanted = true) {
  return wanted ? empty(sizes, factory.dtype, std::nullopt, factory.device) : Tensor();
}

RecurrentCellBase::RecurrentCellBase(int64_t gates, int64_t input_size, int64_t hidden_size, bool bias,
                                     const Factory& factory)
    : input_size(input_size),
      hidden_size(hidden_size),
      weight_ih(register_parameter("weight_ih", made({gates * hidden_size, input_size}, factory))),
      weight_hh(register_parameter("weight_hh", made({gates * hidden_size, hidden_size}, factory))),
      bias_ih(register_parameter("bias_ih", made({gates * hidden_size}, factory, bias))),
      bias_hh(register_parameter("bias_hh", made({gates * hidden_size}, factory, bias))) {
  reset_parameters();
}

void RecurrentCellBase::reset_parameters() { uniform_all(*this, hidden_size); }

std::string RecurrentCellBase::extra_repr() const {
  return std::to_string(input_size) + ", " + std::to_string(hidden_size) + (bias_ih.defined() ? "" : ", bias=False");
}

std::pair<Tensor, bool> RecurrentCellBase::batched(const Tensor& input) const {
  if (input.dim() != 1 && input.dim() != 2)
    throw UserError(class_name() + ": Expected input to be 1D or 2D, got " + std::to_string(input.dim()) + "D instead");
  return {input.dim() == 2 ? input : input.unsqueeze(0), input.dim() == 2};
}

Tensor RecurrentCellBase::state(const Tensor& given, const Tensor& input, bool was_batched) const {
  if (!given.defined()) return zeros({input.sym_size(0), hidden_size}, input.dtype(), std::nullopt, input.device());
  if (given.dim() != 1 && given.dim() != 2)
    throw UserError(class_name() + ": Expected hidden to be 1D or 2D, got " + std::to_string(given.dim()) + "D instead");
  return was_batched ? given : given.unsqueeze(0);
}

RNNCell::RNNCell(int64_t input_size, int64_t hidden_size, bool bias, std::string nonlinearity, Factory factory)
    : Typed(1, input_size, hidden_size, bias, factory), nonlinearity(std::move(nonlinearity)) {
  if (this->nonlinearity != "tanh" && this->nonlinearity != "relu")
    throw UserError("Unknown nonlinearity: " + this->nonlinearity);
}

Tensor RNNCell::forward(const Tensor& given, const Tensor& hx) {
  const auto [input, has_batch] = batched(given);
  const Tensor start = state(hx, input, has_batch);
  const Tensor out = nonlinearity == "tanh" ? rnn_tanh_cell(input, start, weight_ih, weight_hh, bias_ih, bias_hh)
                                            : rnn_relu_cell(input, start, weight_ih, weight_hh, bias_ih, bias_hh);
  return has_batch ? out : out.squeeze(0);
}

std::string RNNCell::extra_repr() const {
  return RecurrentCellBase::extra_repr() + (nonlinearity == "tanh" ? "" : ", nonlinearity=" + nonlinearity);
}

GRUCell::GRUCell(int64_t input_size, int64_t hidden_size, bool bias, Factory factory)
    : Typed(3, input_size, hidden_size, bias, factory) {}

Tensor GRUCell::forward(const Tensor& given, const Tensor& hx) {
  const auto [input, has_batch] = batched(given);
  const Tensor out = gru_cell(input, state(hx, input, has_batch), weight_ih, weight_hh, bias_ih, bias_hh);
  return has_batch ? out : out.squeeze(0);
}

LSTMCell::LSTMCell(int64_t input_size, int64_t hidden_size, bool bias, Factory factory)
    : Typed(4, input_size, hidden_size, bias, factory) {}

std::tuple<Tensor, Tensor> LSTMCell::forward(const Tensor& given, const std::optional<std::tuple<Tensor, Tensor>>& hx) {
  const auto [input, has_batch] = batched(given);
  const Tensor h0 = state(hx ? std::get<0>(*hx) : Tensor(), input, has_batch);
  const std::vector<Tensor> start{h0, hx ? state(std::get<1>(*hx), input, has_batch) : h0};
  auto [h, c] = lstm_cell(input, start, weight_ih, weight_hh, bias_ih, bias_hh);
  if (has_batch) return {h, c};
  return {h.squeeze(0), c.squeeze(0)};
}

}  // namespace calque
