// Calls by name take the overload that PyTorch takes (tests/op/golden/overloads.tsv, made by tools/opcheck/overloads.py).
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "calque/base/error.h"
#include "calque/op/operator.h"
#include "calque/op/tensor.h"
#include "support/paths.h"

namespace calque::overloads_test {
namespace {

Value argument(const std::string& kind) {
  const Tensor t = make_tensor(IntList{2, 2}, DType::float32);
  if (kind == "T") return t;
  if (kind == "i") return 2;
  if (kind == "f") return 2.5;
  if (kind == "b") return true;
  if (kind == "L") return list({1, 1});
  if (kind == "TL") return list({t});
  return "mean";
}

TEST(Overloads, are_resolved_as_pytorch_resolves_them) {
  std::ifstream in(test::source_folder() + "/tests/op/golden/overloads.tsv");
  ASSERT_TRUE(in);
  std::string line;
  int lines = 0;
  while (std::getline(in, line)) {
    ++lines;
    std::istringstream fields(line);
    std::string name, kinds, expected, kind;
    std::getline(fields, name, '\t');
    std::getline(fields, kinds, '\t');
    std::getline(fields, expected, '\t');
    Values arguments;
    for (std::istringstream words(kinds); words >> kind;) arguments.push_back(argument(kind));
    try {
      EXPECT_EQ(resolve_overload(name, arguments).name(), expected) << name << "(" << kinds << ")";
    } catch (const UserError& e) {
      ADD_FAILURE() << name << "(" << kinds << "): expected " << expected << ", found " << e.what();
    }
  }
  EXPECT_GT(lines, 1000);
}

}  // namespace
}  // namespace calque::overloads_test
