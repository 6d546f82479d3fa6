// The text form: what is written reads back, and what is no graph is refused with its place.
#include "calque/graph/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "calque/base/error.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/zeros.h"
#include "calque/sym/shape_env.h"
#include "calque/sym/srepr.h"
#include "support/error_support.h"

namespace calque::text_test {
namespace {

using ::testing::HasSubstr;

std::string error_of(std::string_view text) {
  return test::error_of([&] { parse_graph(text); });
}

void expect_round_trip(const Graph& g) {
  const std::string text = text_with_symbols(g);
  const Graph back = parse_graph(text);
  EXPECT_EQ(text_with_symbols(back), text);
  std::string why;
  EXPECT_TRUE(same_graph(g, back, &why, true)) << why;
}

TEST(Text, every_kind_of_value_reads_back) {
  Graph g;
  Node* x = g.placeholder("x");
  const double inf = std::numeric_limits<double>::infinity();
  const Values values = {
      {},
      true,
      false,
      0,
      -17,
      std::numeric_limits<int64_t>::max(),
      std::numeric_limits<int64_t>::min(),
      0.5,
      -0.0,
      1e300,
      5e-324,
      0.1,
      inf,
      -inf,
      std::nan(""),
      std::complex<double>(1, -2),
      std::complex<double>(0, 0.5),
      std::complex<double>(-1.5, inf),
      "",
      "it's \"quoted\"\n\t\\ \x01",
      "h\u00e9llo \U0001f600 \u200b",
      x,
      list({}),
      list({1, list({x})}),
      tuple({}),
      tuple({x}),
      tuple({1, 2.0}),
      dict({{"a", x}, {1, tuple({})}, {"nested", dict({{"b", 2}})}}),
      DictValue{{{"k", x}}, true},
      DictValue{{}, true},
      SliceValue{{}, x, -1},
      StructValue{"collections.namedtuple", "\"my.Pair\"", {"first", "second"}, {x, 1}},
      StructValue{"mine.Opaque", "", {}, {x}},
      StructValue{"builtins.Ellipsis", "", {}, {}},
      DType::float32,
      DType::bool_,
      DType::float8_e4m3fn,
      Device(),
      Device(DeviceType::cuda, 1),
      Device(DeviceType::meta),
      Layout::strided,
      MemoryFormat::channels_last,
      MemoryFormat::preserve,
      arange(5, DType::float32).view({5, 1}).expand({5, 2}),
      tensor_of<int64_t>({-1, 2}, {2}),
      zeros({0, 3}),
      full({}, std::complex<double>(1, 2)),
      tensor_of<bool>({true, false}, {2}),
  };
  for (const Value& v : values) g.call_function("mine.f", {v}, {{"key", v}});
  g.output(tuple({x}));
  expect_round_trip(g);
}

TEST(Text, every_kind_of_node_reads_back) {
  const char* text =
      "%x : f32[2, 3] = placeholder\n"
      "%ids : i64[4]cuda:0 as 'torch.Tensor' = placeholder[input.ids](None)\n"
      "%_args = placeholder[*args]\n"
      "%w : bf16[3, 2][1, 3] = get_attr[layers.0.weight]\n"
      "%lin = call_module[layers.0](%x, flag=True)\n"
      "%relu = call_method[relu_](%lin)\n"
      "%split : [f32[1, 3], f32[1, 3]] = aten.split.Tensor(%x, 1)\n"
      "%top : (f32[2, 1], i64[2, 1], None) = aten.topk.default(%x, 1)\n"
      "%unknown = my.own.function(%x)\n"
      "%scalar : f64[] = operator.getitem(%split, 0)\n"
      "return {'out': (%relu, [%top]), 'n': None} as 'dict'\n";
  const Graph g = parse_graph(text);
  EXPECT_EQ(g.str(), text);
  EXPECT_EQ(g.find_node("w")->meta.val.to_tensor().dtype(), DType::bfloat16);
  EXPECT_EQ(g.find_node("ids")->meta.val.to_tensor().device(), Device(DeviceType::cuda, 0));
  EXPECT_EQ(g.find_node("ids")->target().text(), "input.ids");
  EXPECT_TRUE(g.find_node("unknown")->target().is_text());
  expect_round_trip(g);
}

TEST(Text, symbols_with_ranges_and_examples_read_back) {
  const char* text =
      "symbol s0 in [2, inf] = 7\n"
      "symbol s1 in [0, 512] = 3\n"
      "symbol u0 in [-inf, inf]\n"
      "%x : f32[s0, 2*s1 + 1] = placeholder\n"
      "%n : Sym(s0*s1) = operator.mul(Sym(s0), Sym(s1))\n"
      "%half : Sym((s0//2)) = operator.floordiv(%n, 2)\n"
      "%test : Sym(s0 > s1) = operator.gt(%n, 0)\n"
      "%most : Sym(Max(u0, s0)) = torch.sym_max(%n, 3)\n"
      "%real : Sym(IntTrueDiv(s0, 2)) = operator.truediv(%n, 2)\n"
      "%both : Sym((s0 > 3) & (s1 < 5)) = operator.and_(%test, %test)\n"
      "%root : Sym(OpaqueUnaryFn_sqrt(ToFloat(s0))) = math.sqrt(%n)\n"
      "%pick : Sym(Piecewise((s0, s0 > s1), (s1, True))) = torch.sym_ite(%test, %n, 3)\n"
      "%near : Sym(RoundToInt(IntTrueDiv(s0, 2))) = builtins.round(%real)\n"
      "%never : Sym(~(Eq(s0, s1))) = operator.not_(%test)\n"
      "%terms : Sym((IntTrueDiv(s0, 8)) - 2*ToFloat(s1)) = operator.sub(%real, %n)\n"
      "%factors : Sym((IntTrueDiv(s0, 8))*ToFloat(s1)**2) = operator.mul(%real, %n)\n"
      "return %n\n";
  const Graph g = parse_graph(text);
  EXPECT_EQ(g.shape_env()->symbol("s0").hint, 7);
  EXPECT_EQ(g.shape_env()->symbol("s1").range.upper, 512);
  EXPECT_FALSE(g.shape_env()->symbol("u0").hint.has_value());
  EXPECT_EQ(str(g.find_node("x")->meta.val.to_tensor().sym_sizes()), "[s0, 2*s1 + 1]");
  expect_round_trip(g);
}

// Expressions of every kind that the text can say, of which many are no expression: what is read is written so that it is read again.
class RandomExpression {
 public:
  explicit RandomExpression(unsigned seed) : chance_(seed) {}
  std::string make(int depth) {
    const auto sub = [&] { return make(depth - 1); };
    if (depth == 0 || below(6) == 0) {
      static const char* const leaves[] = {"s0", "s1", "u0", "2", "3", "0", "7", "2.5", "ToFloat(s1)", "True"};
      return leaves[below(std::size(leaves))];
    }
    switch (below(4)) {
      case 0: {
        static const char* const operators[] = {"+",  "-", "*",  "//", "/",  "%", "**", "<",
                                                "<=", ">", ">=", "==", "!=", "&", "|"};
        const std::string left = sub();
        return "(" + left + " " + operators[below(std::size(operators))] + " " + sub() + ")";
      }
      case 1: {
        static const char* const signs[] = {"-", "~"};
        return signs[below(8) == 0] + ("(" + sub() + ")");
      }
      case 2: {
        static const char* const functions[] = {"ToFloat", "FloorToInt", "CeilToInt",          "TruncToInt",
                                                "Abs",     "RoundToInt", "OpaqueUnaryFn_sqrt", "OpaqueUnaryFn_cos"};
        return functions[below(std::size(functions))] + ("(" + sub() + ")");
      }
      default: {
        static const char* const functions[] = {
            "Max",          "Min",      "Mod", "PythonMod",    "FloorDiv",     "CleanDiv", "IntTrueDiv",
            "FloatTrueDiv", "FloatPow", "Eq",  "PowByNatural", "RoundDecimal", "Ne"};
        const std::string left = sub();
        return functions[below(std::size(functions))] + ("(" + left + ", " + sub() + ")");
      }
    }
  }

