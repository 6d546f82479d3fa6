// Random expressions: what the normal forms, their expansion, simplification and text evaluate to is what plain integer
// arithmetic gives, and every value lies in the range that was claimed for it.
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "calque/base/error.h"
#include "calque/sym/expr.h"
#include "calque/sym/shape_env.h"
#include "calque/sym/srepr.h"
#include "calque/sym/sym_math.h"
#include "sym/env_impl.h"

namespace calque::random_test {
namespace {

using Values = std::vector<int64_t>;

// A symbolic value and the plain computation that it stands for. The computation throws on division by zero.
struct Pair {
  SymInt symbolic;
  std::function<int64_t(const Values&)> plain;
};

struct DivisionByZero {};

int64_t python_floor_div(int64_t a, int64_t b) {
  if (b == 0) throw DivisionByZero{};
  const int64_t q = a / b;
  return (a % b != 0 && (a % b < 0) != (b < 0)) ? q - 1 : q;
}

int64_t python_mod(int64_t a, int64_t b) { return a - b * python_floor_div(a, b); }

class Generator {
 public:
  Generator(ShapeEnv& env, std::vector<SymInt> symbols, unsigned seed)
      : env_(env), symbols_(std::move(symbols)), rng_(seed) {}

  int pick(int n) { return std::uniform_int_distribution<int>(0, n - 1)(rng_); }

  Pair make(int depth) {
    if (depth == 0 || pick(8) == 0) return leaf();
    const Pair a = make(depth - 1), b = make(depth - 1);
    switch (pick(10)) {
      case 0:
      case 1: return {a.symbolic + b.symbolic, [=](const Values& v) { return a.plain(v) + b.plain(v); }};
      case 2:
      case 3: return {a.symbolic - b.symbolic, [=](const Values& v) { return a.plain(v) - b.plain(v); }};
      case 4:
      case 5: return {a.symbolic * b.symbolic, [=](const Values& v) { return a.plain(v) * b.plain(v); }};
      case 6: {
        const Pair d = divisor(b);
        return {floor_div(a.symbolic, d.symbolic),
                [=](const Values& v) { return python_floor_div(a.plain(v), d.plain(v)); }};
      }
      case 7: {
        const Pair d = divisor(b);
        return {a.symbolic % d.symbolic, [=](const Values& v) { return python_mod(a.plain(v), d.plain(v)); }};
      }
      case 8: return {sym_max(a.symbolic, b.symbolic), [=](const Values& v) { return std::max(a.plain(v), b.plain(v)); }};
      default: return {sym_min(a.symbolic, b.symbolic), [=](const Values& v) { return std::min(a.plain(v), b.plain(v)); }};
    }
  }

 private:
  Pair leaf() {
    if (pick(3) == 0) {
      const int64_t n = pick(9) - 3;
      return {n, [n](const Values&) { return n; }};
    }
    const size_t i = static_cast<size_t>(pick(static_cast<int>(symbols_.size())));
    return {symbols_[i], [i](const Values& v) { return v[i]; }};
  }
  // Not the plain zero, which is an error at once.
  Pair divisor(const Pair& b) {
    if (b.symbolic.is_symbolic() || b.symbolic.as_int() != 0) return b;
    return {2, [](const Values&) { return 2; }};
  }

