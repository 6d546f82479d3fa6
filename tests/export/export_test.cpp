#include "calque/export/export.h"

#include <gtest/gtest.h>

#include "calque/nn/nn.h"
#include "calque/op/literal.h"
#include "calque/op/operators.h"

namespace calque {
namespace {

struct M : Typed<M> {
  static constexpr const char* forward_arguments[] = {"x", "y", "d"};
  Child<Linear> linear = child<Linear>("linear", 4, 3);
  Buffer buf = register_buffer("buf", zeros({3}));
  Buffer np = register_buffer("np", ones({3}), false);
  Constant c = register_constant("c", ones({3}));
  Value forward(const Tensor& x, const Value& y, const std::string&) {
    buf->add_(1);
    const Tensor z = linear(x) + *buf * *np + *c + tensor({1., 2., 3.});
    x.mul_(2);
    return tuple({z, dict({{"a", x.to(DType::float64)}, {"b", 5}, {"c", None{}}}), y.to_dict().find("foo")->to_items()[0]});
  }
};

TEST(Export, prints) {
  M m;
  const ExportedProgram p = export_program(m, {rand({2, 4}), dict({{"foo", list({rand({2})})}}), "abc"});
  std::puts(p.run_decompositions({}).str().c_str());
  std::puts(p.module()->code().c_str());
  Tensor x = rand({2, 4});
  std::puts(p.module()->call({x, dict({{"foo", list({rand({2})})}}), "abc"}).str().c_str());
  std::puts(p.run_decompositions({}).call({x, dict({{"foo", list({rand({2})})}}), "abc"}).str().c_str());
  std::puts(export_program(*p.module(), {x, dict({{"foo", list({rand({2})})}}), "abc"}).str().c_str());
  const auto f = traceable([](const Tensor& a, const Tensor& y) -> Value {
    const Value n = y.item();
    (void)check(n.to_sym_int() >= 4);
    (void)check(n.to_sym_int() <= 7);
    const Tensor z = zeros({n.to_sym_int(), 4});
    const Tensor nz = nonzero(a);
    return tuple({z, nz, a.reshape({-1}).slice(0, {}, a.sym_size(0) * 2)});
  }, {"x", "y"});
  const ExportedProgram q = export_program(f, {rand({3, 4}), tensor(5)}, {}, {.dynamic_shapes = DynamicShapes::tuple({DynamicShapes::dict({{0, Dim::AUTO}, {1, Dim::AUTO}}), None{}})});
  std::puts(q.str().c_str());
  std::puts(q.run_decompositions({}).str().c_str());
  std::puts(q.call({rand({5, 4}), tensor(6)}).str().c_str());
}

}  // namespace
}  // namespace calque
