// Recurrent networks: LSTM, GRU and the plain cell, whole sequences and single steps. All are composite: one product for
// the inputs of all steps, then one step after the other. Sequences of different lengths (packed) are not here.
#include <functional>

#include "calque/op/aten/activation.h"
#include "calque/op/aten/cat.h"
#include "calque/op/aten/dropout.h"
#include "calque/op/aten/joining.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/unary.h"
#include "op/stanza.h"

namespace calque {
namespace {

// The weights of one direction of one layer.
struct Weights {
  Tensor w_ih, w_hh, b_ih, b_hh, w_hr;
};

// State of one direction: hidden, and the cell of an LSTM.
struct State {
  Tensor h, c;
};

// From what the inputs contribute (already multiplied) and the state: the next state.
using Step = State (*)(const Tensor& from_input, const State& state, const Weights& w);

Tensor from_state(const State& state, const Weights& w) { return linear(state.h, w.w_hh, w.b_hh); }

std::vector<Tensor> gates_of(const char* op, const Tensor& sums, int64_t count) {
  std::vector<Tensor> gates = sums.chunk(count, 1);
  if (gates.size() != static_cast<size_t>(count))
    throw UserError(std::string(op) + ": the weights must hold " + std::to_string(count) +
                    " gates, found products of sizes " + str(sums.sym_sizes()));
  return gates;
}

State lstm_gates(const Tensor& sum, const State& state, const Weights& w) {
  const std::vector<Tensor> gates = gates_of("lstm", sum, 4);
  const Tensor in = gates[0].sigmoid(), forget = gates[1].sigmoid(), cell = gates[2].tanh(), out = gates[3].sigmoid();
  const Tensor c = forget.mul(state.c).add_(in.mul(cell));
  const Tensor h = out.mul(c.tanh());
  return {w.w_hr.defined() ? matmul(h, w.w_hr.t()) : h, c};
}

State lstm_step(const Tensor& from_input, const State& state, const Weights& w) {
  return lstm_gates(from_state(state, w).add_(from_input), state, w);
}

State gru_step(const Tensor& from_input, const State& state, const Weights& w) {
  const std::vector<Tensor> i = gates_of("gru", from_input, 3);
  const std::vector<Tensor> h = gates_of("gru", linear(state.h, w.w_hh, w.b_hh), 3);
  const Tensor reset = h[0].add(i[0]).sigmoid();
  const Tensor update = h[1].add(i[1]).sigmoid();
  const Tensor fresh = i[2].add(h[2].mul(reset)).tanh();
  return {state.h.sub(fresh).mul(update).add(fresh), {}};
}

State tanh_step(const Tensor& from_input, const State& state, const Weights& w) {
  return {from_state(state, w).add(from_input).tanh(), {}};
}

State relu_step(const Tensor& from_input, const State& state, const Weights& w) {
  return {from_state(state, w).add(from_input).relu(), {}};
}

struct Network {
  const char* name;
  Step step;
  bool has_cell;
  bool has_biases;
  int64_t num_layers;
  double dropout;
  bool train;
  bool bidirectional;
  bool batch_first;
};

std::vector<Weights> weights_of(const Network& net, TensorList params, bool projects) {
  const size_t each = 2 + (net.has_biases ? 2 : 0) + (projects ? 1 : 0);
  const size_t a_layer = each * (net.bidirectional ? 2 : 1);
  // By division: layers that somebody else's file says could make a product wrap.
  if (params.size() % a_layer != 0 || params.size() / a_layer != static_cast<size_t>(net.num_layers))
    throw UserError(std::string(net.name) + ": expected " + std::to_string(a_layer) + " weights for each of " +
                    std::to_string(net.num_layers) + " layers, found " + std::to_string(params.size()));
  std::vector<Weights> out;
  for (size_t at = 0; at < params.size(); at += each) {
    Weights w{params[at], params[at + 1], {}, {}, {}};
    if (net.has_biases) w.b_ih = params[at + 2], w.b_hh = params[at + 3];
    if (projects) w.w_hr = params[at + each - 1];
    out.push_back(w);
  }
  return out;
}

struct Answer {
  Tensor output, h, c;
};

Answer run(const Network& net, const Tensor& input_in, const Tensor& h0, const Tensor& c0, TensorList params) {
  if (input_in.dim() != 3)
    throw UserError(std::string(net.name) + ": expected an input of 3 dimensions, found sizes " + str(input_in.sym_sizes()));
  // An LSTM that projects has a hidden state narrower than its cell.
  const bool projects = net.has_cell && !guard_or(h0.sym_size(2) == c0.sym_size(2), true);
  const std::vector<Weights> weights = weights_of(net, params, projects);
  Tensor input = net.batch_first ? input_in.transpose(0, 1) : input_in;
  const std::vector<Tensor> hidden = h0.unbind(0), cells = net.has_cell ? c0.unbind(0) : std::vector<Tensor>(hidden.size());
  const size_t directions = net.bidirectional ? 2 : 1;
  if (hidden.size() != weights.size() || cells.size() != weights.size()) {
    throw UserError(std::string(net.name) + ": expected a state for each of " + std::to_string(weights.size()) +
                    " layers and directions, found " + std::to_string(hidden.size()));
  }
  std::vector<Tensor> last_h, last_c;
  for (size_t layer = 0; layer < static_cast<size_t>(net.num_layers); ++layer) {
    std::vector<Tensor> sides;
    for (size_t direction = 0; direction < directions; ++direction) {
      const size_t which = layer * directions + direction;
      const Weights& w = weights[which];
      std::vector<Tensor> steps = linear(input, w.w_ih, w.b_ih).unbind(0);
      if (steps.empty()) throw UserError(std::string(net.name) + ": Expected sequence length to be larger than 0 in RNN");
      State state{hidden[which], cells[which]};
      std::vector<Tensor> outputs(steps.size());
      for (size_t i = 0; i < steps.size(); ++i) {
        const size_t at = direction == 0 ? i : steps.size() - 1 - i;
        state = net.step(steps[at], state, w);
        outputs[at] = state.h;
      }
      last_h.push_back(state.h);
      last_c.push_back(state.c);
      sides.push_back(stack(outputs, 0));
    }
    input = directions == 2 ? cat(sides, -1) : sides[0];
    if (net.dropout != 0 && net.train && layer + 1 < static_cast<size_t>(net.num_layers))
      input = dropout(input, net.dropout, true);
  }
  return {net.batch_first ? input.transpose(0, 1) : input, stack(last_h, 0), net.has_cell ? stack(last_c, 0) : Tensor()};
}

std::tuple<Tensor, Tensor, Tensor> lstm_input(const Tensor& input, TensorList hx, TensorList params, bool has_biases,
                                              int64_t num_layers, double dropout, bool train, bool bidirectional,
                                              bool batch_first) {
  if (hx.size() != 2) throw UserError("lstm: expects two hidden states, found " + std::to_string(hx.size()));
  const Answer a = run({"lstm", lstm_step, true, has_biases, num_layers, dropout, train, bidirectional, batch_first}, input,
                       hx[0], hx[1], params);
  return {a.output, a.h, a.c};
}

template <Step step>
std::tuple<Tensor, Tensor> plain_input(const char* name, const Tensor& input, const Tensor& hx, TensorList params,
                                       bool has_biases, int64_t num_layers, double dropout, bool train, bool bidirectional,
                                       bool batch_first) {
  const Answer a =
      run({name, step, false, has_biases, num_layers, dropout, train, bidirectional, batch_first}, input, hx, {}, params);
  return {a.output, a.h};
}

std::tuple<Tensor, Tensor> gru_input(const Tensor& input, const Tensor& hx, TensorList params, bool has_biases,
                                     int64_t num_layers, double dropout, bool train, bool bidirectional, bool batch_first) {
  return plain_input<gru_step>("gru", input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first);
}
std::tuple<Tensor, Tensor> rnn_tanh_input(const Tensor& input, const Tensor& hx, TensorList params, bool has_biases,
                                          int64_t num_layers, double dropout, bool train, bool bidirectional,
                                          bool batch_first) {
  return plain_input<tanh_step>("rnn_tanh", input, hx, params, has_biases, num_layers, dropout, train, bidirectional,
                                batch_first);
}
std::tuple<Tensor, Tensor> rnn_relu_input(const Tensor& input, const Tensor& hx, TensorList params, bool has_biases,
                                          int64_t num_layers, double dropout, bool train, bool bidirectional,
                                          bool batch_first) {
  return plain_input<relu_step>("rnn_relu", input, hx, params, has_biases, num_layers, dropout, train, bidirectional,
                                batch_first);
}

void check_cell(const char* name, const Tensor& input, const Tensor& w_ih) {
  if (input.dim() != 2 || !check(input.sym_size(1) == w_ih.sym_size(1))) {
    throw UserError(std::string(name) + ": input has inconsistent input_size: expected [batch, " + w_ih.sym_size(1).str() +
                    "], found " + str(input.sym_sizes()));
  }
}

std::tuple<Tensor, Tensor> lstm_one(const Tensor& input, TensorList hx, const Tensor& w_ih, const Tensor& w_hh,
                                    const Tensor& b_ih, const Tensor& b_hh) {
  if (hx.size() != 2) throw UserError("lstm_cell: expects two hidden states, found " + std::to_string(hx.size()));
  check_cell("lstm_cell", input, w_ih);
  // In ATen the state's product comes first.
  const State state{hx[0], hx[1]};
  const Weights w{w_ih, w_hh, b_ih, b_hh, {}};
  const Tensor sum = from_state(state, w);
  const State next = lstm_gates(sum.add_(linear(input, w_ih, b_ih)), state, w);
  return {next.h, next.c};
}

Tensor gru_one(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh, const Tensor& b_ih,
               const Tensor& b_hh) {
  check_cell("gru_cell", input, w_ih);
  return gru_step(linear(input, w_ih, b_ih), {hx, {}}, {w_ih, w_hh, b_ih, b_hh, {}}).h;
}

template <Tensor (*function)(const Tensor&, std::source_location)>
Tensor plain_cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh, const Tensor& b_ih,
                  const Tensor& b_hh) {
  check_cell("recurrent cell", input, w_ih);
  const Tensor sum = linear(hx, w_hh, b_hh);
  return function(sum.add(linear(input, w_ih, b_ih)), std::source_location());
}

}  // namespace

void register_recurrent(Library& aten) {
  aten.def(
          "lstm.input(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool "
          "train, bool bidirectional, bool "
          "batch_first) -> (Tensor, Tensor, Tensor)")
      .composite(lstm_input);
  aten.def(
          "gru.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, "
          "bool bidirectional, bool "
          "batch_first) -> (Tensor, Tensor)")
      .composite(gru_input);
  aten.def(
          "rnn_tanh.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool "
          "train, bool bidirectional, bool "
          "batch_first) -> (Tensor, Tensor)")
      .composite(rnn_tanh_input);
  aten.def(
          "rnn_relu.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool "
          "train, bool bidirectional, bool "
          "batch_first) -> (Tensor, Tensor)")
      .composite(rnn_relu_input);
  aten.def(
          "lstm_cell(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> (Tensor, "
          "Tensor)")
      .composite(lstm_one);
  aten.def("gru_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor")
      .composite(gru_one);
  aten.def(
          "rnn_tanh_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor")
      .composite(plain_cell<tanh>);
  aten.def(
          "rnn_relu_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor")
      .composite(plain_cell<relu>);
}

}  // namespace calque
