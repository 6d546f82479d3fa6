// A script of random calls, one a line, run on one generator. The golden test and the live comparison with PyTorch
// (tests/peers/random_peer.py) read the same scripts; the latter's other half runs them on PyTorch.
//   seed N | state | load HEX
//   OP DTYPE SIZES STRIDES ARGUMENT...     SIZES and STRIDES are 3x4, or - for none
// An output lies in a buffer of zeros just large enough for its strides, and the whole buffer is the call's result.
#pragma once

#include <cstdint>
#include <istream>
#include <string>
#include <vector>

#include "calque/tensor/dtype.h"

namespace calque {

struct RandomResult {
  std::string line;
  DType dtype = DType::uint8;
  bool is_state = false;
  bool exact = true;  // bit-equal is required; otherwise within a few ulp
  std::vector<uint8_t> bytes;
};

std::vector<RandomResult> run_random_script(std::istream& script);

}  // namespace calque