 private:
  size_t below(size_t n) { return chance_() % n; }
  std::mt19937 chance_;
};

bool srepr_reads_back(ShapeEnv& env, const Value& v) {
  if (v.kind() == Value::Kind::integer) return identical(parse_srepr(env, srepr(v.to_sym_int())), v.to_sym_int());
  if (v.kind() == Value::Kind::floating)
    return parse_srepr_float(env, srepr(v.to_sym_float())).str() == v.to_sym_float().str();
  return parse_srepr_bool(env, srepr(v.to_sym_bool())).str() == v.to_sym_bool().str();
}

TEST(Text, random_expressions_read_back) {
  size_t read = 0;
  for (unsigned seed = 0; seed < 20000; ++seed) {
    const std::string expression = RandomExpression(seed).make(1 + static_cast<int>(seed % 4));
    std::string printed;
    Graph g;
    try {
      g = parse_graph("%x = function(Sym(" + expression + "))");
      printed = text_with_symbols(g);
    } catch (const UserError&) {
      continue;
    }
    ++read;
    const Graph back = parse_graph(printed);
    EXPECT_TRUE(same_graph(g, back)) << "seed " << seed << ": " << expression << "\n" << printed << text_with_symbols(back);
    EXPECT_TRUE(srepr_reads_back(*g.shape_env(), g.find_node("x")->args()[0])) << "seed " << seed << ": " << expression;
    if (HasFailure()) return;
  }
  EXPECT_GT(read, 5000U);
}

TEST(Text, symbols_of_a_given_environment_are_used) {
  const auto env = ShapeEnv::make();
  const SymInt s = env->create_size(5, "x, dimension 0");
  const Graph g = parse_graph("%x : f32[" + s.str() + "] = placeholder\nreturn %x", env);
  EXPECT_TRUE(identical(g.find_node("x")->meta.val.to_tensor().sym_sizes()[0], s));
}

TEST(Text, comments_and_lines_of_any_width) {
  const Graph g = parse_graph(
      "# a comment\n\n  %x = placeholder  # the input\r\n\t%y = operator.add(%x,\n      [1,\n 2])\n# end\nreturn %y # done");
  EXPECT_EQ(g.str(), "%x = placeholder\n%y = operator.add(%x, [1, 2])\nreturn %y\n");
}

TEST(Text, what_is_no_graph_is_refused_with_its_place) {
  EXPECT_EQ(error_of("%x = placeholder\n%y = operator.add(%x, %z)\n"),
            "graph text, line 2, column 23: %z is not defined above, found '%z)'");
  EXPECT_THAT(error_of("%x = placeholder\n%x = placeholder"), HasSubstr("line 2, column 2: %x is defined twice"));
  EXPECT_THAT(error_of("%x placeholder"), HasSubstr("line 1, column 4: expected '=', found 'placeholder'"));
  EXPECT_THAT(error_of("x = placeholder"), HasSubstr("expected '%name = ...', 'return ...' or 'symbol ...'"));
  EXPECT_THAT(error_of("%x = "), HasSubstr("expected what the node does, found the end of the text"));
  EXPECT_THAT(error_of("%x = get_attr"), HasSubstr("expected [name] after get_attr"));
  EXPECT_THAT(error_of("%x = placeholder(1, 2)"), HasSubstr("a placeholder takes its default alone"));
  EXPECT_THAT(error_of("%x = get_attr[w](1)"), HasSubstr("a get_attr takes no arguments"));
  EXPECT_THAT(error_of("%x = f(1"), HasSubstr("expected ','"));
  EXPECT_THAT(error_of("%x = f(a=1, 2)"), HasSubstr("a positional argument after a keyword"));
  EXPECT_THAT(error_of("%x = f('abc"), HasSubstr("does not end"));
  EXPECT_THAT(error_of("%x = f(99999999999999999999)"), HasSubstr("expected a number"));
  EXPECT_THAT(error_of("%x = f(1.2.3)"), HasSubstr("expected a number"));
  EXPECT_THAT(error_of("%x = f(nothing)"), HasSubstr("expected a value"));
  EXPECT_THAT(error_of("%x : f33[2] = placeholder"), HasSubstr("expected a dtype such as f32"));
  EXPECT_THAT(error_of("%x : f32[-1] = placeholder"), HasSubstr("cannot have the size -1"));
  EXPECT_THAT(error_of("%x : f32[2][1, 1] = placeholder"), HasSubstr("as many strides as sizes"));
  EXPECT_THAT(error_of("%x : f32[2]moon = placeholder"), HasSubstr("moon"));
  EXPECT_THAT(error_of("%x : f32[Foo(2)] = placeholder"), HasSubstr("no function Foo of 1 arguments"));
  EXPECT_THAT(error_of("%x : f32[1//0] = placeholder"), HasSubstr("line 1, column"));
  EXPECT_THAT(error_of("return None\nreturn None"), HasSubstr("one 'return'"));
  EXPECT_THAT(error_of("return None\n%x = placeholder"), HasSubstr("a node after 'return'"));
  EXPECT_THAT(error_of("return None None"), HasSubstr("expected the end of the line"));
  EXPECT_THAT(error_of("return {%x: 1}"), HasSubstr("not defined"));
  EXPECT_THAT(error_of("return tensor(f32[2], '0000')"), HasSubstr("the bytes of 2 elements"));
  EXPECT_THAT(error_of("return " + std::string(10000, '[')), HasSubstr("nested too deeply"));
  EXPECT_THAT(error_of("return Sym(" + std::string(10000, '(')), HasSubstr("nested too deeply"));
  EXPECT_THAT(error_of("return Sym(" + std::string(10000, '~')), HasSubstr("nested too deeply"));
  EXPECT_THAT(error_of("return 'a\xee'"), HasSubstr("line 1, column 10: the text is no UTF-8"));
  EXPECT_THAT(error_of("symbol s0 in [1.5, 2]"), HasSubstr("expected an integer"));
}

// Any damage gives a graph or a UserError, never anything else.
TEST(Text, damaged_text_is_an_error_or_a_graph) {
  const std::string text =
      "symbol s0 in [2, inf] = 7\n%x : f32[s0, 3][3, 1] = placeholder\n%y : (f32[2*s0], None) = aten.add.Tensor(%x, {'a': "
      "[1, 2.5, (1+2j)]}, alpha=slice(None, -1, None))\n"
      "%z = call_method[relu](tensor(i8[2], '01ff'), struct('a', 'b', c=%y), device(type='cuda', index=0))\nreturn (%z, "
      "OrderedDict([(1, 2)]))\n";
  std::mt19937 random(7);
  const std::string characters = "%=()[]{},.:'\"\\ \n0123456789-+*/abcsSymNonetensor#";
  for (int i = 0; i < 20000; ++i) {
    std::string damaged = text;
    const size_t edits = 1 + random() % 3;
    for (size_t e = 0; e < edits; ++e) {
      const size_t at = random() % damaged.size();
      const char c = characters[random() % characters.size()];
      switch (random() % 3) {
        case 0: damaged[at] = c; break;
        case 1: damaged.erase(at, 1 + random() % 5); break;
        default: damaged.insert(at, 1, c); break;
      }
    }
    try {
      parse_graph(damaged);
    } catch (const UserError&) {
    }
  }
}

TEST(Format, nodes_inside_a_structure_are_marked_as_such) {
  Graph g;
  Node* x = g.placeholder("x");
  StructValue point;
  point.type = "shapes.Point";
  point.fields = {"a", "b"};
  point.items = {x, list({Value(x), 1})};
  Node* call = g.call_function(get_function("operator.getitem"), {Value(point), 0});
  EXPECT_EQ(call->format_node(),
            "%getitem : [num_users=0] = call_function[target=operator.getitem](args = "
            "(Point(a=%x, b=[%x, 1]), 0), kwargs = {})");
}

}  // namespace
}  // namespace calque::text_test