  ShapeEnv& env_;
  std::vector<SymInt> symbols_;
  std::mt19937 rng_;
};

TEST(RandomExpressions, every_form_has_the_value_of_plain_arithmetic) {
  size_t compared = 0;
  for (unsigned seed = 0; seed < 1500; ++seed) {
    const auto env = ShapeEnv::make();
    const SymInt s0 = env->create_symbol(5, {2, ValueRange::unbounded_above}, "a");
    const SymInt s1 = env->create_symbol(3, {0, 40}, "b");
    const SymInt u0 = env->create_unbacked();
    const SymInt u1 = env->create_unbacked({-7, 9});
    Generator generator(*env, {s0, s1, u0, u1}, seed);
    Pair pair;
    try {
      pair = generator.make(5);
    } catch (const UserError&) {
      continue;  // a divisor that simplified to zero, or coefficients beyond 64 bits
    }
    ShapeEnv::Impl& impl = env->impl();
    const SymInt expanded(impl.pool.expand(impl.expr(pair.symbolic)));
    const SymInt simplified = env->simplify(pair.symbolic);
    const SymInt read_back = parse_srepr(*env, srepr(pair.symbolic));
    const ValueRange range = env->range(pair.symbolic);
    std::mt19937 rng(seed);
    const auto between = [&](int64_t a, int64_t b) { return std::uniform_int_distribution<int64_t>(a, b)(rng); };
    for (int i = 0; i < 12; ++i) {
      const Values v{between(2, 20), between(0, 40), between(-20, 20), between(-7, 9)};
      const ShapeEnv::Assignment named{{"s0", v[0]}, {"s1", v[1]}, {"u0", v[2]}, {"u1", v[3]}};
      int64_t expected;
      try {
        expected = pair.plain(v);
      } catch (const DivisionByZero&) {
        continue;
      }
      const auto text = [&] {
        return pair.symbolic.str() + " at " + std::to_string(v[0]) + " " + std::to_string(v[1]) + " " +
               std::to_string(v[2]) + " " + std::to_string(v[3]) + ", seed " + std::to_string(seed);
      };
      ASSERT_EQ(env->evaluate(pair.symbolic, named), expected) << text();
      ASSERT_EQ(env->evaluate(expanded, named), expected) << expanded.str() << " for " << text();
      ASSERT_EQ(env->evaluate(simplified, named), expected) << simplified.str() << " for " << text();
      ASSERT_EQ(env->evaluate(read_back, named), expected) << read_back.str() << " for " << text();
      ASSERT_GE(expected, range.lower) << text();
      ASSERT_LE(expected, range.upper) << text();
      ++compared;
    }
  }
  EXPECT_GT(compared, 10000U);
}

TEST(RandomExpressions, a_known_comparison_is_never_wrong) {
  size_t known_count = 0;
  for (unsigned seed = 0; seed < 3000; ++seed) {
    const auto env = ShapeEnv::make();
    const SymInt s0 = env->create_symbol(5, {2, ValueRange::unbounded_above}, "a");
    const SymInt s1 = env->create_symbol(3, {0, 40}, "b");
    const SymInt u0 = env->create_unbacked({-9, 30});
    Generator generator(*env, {s0, s1, u0}, seed);
    try {
      // Learn some conditions, and hold every later decision against all values for which they are true.
      std::vector<SymBool> learnt;
      std::vector<std::function<bool(const Values&)>> plain_learnt;
      for (int i = 0; i < 6; ++i) {
        const Pair a = generator.make(2), b = generator.make(2);
        SymBool c;
        std::function<bool(const Values&)> plain;
        switch (generator.pick(4)) {
          case 0:
            c = a.symbolic == b.symbolic;
            plain = [=](const Values& v) { return a.plain(v) == b.plain(v); };
            break;
          case 1:
            c = a.symbolic < b.symbolic;
            plain = [=](const Values& v) { return a.plain(v) < b.plain(v); };
            break;
          case 2:
            c = a.symbolic != b.symbolic;
            plain = [=](const Values& v) { return a.plain(v) != b.plain(v); };
            break;
          default:
            c = a.symbolic >= b.symbolic;
            plain = [=](const Values& v) { return a.plain(v) >= b.plain(v); };
            break;
        }
        bool value = false;
        const bool known = c.is_known(value);
        const std::string text = c.str();
        if (known) {
          ++known_count;
          std::mt19937 rng(seed);
          for (int n = 0; n < 300; ++n) {
            const auto between = [&](int64_t x, int64_t y) { return std::uniform_int_distribution<int64_t>(x, y)(rng); };
            const Values v{between(2, 12), between(0, 12), between(-9, 12)};
            try {
              bool applies = true;
              for (const auto& p : plain_learnt) applies &= p(v);
              if (applies) {
                ASSERT_EQ(plain(v), value) << text << " seed " << seed << " at " << v[0] << " " << v[1] << " " << v[2];
              }
            } catch (const DivisionByZero&) {
            }
          }
        } else if (generator.pick(2) == 0) {
          if (check(c)) {
            learnt.push_back(c);
            plain_learnt.push_back(plain);
          }
        }
      }
    } catch (const UserError&) {
      continue;  // division by zero, or conditions that contradict each other
    }
  }
  EXPECT_GT(known_count, 2000U);
}

}  // namespace
}  // namespace calque::random_test
