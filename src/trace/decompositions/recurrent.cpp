// Recurrent networks as PyTorch's Python side takes them apart: a step's state keeps a dimension for the sequence, and the
// outputs of the steps are joined along it. In the default table alone; the operators' own bodies are op/aten/recurrent.cpp.
#include <algorithm>

#include "calque/base/error.h"
#include "calque/op/aten/cat.h"
#include "calque/op/aten/dropout.h"
#include "calque/op/aten/joining.h"
#include "calque/op/aten/matmul.h"
#include "trace/decompositions/families.h"
#include "trace/decompositions/table.h"

namespace calque {
namespace {

using Pair = std::tuple<Tensor, Tensor>;
using Triple = std::tuple<Tensor, Tensor, Tensor>;

struct State {
  Tensor h, c;
};

// One direction of one layer.
struct Weights {
  Tensor ih, hh, ih_bias, hh_bias, hr;
};

using Cell = State (*)(const Tensor& from_input, const State& state, const Weights& w);

State lstm_cell(const Tensor& from_input, const State& state, const Weights& w) {
  const Tensor gates = linear(state.h, w.hh, w.hh_bias) + from_input;
  const std::vector<Tensor> parts = gates.chunk(4, 2);
  const Tensor in = parts[0].sigmoid();
  const Tensor forget = parts[1].sigmoid();
  const Tensor cell = parts[2].tanh();
  const Tensor out = parts[3].sigmoid();
  const Tensor kept = forget * state.c;
  const Tensor c = kept + in * cell;
  const Tensor h = out * c.tanh();
  return {w.hr.defined() ? linear(h, w.hr) : h, c};
}

State gru_cell(const Tensor& from_input, const State& state, const Weights& w) {
  const std::vector<Tensor> i = from_input.chunk(3, 1);
  const std::vector<Tensor> h = linear(state.h, w.hh, w.hh_bias).chunk(3, 2);
  const Tensor reset = (h[0] + i[0]).sigmoid();
  const Tensor update = (h[1] + i[1]).sigmoid();
  const Tensor fresh = (i[2] + h[2] * reset).tanh();
  return {(state.h - fresh) * update + fresh, {}};
}

State tanh_cell(const Tensor& from_input, const State& state, const Weights& w) {
  return {(linear(state.h, w.hh, w.hh_bias) + from_input).tanh(), {}};
}
State relu_cell(const Tensor& from_input, const State& state, const Weights& w) {
  return {(linear(state.h, w.hh, w.hh_bias) + from_input).relu(), {}};
}

struct Settings {
  Cell cell;
  bool has_biases;
  int64_t num_layers;
  double dropout;
  bool train, bidirectional, batch_first;
};

std::vector<Weights> weights_of(const Settings& net, TensorList params, bool projects) {
  const size_t each = 2 + (net.has_biases ? 2U : 0U) + (projects ? 1U : 0U);
  const size_t expected = each * static_cast<size_t>(net.num_layers) * (net.bidirectional ? 2U : 1U);
  if (params.size() != expected)
    throw UserError("a recurrent network: expected " + std::to_string(expected) + " weights, found " +
                    std::to_string(params.size()));
  std::vector<Weights> out;
  for (size_t at = 0; at < params.size(); at += each) {
    Weights w{params[at], params[at + 1], {}, {}, {}};
    if (net.has_biases) w.ih_bias = params[at + 2], w.hh_bias = params[at + 3];
    if (projects) w.hr = params[at + each - 1];
    out.push_back(std::move(w));
  }
  return out;
}

// The outputs of all steps and the last state.
std::pair<Tensor, State> one_layer(const Settings& net, const Tensor& input, const State& start, const Weights& w,
                                   bool reverse) {
  State state;
  if (start.c.defined()) state = {start.h.unsqueeze(0), start.c.unsqueeze(0)};
  Tensor from_input = linear(input, w.ih, w.ih_bias);
  if (reverse) from_input = from_input.flip({0});
  if (!start.c.defined()) state.h = start.h.unsqueeze(0);
  std::vector<Tensor> steps;
  for (const Tensor& step : from_input.unbind(0)) {
    state = net.cell(step, state, w);
    steps.push_back(state.h);
  }
  if (steps.empty()) throw UserError("Expected sequence length to be larger than 0 in RNN");
  if (reverse) std::reverse(steps.begin(), steps.end());
  const Tensor out = cat(steps, 0);
  const Tensor h = state.h.squeeze(0);
  return {out, {h, state.c.defined() ? state.c.squeeze(0) : Tensor()}};
}

Triple run(const Settings& net, const Tensor& given, const Tensor& h0, const Tensor& c0, TensorList params) {
  const std::vector<Weights> weights = weights_of(net, params, c0.defined() && guard(h0.sym_size(2) != c0.sym_size(2)));
  const std::vector<Tensor> hidden = h0.unbind(0);
  const std::vector<Tensor> cells = c0.defined() ? c0.unbind(0) : std::vector<Tensor>(hidden.size());
  if (hidden.size() != weights.size() || cells.size() != weights.size())
    throw UserError("a recurrent network: expected a state for each of " + std::to_string(weights.size()) +
                    " layers and directions, found " + std::to_string(hidden.size()));
  Tensor input = net.batch_first ? given.transpose(0, 1) : given;
  std::vector<Tensor> last_h, last_c;
  const size_t directions = net.bidirectional ? 2 : 1;
  for (size_t layer = 0; layer < static_cast<size_t>(net.num_layers); ++layer) {
    std::vector<Tensor> sides;
    for (size_t side = 0; side < directions; ++side) {
      const size_t at = layer * directions + side;
      const auto [out, state] = one_layer(net, input, {hidden[at], cells[at]}, weights[at], side == 1);
      sides.push_back(out);
      last_h.push_back(state.h);
      last_c.push_back(state.c);
    }
    input = directions == 2 ? cat(sides, sides[0].dim() - 1) : sides[0];
    if (net.dropout != 0 && net.train && layer + 1 < static_cast<size_t>(net.num_layers))
      input = dropout(input, net.dropout, true);
  }
  if (net.batch_first) input = input.transpose(0, 1);
  const Tensor h = stack(last_h, 0);
  return {input, h, c0.defined() ? stack(last_c, 0) : Tensor()};
}

template <Cell cell>
void add_plain(DecompositionBuilder& table, const char* name) {
  table.add(name,
            [](const Tensor& input, const Tensor& hx, TensorList params, bool has_biases, int64_t num_layers, double dropout,
               bool train, bool bidirectional, bool batch_first) -> Pair {
              const auto [out, h, c] =
                  run({cell, has_biases, num_layers, dropout, train, bidirectional, batch_first}, input, hx, {}, params);
              return {out, h};
            });
}

}  // namespace

void decompose_recurrent(DecompositionBuilder& table) {
  table.add("lstm.input",
            [](const Tensor& input, TensorList hx, TensorList params, bool has_biases, int64_t num_layers, double dropout,
               bool train, bool bidirectional, bool batch_first) -> Triple {
              if (hx.size() != 2) throw UserError("lstm: expects two hidden states, found " + std::to_string(hx.size()));
              return run({lstm_cell, has_biases, num_layers, dropout, train, bidirectional, batch_first}, input, hx[0],
                         hx[1], params);
            });
  add_plain<gru_cell>(table, "gru.input");
  add_plain<tanh_cell>(table, "rnn_tanh.input");
  add_plain<relu_cell>(table, "rnn_relu.input");
}

}  // namespace calque
