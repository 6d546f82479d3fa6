// Recurrent layers: RNN, LSTM, GRU over sequences, and their cells for one step. Sequences of one length each: packed
// sequences are not here.
#pragma once

#include "calque/nn/sizes.h"
#include "calque/nn/typed.h"

namespace calque {

struct RecurrentOptions {
  int64_t num_layers = 1;
  bool bias = true;
  bool batch_first = false;
  double dropout = 0;  // between layers
  bool bidirectional = false;
  int64_t proj_size = 0;              // LSTM only
  std::string nonlinearity = "tanh";  // RNN only; or "relu"
  Factory factory = {};
};

// What the three share. Parameters are weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0 (weight_hr_l0 for projections), then
// the same with _reverse, then l1, ...
struct RecurrentBase : Module {
  RecurrentBase(int64_t gates, int64_t input_size, int64_t hidden_size, const RecurrentOptions& options);
  void reset_parameters();
  std::string extra_repr() const override;

  int64_t input_size, hidden_size;
  RecurrentOptions options;

 protected:
  std::vector<Tensor> flat_weights() const;
  // The input with a batch, and whether it had one.
  std::pair<Tensor, bool> batched(const Tensor& input) const;
  // The state given, with a batch, checked; or zeros.
  Tensor state(const Tensor& given, const Tensor& input, bool was_batched, int64_t width) const;
};

struct RNN : Typed<RNN, RecurrentBase> {
  static constexpr const char* torch_type = "torch.nn.modules.rnn.RNN";
  static constexpr const char* forward_arguments[] = {"input", "hx"};
  RNN(int64_t input_size, int64_t hidden_size, const RecurrentOptions& options = {});
  // The outputs of all steps, and the last hidden states.
  std::tuple<Tensor, Tensor> forward(const Tensor& input, const Tensor& hx = {});
};

struct GRU : Typed<GRU, RecurrentBase> {
  static constexpr const char* torch_type = "torch.nn.modules.rnn.GRU";
  static constexpr const char* forward_arguments[] = {"input", "hx"};
  GRU(int64_t input_size, int64_t hidden_size, const RecurrentOptions& options = {});
  std::tuple<Tensor, Tensor> forward(const Tensor& input, const Tensor& hx = {});
};

struct LSTM : Typed<LSTM, RecurrentBase> {
  static constexpr const char* torch_type = "torch.nn.modules.rnn.LSTM";
  static constexpr const char* forward_arguments[] = {"input", "hx"};
  using States = std::tuple<Tensor, Tensor>;  // hidden, cell
  LSTM(int64_t input_size, int64_t hidden_size, const RecurrentOptions& options = {});
  std::tuple<Tensor, States> forward(const Tensor& input, const std::optional<States>& hx = std::nullopt);
};

// What the cells share: weight_ih, weight_hh, bias_ih, bias_hh.
struct RecurrentCellBase : Module {
  RecurrentCellBase(int64_t gates, int64_t input_size, int64_t hidden_size, bool bias, const Factory& factory);
  void reset_parameters();
  std::string extra_repr() const override;

  int64_t input_size, hidden_size;
  Parameter weight_ih, weight_hh, bias_ih, bias_hh;

 protected:
  std::pair<Tensor, bool> batched(const Tensor& input) const;
  Tensor state(const Tensor& given, const Tensor& input, bool was_batched) const;
};

struct RNNCell : Typed<RNNCell, RecurrentCellBase> {
  static constexpr const char* torch_type = "torch.nn.modules.rnn.RNNCell";
  static constexpr const char* forward_arguments[] = {"input", "hx"};
  RNNCell(int64_t input_size, int64_t hidden_size, bool bias = true, std::string nonlinearity = "tanh",
          Factory factory = {});
  Tensor forward(const Tensor& input, const Tensor& hx = {});
  std::string extra_repr() const override;
  std::string nonlinearity;
};

struct GRUCell : Typed<GRUCell, RecurrentCellBase> {
  static constexpr const char* torch_type = "torch.nn.modules.rnn.GRUCell";
  static constexpr const char* forward_arguments[] = {"input", "hx"};
  GRUCell(int64_t input_size, int64_t hidden_size, bool bias = true, Factory factory = {});
  Tensor forward(const Tensor& input, const Tensor& hx = {});
};

struct LSTMCell : Typed<LSTMCell, RecurrentCellBase> {
  static constexpr const char* torch_type = "torch.nn.modules.rnn.LSTMCell";
  static constexpr const char* forward_arguments[] = {"input", "hx"};
  LSTMCell(int64_t input_size, int64_t hidden_size, bool bias = true, Factory factory = {});
  std::tuple<Tensor, Tensor> forward(const Tensor& input,
                                     const std::optional<std::tuple<Tensor, Tensor>>& hx = std::nullopt);
};

}  // namespace calque
