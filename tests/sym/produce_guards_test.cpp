// Guards as text and as checks on real sizes; constraints and how they are broken. Texts are PyTorch 2.13's for the same
// steps, with symbols numbered in order.
#include <gtest/gtest.h>

#include <sstream>

#include <functional>

#include "calque/base/error.h"
#include "calque/sym/expr.h"
#include "calque/sym/produce_guards.h"
#include "calque/sym/sym_math.h"

namespace calque::produce_guards_test {
namespace {

using Texts = std::vector<std::string>;
using Shape = std::vector<int64_t>;
using RealTensor = ProducedGuards::RealTensor;
constexpr int64_t above = ValueRange::unbounded_above;

Shape contiguous(const Shape& sizes) {
  Shape out(sizes.size(), 1);
  for (size_t i = sizes.size(); i-- > 1;) out[i - 1] = out[i] * std::max<int64_t>(sizes[i], 1);
  return out;
}

struct ProduceGuards : testing::Test {
  ShapeEnvOptions options;
  std::shared_ptr<ShapeEnv> env;
  std::vector<Placeholder> inputs;
  std::vector<SymbolicContext> contexts;

  void trace(const std::vector<Shape>& shapes, const std::vector<SymbolicContext>& given = {},
             const std::vector<Shape>& strides = {}) {
    env = ShapeEnv::make(options);
    inputs.clear();
    contexts = given;
    for (size_t i = 0; i < shapes.size(); ++i) {
      const Source source = Source::local(std::string(1, "xyzw"[i]));
      const SymbolicContext* context = contexts.empty() ? nullptr : &contexts[i];
      inputs.push_back({source,
                        create_symbolic_geometry(*env, shapes[i], strides.empty() ? contiguous(shapes[i]) : strides[i], 0,
                                                 source, context),
                        context});
    }
  }
  SymInt size(size_t input, size_t d) const { return std::get<TensorGeometry>(inputs[input].value).sizes[d]; }
  std::string geometry(size_t input) const {
    const auto& t = std::get<TensorGeometry>(inputs[input].value);
    std::string out;
    for (const SymInt s : t.sizes) out += s.str() + " ";
    out += "|";
    for (const SymInt s : t.strides) out += " " + s.str();
    return out + " | " + t.storage_offset.str();
  }
  Texts texts(bool simplified = false) const { return produce_guards(*env, inputs, {.simplified = simplified}).exprs(); }
  std::string violation() const {
    try {
      (void)produce_guards(*env, inputs);
    } catch (const UserError& e) {
      EXPECT_EQ(e.kind(), ErrorKind::constraint_violation);
      return e.what();
    }
    return "";
  }
};

TEST_F(ProduceGuards, duck_sizes_strides_and_ranges) {
  trace({{5, 4}, {4}});
  EXPECT_TRUE(guard(size(0, 0) > size(1, 0)));
  EXPECT_EQ(geometry(0), "s0 s1 | s1 1 | 0");
  EXPECT_EQ(texts(), (Texts{"L['x'].stride()[0] == L['x'].size()[1]", "L['y'].size()[0] == L['x'].size()[1]",
                            "L['x'].size()[0] > L['x'].size()[1]", "3 <= L['x'].size()[0]", "2 <= L['x'].size()[1]"}));
}

TEST_F(ProduceGuards, simplified_text_leaves_out_what_every_trace_has) {
  trace({{5, 4}, {4}});
  EXPECT_TRUE(guard(size(0, 0) == size(1, 0) + 1));
  EXPECT_EQ(geometry(0), "s1 + 1 s1 | s1 1 | 0");
  EXPECT_EQ(texts(true), Texts{});
}

TEST_F(ProduceGuards, divisibility_and_replacements) {
  trace({{6, 4}, {4}, {10}});
  EXPECT_TRUE(guard(size(0, 0) % 2 == 0));
  EXPECT_TRUE(guard(size(2, 0) == size(0, 0) + size(1, 0)));
  EXPECT_EQ(texts(), (Texts{"L['x'].stride()[0] == L['x'].size()[1]", "L['y'].size()[0] == L['x'].size()[1]",
                            "L['z'].size()[0] == L['x'].size()[0] + L['x'].size()[1]", "(L['x'].size()[0] % 2) == 0",
                            "2 <= L['x'].size()[0]", "2 <= L['x'].size()[1]"}));
  const ProducedGuards g = produce_guards(*env, inputs);
  EXPECT_NE(g.verbose()[1].find("  # these had the same example size 4"), std::string::npos) << g.verbose()[1];
  EXPECT_NE(g.verbose()[2].find("  # at produce_guards_test.cpp:"), std::string::npos) << g.verbose()[2];
  EXPECT_NE(g.verbose()[3].find("  # at produce_guards_test.cpp:"), std::string::npos) << g.verbose()[3];
  EXPECT_NE(g.verbose()[4].find("  # sizes 0 and 1 are specialised"), std::string::npos) << g.verbose()[4];
}

TEST_F(ProduceGuards, sizes_of_zero_and_one_are_static) {
  trace({{5, 1}, {4, 0}}, {}, {{1, 1}, {1, 1}});
  EXPECT_TRUE(guard(size(0, 0) * size(1, 0) < 100));
  EXPECT_EQ(geometry(0), "s0 1 | 1 1 | 0");
  EXPECT_EQ(texts(), (Texts{"L['x'].size()[0]*L['y'].size()[0] < 100", "2 <= L['x'].size()[0]", "2 <= L['y'].size()[0]"}));
}

TEST_F(ProduceGuards, strides_are_products_of_sizes_where_they_match) {
  trace({{6, 4, 3}}, {}, {{1, 6, 24}});
  EXPECT_EQ(geometry(0), "s0 s1 s2 | 1 s0 s0*s1 | 0");
  EXPECT_EQ(texts(),
            (Texts{"L['x'].stride()[1] == L['x'].size()[0]", "L['x'].stride()[2] == L['x'].size()[0]*L['x'].size()[1]",
                   "2 <= L['x'].size()[0]", "2 <= L['x'].size()[1]", "2 <= L['x'].size()[2]"}));
  trace({{6, 4, 3}}, {}, {{100, 20, 5}});
  EXPECT_EQ(geometry(0), "s0 s1 s2 | s5 s4 s3 | 0");
  EXPECT_EQ(texts(), (Texts{"2 <= L['x'].size()[0]", "2 <= L['x'].size()[1]", "2 <= L['x'].size()[2]",
                            "2 <= L['x'].stride()[0]", "2 <= L['x'].stride()[1]", "2 <= L['x'].stride()[2]"}));
  trace({{6, 4, 3}}, {}, {{0, 3, 1}});
  EXPECT_EQ(geometry(0), "s0 s1 s2 | 0 s2 1 | 0");
  trace({{2, 2}});
  EXPECT_EQ(geometry(0), "s0 s0 | s0 1 | 0");
  EXPECT_EQ(texts(), (Texts{"L['x'].size()[1] == L['x'].size()[0]", "L['x'].stride()[0] == L['x'].size()[0]",
                            "2 <= L['x'].size()[0]"}));
}

TEST_F(ProduceGuards, broken_promises_are_listed) {
  const auto dims = [](int64_t lower, int64_t upper) {
    SymbolicContext c;
    c.sizes = {DimDynamic::dynamic_size, DimDynamic::dynamic_size};
    c.constraint_sizes = {StrictMinMaxConstraint{{lower, upper}}, StrictMinMaxConstraint{{lower, upper}}};
    return c;
  };
  trace({{6, 4}, {4, 7}}, {dims(2, 10), dims(3, above)});
  EXPECT_TRUE(guard(size(0, 0) % 2 == 0));
  EXPECT_TRUE(guard(size(0, 1) == 4));
  EXPECT_TRUE(guard(size(1, 0) < 8));
  const std::string text = violation();
  EXPECT_TRUE(text.starts_with("Constraints violated (L['x'].size()[0], L['x'].size()[1], L['y'].size()[0])! ")) << text;
  for (const char* line :
       {"\n  - You marked L['x'].size()[1] as dynamic but your code specialized it to be a constant (4).",
        "\n  - Not all values of L['x'].size()[0] = L['x'].size()[0] in the specified range L['x'].size()[0] <= 10 satisfy "
        "the generated guard (L['x'].size()[0] % 2) == 0.",
        "\n  - Not all values of L['y'].size()[0] = L['y'].size()[0] in the specified range 3 <= L['y'].size()[0] satisfy "
        "the "
        "generated guard 3 <= L['y'].size()[0] and L['y'].size()[0] <= 7"})
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n in " << text;
  EXPECT_FALSE(collect_guards(*env, inputs).violations().empty());
}

TEST_F(ProduceGuards, a_dimension_may_be_asked_not_to_specialise) {
  SymbolicContext c;
  c.sizes = {DimDynamic::dynamic_size, DimDynamic::dynamic_size};
  c.constraint_sizes = {RelaxedUnspecConstraint{}, RelaxedUnspecConstraint{}};
  trace({{6, 4}}, {c});
  EXPECT_TRUE(guard(size(0, 1) % 2 == 0));
  EXPECT_EQ(violation(), "") << "guards are fine";
  EXPECT_TRUE(guard(size(0, 0) == 6));
  EXPECT_NE(
      violation().find("You marked L['x'].size()[0] as dynamic but your code specialized it to be a constant (6). It was "
                       "specialized by at produce_guards_test.cpp:"),
      std::string::npos)
      << violation();
  c.constraint_sizes = {RelaxedUnspecConstraint{true}, RelaxedUnspecConstraint{true}};
  trace({{6, 4}}, {c});
  EXPECT_TRUE(guard(size(0, 0) == 6));
  EXPECT_EQ(violation(), "");
  EXPECT_EQ(collect_guards(*env, inputs).warnings().size(), 1U);
}

TEST_F(ProduceGuards, a_static_promise_is_checked_at_once) {
  SymbolicContext c;
  c.sizes = {DimDynamic::dynamic_size};
  c.constraint_sizes = {StrictMinMaxConstraint{{6, 6}}};
  trace({{6}}, {c});
  EXPECT_EQ(size(0, 0).as_int(), 6);
  try {
    trace({{7}}, {c});
    FAIL() << "no error";
  } catch (const UserError& e) {
    EXPECT_STREQ(e.what(), "Static shape constraint of 6 does not match input size of 7, for L['x'].size()[0]");
  }
  c.constraint_sizes = {StrictMinMaxConstraint{{8, 20}}};
  EXPECT_THROW(trace({{7}}, {c}), UserError);
}

// PyTorch's part of a message: without who asked, which is in parentheses at a line's end.
std::string as_pytorch(const std::string& text) {
  std::string out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    const size_t asked = line.ends_with(")") ? line.rfind(" (") : std::string::npos;
    out += (out.empty() && line.empty() ? "" : "\n") + line.substr(0, asked);
  }
  return out;
}

TEST_F(ProduceGuards, stated_equations) {
  SymbolicContext c;
  c.sizes = {DimDynamic::dynamic_size};
  c.constraint_sizes = {StrictMinMaxConstraint{{2, above}}};
  const Source x = Source::local("x").size(0), y = Source::local("y").size(0), z = Source::local("z").size(0);
  const auto messages = [&](const EqualityConstraint& e, const std::function<void()>& body) {
    trace({{6}, {6}, {13}}, {c, c, c});
    set_debug_name(*env, x, "dx");
    set_debug_name(*env, y, "dy");
    set_debug_name(*env, z, "dz");
    body();
    return as_pytorch("\n" + collect_guards(*env, inputs, {.equalities = &e}).violations());
  };
  const auto both = [&] {
    EXPECT_TRUE(guard(size(0, 0) == size(1, 0)));
    EXPECT_TRUE(guard(size(2, 0) == 2 * size(0, 0) + 1));
  };
  EqualityConstraint stated;
  EXPECT_EQ(messages(stated, both),
            "\nConstraints violated (dy, dz)! For more information, see ShapeEnv::explain().\n"
            "  - The values of dy = L['y'].size()[0] and dx = L['x'].size()[0] must always be equal.\n"
            "  - The values of dz = L['z'].size()[0] must always be related to the values of dx = L['x'].size()[0] by dz = "
            "2*dx + 1.");
  stated.equal = {{x, y}};
  stated.derived = {{z, x, 2, 1}};
  EXPECT_EQ(messages(stated, both), "");
  EXPECT_EQ(messages(stated, [] {}), "") << "what was stated is guarded on";
  EXPECT_EQ(size(1, 0).str(), "s0");
  EXPECT_EQ(size(2, 0).str(), "2*s0 + 1");
  stated.derived = {{z, x, 2, 2}};
  try {
    (void)messages(stated, [] {});
    FAIL() << "no error";
  } catch (const UserError& e) {
    EXPECT_STREQ(e.what(), "Expected input L['z'].size()[0] to be equal to 2*dx + 2, where dx = 6, but got 13");
  }
  stated.derived.clear();
  stated.equal = {{x, z}};
  try {
    (void)messages(stated, [] {});
    FAIL() << "no error";
  } catch (const UserError& e) {
    EXPECT_STREQ(e.what(), "L['x'].size()[0] = 6 is not equal to L['z'].size()[0] = 13");
  }
}

// The messages of torch.export for the same programs, after the first sentence.
TEST_F(ProduceGuards, fixes_are_suggested) {
  const std::vector<NamedDim> dims{{"dx", {0, 1024}, {}}, {"dy", {0, above}, {}}};
  const auto message = [&](const Shape& x, const Shape& y, const std::function<void()>& body) {
    SymbolicContext cx, cy;
    cx.sizes = cy.sizes = {DimDynamic::dynamic_size, DimDynamic::static_size};
    cx.constraint_sizes = {StrictMinMaxConstraint{{0, 1024}}, {}};
    cy.constraint_sizes = {StrictMinMaxConstraint{{0, above}}, {}};
    if (y.empty())
      trace({x}, {cx});
    else
      trace({x, y}, {cx, cy});
    set_debug_name(*env, Source::local("x").size(0), "dx");
    if (!y.empty()) set_debug_name(*env, Source::local("y").size(0), "dy");
    body();
    const EqualityConstraint stated;
    try {
      (void)produce_guards_and_solve(*env, inputs, {.equalities = &stated, .ignore_static = false}, dims);
    } catch (const UserError& e) {
      const std::string text = e.what();
      return as_pytorch(text.substr(text.find('\n')));
    }
    return std::string();
  };
  EXPECT_EQ(message({6, 4}, {}, [&] { EXPECT_TRUE(guard(size(0, 0) % 2 == 0)); }),
            "\n  - Not all values of dx = L['x'].size()[0] in the specified range dx <= 1024 satisfy the generated guard "
            "(L['x'].size()[0] % 2) == 0."
            "\nSuggested fixes:\n  _dx = Dim('_dx', min=1, max=512)\n  dx = 2*_dx");
  EXPECT_EQ(message({6, 4}, {6, 4}, [&] { EXPECT_TRUE(guard(size(0, 0) == size(1, 0))); }),
            "\n  - The values of dy = L['y'].size()[0] and dx = L['x'].size()[0] must always be equal."
            "\n  - Not all values of dx = L['x'].size()[0] in the specified range satisfy the generated guard 2 <= "
            "L['x'].size()[0] and L['x'].size()[0] <= 1024"
            "\nSuggested fixes:\n  dy = dx");
  const std::string specialised = message({6, 4}, {}, [&] { EXPECT_EQ(size(0, 0).guard_int(), 6); });
  EXPECT_TRUE(specialised.starts_with("\n  - You marked dx as dynamic but your code specialized it to be a constant (6)."))
      << specialised;
  EXPECT_TRUE(specialised.ends_with("\nSuggested fixes:\n  dx = 6")) << specialised;
  EXPECT_EQ(message({6, 4}, {5, 4}, [&] { EXPECT_TRUE(guard(size(0, 0) - 1 == size(1, 0))); }),
            "\n  - The values of dx = L['x'].size()[0] must always be related to the values of dy = L['y'].size()[0] by dx "
            "= dy + 1."
            "\n  - Not all values of dy = L['y'].size()[0] in the specified range satisfy the generated guard 2 <= "
            "L['y'].size()[0] and L['y'].size()[0] <= 1023"
            "\nSuggested fixes:\n  dy = Dim('dy', max=1023)\n  dx = dy + 1");
  EXPECT_EQ(
      message({6, 4}, {}, [&] { EXPECT_TRUE(guard(size(0, 0) < 20)); }),
      "\n  - Not all values of dx = L['x'].size()[0] in the specified range dx <= 1024 satisfy the generated guard 2 <= "
      "L['x'].size()[0] and L['x'].size()[0] <= 19"
      "\nSuggested fixes:\n  dx = Dim('dx', max=19)");
  EXPECT_EQ(message({6, 4}, {}, [] {}), "");
}

TEST_F(ProduceGuards, real_inputs_are_held_against_the_guards) {
  trace({{6, 4}, {4}, {10}});
  EXPECT_TRUE(guard(size(0, 0) % 2 == 0));
  EXPECT_TRUE(guard(size(2, 0) == size(0, 0) + size(1, 0)));
  const ProducedGuards g = produce_guards(*env, inputs);
  const auto real = [](int64_t a, int64_t b, int64_t c, int64_t d) {
    return std::vector<ProducedGuards::RealInput>{RealTensor{{a, b}, {b, 1}, 0}, RealTensor{{c}, {1}, 0},
                                                  RealTensor{{d}, {1}, 0}};
  };
  EXPECT_TRUE(g.accepts(real(6, 4, 4, 10)));
  EXPECT_TRUE(g.accepts(real(8, 3, 3, 11)));
  EXPECT_EQ(g.first_failure(real(7, 3, 3, 10)), "(L['x'].size()[0] % 2) == 0");
  EXPECT_EQ(g.first_failure(real(8, 3, 4, 11)), "L['y'].size()[0] == L['x'].size()[1]");
  EXPECT_EQ(g.first_failure(real(8, 3, 3, 12)), "L['z'].size()[0] == L['x'].size()[0] + L['x'].size()[1]");
  EXPECT_EQ(g.first_failure(real(8, 1, 1, 9)), "2 <= L['x'].size()[1]");
  EXPECT_THROW((void)g.accepts({RealTensor{{1}, {1}, 0}}), UserError);

  const ShapeEnv::Assignment bound = bind_symbols(*env, inputs, real(8, 3, 3, 11));
  EXPECT_EQ(bound, (ShapeEnv::Assignment{{"s0", 8}, {"s1", 3}}));
  EXPECT_THROW(bind_symbols(*env, inputs, real(8, 3, 4, 11)), UserError);
}

TEST_F(ProduceGuards, numbers_as_inputs) {
  env = ShapeEnv::make();
  const Source n = Source::local("n"), f = Source::local("f"), m = Source::local("d").item("m").attribute("count");
  const SymInt i = create_unspecified_symbol(*env, 1, n, DimDynamic::dynamic_size),
               j = create_unspecified_symbol(*env, -3, m);
  const SymFloat r = create_float_symbol(*env, 0.5, f);
  EXPECT_EQ(i.str(), "s0");
  EXPECT_EQ(r.str(), "zf0");
  EXPECT_TRUE(guard(i > j));
  EXPECT_TRUE(guard(r * 2.0 < 3.0));
  inputs = {{n, i}, {m, j}, {f, r}};
  const ProducedGuards g = produce_guards(*env, inputs);
  EXPECT_EQ(g.exprs(), (Texts{"L['n'] > L['d']['m'].count", "2.0*L['f'] < 3.0", "not math.isnan(L['f'])"}));
  EXPECT_TRUE(g.accepts({int64_t{4}, int64_t{-9}, 1.25}));
  EXPECT_FALSE(g.accepts({int64_t{4}, int64_t{9}, 1.25}));
  EXPECT_FALSE(g.accepts({int64_t{4}, int64_t{-9}, 2.5}));
  EXPECT_EQ(r.guard_float(), 0.5);
  EXPECT_EQ(r.str(), "0.500000000000000") << "as sympy prints it";
  EXPECT_EQ(produce_guards(*env, inputs).exprs(), (Texts{"L['f'] == 0.5", "L['n'] > L['d']['m'].count"}));
}

TEST_F(ProduceGuards, a_dynamic_dimension_with_a_small_example_is_traced_as_another) {
  SymbolicContext c;
  c.sizes = {DimDynamic::dynamic_size, DimDynamic::duck};
  trace({{1, 4}}, {c});
  EXPECT_EQ(size(0, 0).as_int(), 1) << "its own example fixes it, as in PyTorch";
  c.examples = {5, 4};
  trace({{1, 4}}, {c});
  EXPECT_EQ(geometry(0), "s0 s1 | s1 1 | 0");
  EXPECT_FALSE(guard_or(size(0, 0) == 1, true));
  EXPECT_FALSE(guard(size(0, 0) * 12 == 12));
  EXPECT_TRUE(env->guards().empty());
  c.examples = {4, 5};
  trace({{4, 0}}, {c});
  EXPECT_EQ(geometry(0), "s0 s1 | s1 1 | 0");
}

}  // namespace
}  // namespace calque::produce_guards_test
