// Modules in modules, hooks, shared modules, constants, and state that is written.
#include "calque/graph/higher_order.h"
#include "calque/nn/nn.h"
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/einsum.h"
#include "calque/op/aten/norms.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/autocast.h"
#include "calque/op/literal.h"
#include "export/programs.h"

namespace calque::peers {
namespace {

using DS = DynamicShapes;

#define TAKES_X static constexpr const char* forward_arguments[] = {"x"}

struct Part : Typed<Part> {
  TAKES_X;
  Child<Linear> lin = child<Linear>("lin", 4, 4);
  Tensor forward(const Tensor& x) { return lin(x).relu(); }
};

struct Deep : Typed<Deep> {
  TAKES_X;
  Child<Sequential> layers =
      child<Sequential>("layers", std::vector<std::shared_ptr<Module>>{
                                      std::make_shared<Part>(), std::make_shared<Linear>(4, 4), std::make_shared<Part>()});
  Child<Linear> out = child<Linear>("out", 4, 2);
  Tensor forward(const Tensor& x) { return out((*layers)(x) + 1); }
};

struct Listed : Typed<Listed> {
  TAKES_X;
  Child<ModuleList> layers = child<ModuleList>(
      "layers",
      std::vector<std::shared_ptr<Module>>{std::make_shared<Part>(), std::make_shared<Part>(), std::make_shared<Part>()});
  Tensor forward(const Tensor& x) {
    Tensor y = x;
    for (int64_t i = 0; i < 3; ++i) y = layers->at<Part>(i)(y) + i;
    return y;
  }
};

struct Quiet : Typed<Quiet> {
  TAKES_X;
  Child<Part> frozen = child<Part>("frozen");
  Child<Linear> head = child<Linear>("head", 4, 2);
  Tensor forward(const Tensor& x) {
    Tensor h;
    {
      const GradModeScope no_grad(false);
      h = frozen(x);
    }
    return head(h);
  }
};

struct QuietPart : Typed<QuietPart> {
  TAKES_X;
  Child<Linear> lin = child<Linear>("lin", 4, 4);
  Tensor forward(const Tensor& x) {
    Tensor y;
    {
      const GradModeScope no_grad(false);
      y = lin(x);
    }
    return y.sin();
  }
};

struct HoldsQuiet : Typed<HoldsQuiet> {
  TAKES_X;
  Child<QuietPart> part = child<QuietPart>("part");
  Tensor forward(const Tensor& x) {
    const Tensor a = part(x);
    return a + part(x + 1);
  }
};

struct Half : Typed<Half> {
  TAKES_X;
  Child<Linear> first = child<Linear>("first", 4, 4);
  Child<Linear> second = child<Linear>("second", 4, 2);
  Tensor forward(const Tensor& x) {
    Tensor h;
    {
      const AutocastScope autocast(DeviceType::cpu, DType::bfloat16);
      h = first(x);
    }
    return second(h.to(DType::float32));
  }
};

struct Shared : Typed<Shared> {
  TAKES_X;
  std::shared_ptr<Part> one = std::make_shared<Part>();
  Child<Part> a = child_module("a", one);
  Child<Part> b = child_module("b", one);
  Tensor forward(const Tensor& x) {
    const Tensor y = a(x);
    return b(y + 1);
  }
};

struct SharedInList : Typed<SharedInList> {
  TAKES_X;
  std::shared_ptr<Part> one = std::make_shared<Part>();
  Child<Sequential> layers =
      child<Sequential>("layers", std::vector<std::shared_ptr<Module>>{one, std::make_shared<Linear>(4, 4), one});
  Tensor forward(const Tensor& x) { return (*layers)(x); }
};

struct Thrice : Typed<Thrice> {
  TAKES_X;
  Child<Part> part = child<Part>("part");
  Tensor forward(const Tensor& x) { return part(part(part(x) + 1).sin()); }
};

struct Hooked : Typed<Hooked> {
  TAKES_X;
  Child<Part> part = child<Part>("part");
  Tensor forward(const Tensor& x) { return part(x) + 1; }
};

struct Counting : Typed<Counting> {
  TAKES_X;
  Buffer count = register_buffer("count", zeros({1}));
  Tensor forward(const Tensor& x) {
    count->add_(1);
    return x * *count;
  }
};

struct HoldsCounting : Typed<HoldsCounting> {
  TAKES_X;
  Child<Counting> counter = child<Counting>("counter");
  Tensor forward(const Tensor& x) { return counter(counter(x) + 1); }
};

struct Remembering : Typed<Remembering> {
  TAKES_X;
  Buffer last = register_buffer("last", zeros({3}));
  Tensor forward(const Tensor& x) {
    const Tensor y = x + *last;
    last = y.sin();
    return y;
  }
};

struct HoldsRemembering : Typed<HoldsRemembering> {
  TAKES_X;
  Child<Remembering> memory = child<Remembering>("memory");
  Tensor forward(const Tensor& x) { return memory(x) * 2; }
};

struct WritesQuietly : Typed<WritesQuietly> {
  TAKES_X;
  Buffer total = register_buffer("total", zeros({3}));
  Tensor forward(const Tensor& x) {
    {
      const GradModeScope no_grad(false);
      total->add_(x);
    }
    return x + *total;
  }
};

struct Cache : Typed<Cache> {
  TAKES_X;
  Buffer cache = register_buffer("cache", zeros({4, 3}));
  Tensor forward(const Tensor& x) {
    cache->select(0, 1).copy_(x);
    return cache->sum(IntList{0});
  }
};

struct GivesState : Typed<GivesState> {
  TAKES_X;
  Buffer state = register_buffer("state", ones({3}));
  Parameter weight = register_parameter("weight", filled({3}, 2));
  Value forward(const Tensor& x) { return tuple({*state, x + *weight, *weight}); }
};

struct Table : Typed<Table> {
  TAKES_X;
  Buffer table = register_buffer("table", filled({3}, 5), false);
  Tensor forward(const Tensor& x) { return x * *table; }
};

struct HoldsTable : Typed<HoldsTable> {
  TAKES_X;
  Child<Table> inner = child<Table>("inner");
  Tensor forward(const Tensor& x) { return inner(x) + *inner->table; }
};

struct Branching : Typed<Branching> {
  TAKES_X;
  Parameter weight = register_parameter("weight", filled({3}, 2));
  Buffer shift = register_buffer("shift", filled({3}, 3));
  Tensor forward(const Tensor& x) {
    return cond(
               x.sum() > 0, [&](const Values& in) -> Value { return in[0].to_tensor() * *weight + *shift; },
               [&](const Values& in) -> Value { return in[0].to_tensor() - *weight; }, {x})
        .to_tensor();
  }
};

struct Choosing : Typed<Choosing> {
  TAKES_X;
  Child<Linear> left = child<Linear>("left", 4, 4);
  Child<Linear> right = child<Linear>("right", 4, 4);
  Tensor forward(const Tensor& x) {
    return cond(
               x.sum() > 0, [&](const Values& in) -> Value { return left(in[0].to_tensor()); },
               [&](const Values& in) -> Value { return right(in[0].to_tensor()).sin(); }, {x})
        .to_tensor();
  }
};

struct Mapping : Typed<Mapping> {
  TAKES_X;
  Child<Part> part = child<Part>("part");
  Tensor forward(const Tensor& x) {
    return map([&](const Values& in) -> Value { return part(in[0].to_tensor()); }, x).to_tensor();
  }
};

struct Pair : Typed<Pair> {
  static constexpr const char* forward_arguments[] = {"x", "y"};
  Child<Linear> lin = child<Linear>("lin", 4, 4);
  Value forward(const Tensor& x, const Tensor& y) {
    const Tensor a = lin(x);
    return dict({{"sum", a + y}, {"parts", tuple({a, y * 2})}});
  }
};

struct HoldsPair : Typed<HoldsPair> {
  static constexpr const char* forward_arguments[] = {"x", "y"};
  Child<Pair> pair = child<Pair>("pair");
  Tensor forward(const Tensor& x, const Tensor& y) {
    const Value out = pair(x, y);
    return out.to_dict().find("sum")->to_tensor() + out.to_dict().find("parts")->to_items()[1].to_tensor();
  }
};

struct Defaults : Typed<Defaults> {
  static constexpr const char* forward_arguments[] = {"x", "scale", "mask"};
  static Values forward_defaults() { return {2.0, None{}}; }
  Tensor forward(const Tensor& x, double scale = 2.0, const std::optional<Tensor>& mask = {}) {
    const Tensor y = x * scale;
    return mask ? y * *mask : y;
  }
};

struct Results : Typed<Results> {
  TAKES_X;
  Child<Linear> lin = child<Linear>("lin", 4, 2);
  Value forward(const Tensor& x) {
    const Tensor y = lin(x);
    return dict({{"logits", y}, {"hidden", list({x, y.sin()})}});
  }
};

struct Noisy : Typed<Noisy> {
  TAKES_X;
  Child<BatchNorm1d> norm = child<BatchNorm1d>("norm", 4);
  Child<Dropout> drop = child<Dropout>("drop", 0.5);
  Tensor forward(const Tensor& x) { return drop(norm(x)); }
};

#undef TAKES_X

}  // namespace

void add_structure_cases(std::vector<ExportCase>& cases) {
  const auto add = [&]<class M>(const std::string& name, const std::shared_ptr<M>& m, const Values& args,
                                const ExportOptions& options = {},
                                const std::vector<Values>& others = {}) { add_case(cases, name, m, args, options, others); };
  const Tensor x3 = filled({3}), x34 = filled({3, 4});
  add("deep", std::make_shared<Deep>(), {x34}, {.dynamic_shapes = DS::dict({{"x", DS::dict({{0, Dim("batch")}})}})},
      {{filled({5, 4})}});
  add("module_list", std::make_shared<Listed>(), {x34});
  add("child_without_gradients", std::make_shared<Quiet>(), {x34});
  add("region_in_child", std::make_shared<HoldsQuiet>(), {x34});
  add("autocast_module", std::make_shared<Half>(), {x34});
  add("shared_module", std::make_shared<Shared>(), {x34});
  add("shared_in_list", std::make_shared<SharedInList>(), {x34});
  add("called_three_times", std::make_shared<Thrice>(), {x34});
  const auto hooked = std::make_shared<Hooked>();
  hooked->part->register_forward_hook([](Module&, const Values&, const Kwargs&,
                                         const Value& result) -> std::optional<Value> { return result.to_tensor().sin(); });
  add("forward_hook", hooked, {x34});
  const auto pre_hooked = std::make_shared<Hooked>();
  pre_hooked->part->register_forward_pre_hook(
      [](Module&, const Values& args, const Kwargs& kwargs) -> std::optional<Module::Call> {
        return Module::Call{{args[0].to_tensor() * 2}, kwargs};
      });
  add("forward_pre_hook", pre_hooked, {x34});
  const auto root_hooked = std::make_shared<Hooked>();
  root_hooked->register_forward_hook([](Module&, const Values&, const Kwargs&, const Value& result) -> std::optional<Value> {
    return result.to_tensor().cos();
  });
  add("root_hook", root_hooked, {x34});
  add("counted_child", std::make_shared<HoldsCounting>(), {x3});
  add("assigned_in_child", std::make_shared<HoldsRemembering>(), {x3});
  add("written_without_gradients", std::make_shared<WritesQuietly>(), {x3});
  add("written_through_a_view", std::make_shared<Cache>(), {x3});
  add("buffer_returned", std::make_shared<GivesState>(), {x3});
  add("non_persistent_child", std::make_shared<HoldsTable>(), {x3});
  add("cond_with_state", std::make_shared<Branching>(), {x3});
  add("cond_calls_modules", std::make_shared<Choosing>(), {x34});
  add("map_calls_module", std::make_shared<Mapping>(), {x34});
  add("preserved_deep", std::make_shared<Deep>(), {x34}, {.preserve_module_call_signature = {"layers.0.lin", "out"}});
  add("preserved_tree", std::make_shared<HoldsPair>(), {x34, filled({3, 4}, 1)},
      {.preserve_module_call_signature = {"pair"}});
  add("defaults", std::make_shared<Defaults>(), {x3});
  add("none_given", std::make_shared<Defaults>(), {x3, 3.0, None{}});
  add("dict_result", std::make_shared<Results>(), {x34}, {.dynamic_shapes = DS::dict({{"x", DS::dict({{0, Dim::AUTO}})}})},
      {{filled({5, 4})}});
  add("dropout_and_norm", std::make_shared<Noisy>(), {filled({4, 4})});
  const Tensor captured = filled({3}, 6);
  add("captured_tensor",
      std::make_shared<const TraceableFunction>(traceable([captured](const Tensor& x) { return x + captured * 2; }, {"x"})),
      {x3});
  add("refused_unknown_preserved", std::make_shared<Part>(), {x34}, {.preserve_module_call_signature = {"nowhere"}});
}

}  // namespace calque::peers
