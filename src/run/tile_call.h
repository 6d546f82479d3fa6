// TileCall: a chain of pointwise calls as one step. The chain is the graph of a submodule (pass fuse_pointwise); it is computed tile by
// tile, each small enough for what lies between its calls to stay in a core's cache, by the kernels of the operators themselves. So
// the results are eager's to the last bit. Where sizes do not allow tiles, the calls run one after another.
#pragma once

#include <memory>
#include <vector>

#include "run/operator_call.h"

namespace calque::run {

class TileCall final : public Instruction {
 public:
  // Null where the node calls no module with such a graph.
  static std::unique_ptr<const TileCall> make(const Node& call, const ValueIds& ids, const GraphOwner& owner);
  Value run(const Frame& frame, const Place& place) const override;
  bool names_steps() const override { return true; }
  bool makes_tensor() const override { return true; }
  bool takes_over() const override { return true; }

 private:
  // How an input meets the tiles: cut like the result, cut by rows (one number a row), or the same for all.
  enum class Cut : uint8_t { tile, row, none };
  // What is known once the sizes are: found anew at each call.
  struct Shape {
    int64_t rows = 0, row_length = 1;
    std::vector<Cut> cuts;    // by input
    std::vector<Meta> metas;  // by call, of the whole result
  };

  explicit TileCall(const Graph& graph) : inner_(graph) {}
  bool find_shape(const Frame& whole, Shape& shape) const;
  bool find_cuts(const Frame& whole, Shape& shape) const;
  void run_rows(const Frame& whole, const Shape& shape, const Tensor& out, int64_t begin, int64_t end) const;
  Value run_one_by_one(Frame& whole) const;

  ValueIds inner_;
  std::vector<Operand> inputs_;  // of the step, in the order of the graph's placeholders
  std::vector<std::unique_ptr<const OperatorCall>> calls_;
  std::vector<const Node*> nodes_;                // of the calls
  std::vector<std::vector<uint32_t>> last_uses_;  // of inner values, by call
};

}  // namespace calque::run
