#include "calque/trace/fake.h"

#include <algorithm>
#include <typeinfo>
#include <unordered_map>

#include "calque/base/error.h"
#include "calque/op/aten/empty.h"
#include "calque/op/aten/statistics.h"
#include "calque/op/owner.h"
#include "calque/op/tree.h"
#include "calque/trace/make_fx.h"
#include "op/value_items.h"
#include "op/well_known.h"
#include "trace/fake_cache.h"
#include "trace/pytorch_guards.h"

namespace calque {

namespace {

constexpr int64_t largest_constant = 1;  // elements; as PyTorch has it

bool small_enough(const Tensor& t) { return !t.is_symbolic() && t.numel() <= largest_constant; }

template <class F>
void each_tensor(const Value& v, F&& f) {
  if (v.is_tensor())
    f(v.to_tensor());
  else if (v.kind() == Value::Kind::list || v.kind() == Value::Kind::tuple)
    for (const Value& item : v.to_items()) each_tensor(item, f);
}
template <class F>
void each_tensor(const Values& args, F&& f) {
  for (const Value& v : args) each_tensor(v, f);
}

Value map_tensors(const Value& v, const std::function<Value(const Tensor&)>& f) {
  return v.is_tensor() ? f(v.to_tensor()) : map_items(v, [&](const Value& item) { return map_tensors(item, f); });
}

// An unbacked number of the dtype's kind.
Value unbacked_number(ShapeEnv& env, DType dtype) {
  if (dtype == DType::bool_) return env.create_unbacked_bool();
  if (is_integral(dtype, false)) return env.create_unbacked();
  if (is_floating(dtype)) return env.create_unbacked_float();
  return {};
}

}  // namespace

// What hangs on a fake tensor. Most tensors of a mode share one, of which nothing is known. One that stands for a real
// tensor in the mode's memo hangs on that tensor alone: with it the entry goes, though copies may live on.
class FakeExtra final : public TensorOwner {
 public:
  // What is known of a tensor, and of its copies, beside the layout.
  struct Known {
    explicit Known(FakeMode::Impl& mode) : mode(mode) {}
    ~Known();
    Known(const Known&) = delete;
    Known& operator=(const Known&) = delete;
    void set_constant(Tensor value);

    FakeMode::Impl& mode;
    std::string source;  // the input's name
    Tensor real;         // what it was made from: the key of the mode's memo stays alive with it
    Tensor constant;
    struct Memo {
      uint32_t version = 0;
      Value symbol;
    };
    Memo memo[3];
  };

  explicit FakeExtra(std::shared_ptr<FakeMode> mode, std::shared_ptr<Known> known = nullptr)
      : mode(std::move(mode)), known(std::move(known)) {}
  ~FakeExtra() override;

  Value answer(const Operator& op, const Values& args) override { return mode->answer(op, args); }
  Value unknown(const Tensor& t, Unknown what) override;
  std::shared_ptr<TensorExtra> for_copy(const std::shared_ptr<TensorExtra>& self) override {
    return made ? std::make_shared<FakeExtra>(mode, known) : self;
  }
  bool has_constant() const { return known && known->constant.defined(); }
  // What is known of `t`, to be added to.
  static Known& known_of(const Tensor& t);

  std::shared_ptr<FakeMode> mode;  // outlives what is known
  std::shared_ptr<Known> known;
  const TensorImpl* made = nullptr;
};

struct FakeMode::Impl {
  std::unordered_map<const TensorImpl*, TensorImpl*> fake_of;            // a real tensor's living fake one
  std::unordered_map<const Storage*, Storage*> storage_of;               // a real storage's living fake one
  std::unordered_multimap<const Storage*, FakeExtra::Known*> constants;  // by the storage of what they hold
  std::weak_ptr<FakeExtra> plain;                                        // the one that most tensors share
  FakeCache cache;

  std::shared_ptr<FakeExtra> shared_extra(std::shared_ptr<FakeMode> mode) {
    std::shared_ptr<FakeExtra> extra = plain.lock();
    if (!extra) {
      extra = std::make_shared<FakeExtra>(std::move(mode));
      plain = extra;
    }
    return extra;
  }
  void forget_constant(FakeExtra::Known* known) {
    if (!known->constant.defined()) return;
    const auto [first, last] = constants.equal_range(known->constant.storage().get());
    for (auto it = first; it != last; ++it)
      if (it->second == known) {
        constants.erase(it);
        break;
      }
    known->constant = Tensor();
  }
  // What is written in a way that is not followed: nothing that lies in this storage is known any more.
  void invalidate(const Tensor& constant) {
    const Storage* storage = constant.storage().get();
    const auto [first, last] = constants.equal_range(storage);
    std::vector<FakeExtra::Known*> holders;
    for (auto it = first; it != last; ++it) holders.push_back(it->second);
    constants.erase(storage);
    for (FakeExtra::Known* holder : holders) holder->constant = Tensor();
  }
};

FakeExtra::Known::~Known() { mode.forget_constant(this); }

void FakeExtra::Known::set_constant(Tensor value) {
  mode.forget_constant(this);
  constant = std::move(value);
  if (constant.defined()) mode.constants.emplace(constant.storage().get(), this);
}

FakeExtra::~FakeExtra() {
  if (made) mode->impl_->fake_of.erase(made);
}

namespace {

FakeExtra* extra_of(const Tensor& t) {
  if (!t.defined() || !t.impl().special) return nullptr;
  TensorExtra* extra = t.impl().extra.get();
  return extra && typeid(*extra) == typeid(FakeExtra) ? static_cast<FakeExtra*>(extra) : nullptr;
}

}  // namespace

FakeExtra::Known& FakeExtra::known_of(const Tensor& t) {
  FakeExtra* extra = extra_of(t);
  internal_assert(extra != nullptr, "a fake tensor has a mode");
  if (!extra->known) {
    auto own = std::make_shared<FakeExtra>(extra->mode, std::make_shared<Known>(*extra->mode->impl_));
    extra = own.get();
    t.impl().extra = std::move(own);
  }
  return *extra->known;
}

Value FakeExtra::unknown(const Tensor& t, Unknown what) {
  const std::shared_ptr<ShapeEnv>& env = mode->env();
  if (!env) return {};
  Known& about = known_of(t);
  Known::Memo& remembered = about.memo[static_cast<size_t>(what)];
  const Tensor& real = about.real;
  if (!remembered.symbol.is_none() && remembered.version == t.version()) return remembered.symbol;
  remembered.version = t.version();
  if (what == Unknown::value && mode->options().backed_items && !mode->options().static_shapes && real.defined() &&
      real.version() == 0 && real.dim() == 0 && !real.is_fake() &&
      (is_integral(real.dtype(), false) || real.dtype() == DType::float64)) {
    const NoModesScope real_work;
    const Scalar value = real.item();
    const Source origin = Source::constant(about.source + ".item()");
    remembered.symbol = value.is_floating()
                            ? Value(create_float_symbol(*env, value.to_double(), origin))
                            : Value(create_unspecified_symbol(*env, value.to_int(), origin, DimDynamic::dynamic_size));
    return remembered.symbol;
  }
  remembered.symbol = what == Unknown::value ? unbacked_number(*env, t.dtype()) : Value(env->create_unbacked_size());
  return remembered.symbol;
}

FakeMode::FakeMode(FakeOptions options) : options_(std::move(options)), impl_(std::make_unique<Impl>()) {}
FakeMode::~FakeMode() = default;
std::shared_ptr<FakeMode> FakeMode::make(FakeOptions options) {
  return std::shared_ptr<FakeMode>(new FakeMode(std::move(options)));
}

FakeCacheInfo FakeMode::cache_info() const { return impl_->cache.info(); }
size_t FakeMode::memo_size() const { return impl_->fake_of.size(); }

namespace {

// Makes a tensor one of the mode's.
void adopt(const Tensor& t, const std::shared_ptr<FakeExtra>& extra, const std::shared_ptr<ShapeEnv>& env) {
  TensorImpl& impl = t.impl();
  impl.special = true;
  // The device that is current when none is named: there is one.
  if (impl.device.index < 0 && impl.device.type != DeviceType::cpu && impl.device.type != DeviceType::meta)
    impl.device.index = 0;
  if (!impl.extra) impl.extra = extra;
  if (!impl.env) impl.env = env;
}

}  // namespace

Tensor FakeMode::make_fake(const Meta& meta) {
  Tensor t = make_tensor(meta, true);
  adopt(t, impl_->shared_extra(shared_from_this()), options_.env);
  return t;
}

namespace {

// Another trace's symbols mean nothing here: what counts is what they were in its example.
TensorGeometry example_geometry(const TensorImpl& t, const Source& source) {
  const auto example = [&](SymInt s) -> SymInt {
    if (!s.is_symbolic()) return s;
    const std::optional<int64_t> hint = env_of(s)->hint(s);
    if (!hint)
      throw UserError(ErrorKind::data_dependent,
                      source.described() + ": a fake tensor of another trace has the size, stride or offset " + s.str() +
                          ", which is only known when the program runs; expected one with an example. Trace on a tensor "
                          "whose sizes are known, or make both traces with one FakeMode");
    return *hint;
  };
  TensorGeometry out;
  for (const SymInt s : t.sizes) out.sizes.push_back(example(s));
  for (const SymInt s : t.strides) out.strides.push_back(example(s));
  out.storage_offset = example(t.offset);
  return out;
}

std::vector<int64_t> plain_integers(const SymInts& numbers) {
  std::vector<int64_t> out;
  for (const SymInt n : numbers) out.push_back(n.as_int());
  return out;
}

}  // namespace

Tensor FakeMode::from_tensor(const Tensor& real, const Source& source, const SymbolicContext* context) {
  if (!real.defined()) return real;
  FakeExtra* own = extra_of(real);
  if (own && own->mode.get() == this) return real;
  if (const auto it = impl_->fake_of.find(&real.impl()); it != impl_->fake_of.end())
    return Tensor(Ref<TensorImpl>::share(it->second));
  const TensorImpl& r = real.impl();
  TensorGeometry layout{r.sizes, r.strides, r.offset};
  const bool is_example = !r.symbolic || r.env != options_.env;
  if (is_example && r.symbolic) layout = example_geometry(r, source);
  if (options_.env && !options_.static_shapes && is_example)
    layout = create_symbolic_geometry(*options_.env, plain_integers(layout.sizes), plain_integers(layout.strides),
                                      layout.storage_offset.as_int(), source, context);

  Ref<Storage> storage;
  if (const auto it = impl_->storage_of.find(r.storage.get()); it != impl_->storage_of.end()) {
    storage = Ref<Storage>::share(it->second);
  } else {
    // The storage takes its entry away when it goes.
    const Storage* key = r.storage.get();
    std::shared_ptr<const void> owner(key, [weak = weak_from_this()](const void* k) {
      if (const auto mode = weak.lock()) mode->impl_->storage_of.erase(static_cast<const Storage*>(k));
    });
    storage = Storage::borrow(nullptr, r.storage->nbytes(), std::move(owner));
    impl_->storage_of.emplace(key, storage.get());
  }
  Tensor fake(Ref<TensorImpl>(new TensorImpl(
      std::move(storage), Meta{layout.sizes, layout.strides, r.dtype, r.device, false}, layout.storage_offset)));
  TensorImpl& f = fake.impl();
  f.take_marks(r);
  f.wrapped_number = r.wrapped_number;
  auto known = std::make_shared<FakeExtra::Known>(*impl_);
  known->real = real;
  known->source = source.name();
  auto extra = std::make_shared<FakeExtra>(shared_from_this(), std::move(known));
  extra->made = &r;
  impl_->fake_of.emplace(&r, &f);
  adopt(fake, extra, options_.env);
  return fake;
}

Value FakeMode::from_value(const Value& tree) {
  return tree_map_tensors([&](const Tensor& t) -> Value { return from_tensor(t); }, tree);
}

Tensor FakeMode::from_closed_over(const Tensor& real) {
  const bool before = options_.static_shapes;
  options_.static_shapes = true;  // its sizes are the program's, not an input's
  Tensor fake = from_tensor(real);
  options_.static_shapes = before;
  return fake;
}

Tensor FakeMode::from_constant(const Tensor& real) {
  Tensor fake = from_closed_over(real);
  if (small_enough(real) && !has_internal_overlap(real)) FakeExtra::known_of(fake).set_constant(real);
  return fake;
}

namespace {

[[noreturn]] void refuse_real(const Operator& op) {
  throw UserError(
      "Please convert all Tensors to FakeTensors first (FakeMode::from_tensor) or make the FakeMode with "
      "allow_non_fake_inputs. Found in " +
      op.name());
}

void check_devices(const Operator& op, const Values& args) {
  if (op.has_tag(Tag::any_device)) return;
  const Tensor* first = nullptr;
  each_tensor(args, [&](const Tensor& t) {
    if (t.dim() == 0 && t.device().type == DeviceType::cpu) return;  // follows the others
    if (!first)
      first = &t;
    else if (!(first->device() == t.device()))
      throw UserError(op.schema().name + ": found two different devices " + first->device().str() + ", " + t.device().str() +
                      "; move the tensors to one device first");
  });
}

[[noreturn]] void refuse_unknown(const Operator& op) {
  const auto& returns = op.schema().returns;
  const bool value = returns.size() == 1 && returns[0].type.kind != SchemaType::Kind::tensor;
  throw UserError(
      ErrorKind::data_dependent,
      op.schema().name +
          (value
               ? ": the result is a value of the data (data-dependent output), which a fake tensor does not have"
               : ": the size of the result depends on the data (dynamic output shape), which a fake tensor does not have") +
          "; trace with a shape environment (symbolic sizes), or keep this call out of the traced part");
}

// A condition on sizes, which is no number that the operator could take: here it is learnt.
bool asserts_symbolic(const Operator& op, const Values& args) {
  return (&op == &ops().assert_scalar || &op == &ops().functional_assert_scalar) && args[0].kind() == Value::Kind::boolean &&
         args[0].to_sym_bool().is_symbolic();
}

}  // namespace

Value FakeMode::call(const Operator& op, const Values& args) { return answer(op, args); }

// What the tensors among the arguments of a call are.
struct FakeMode::Operands {
  size_t tensors = 0;
  size_t fakes = 0;
  size_t reals = 0;          // that are no number in the place of a tensor
  bool all_constant = true;  // the values of all of them are known
  bool symbolic = false;     // one has symbolic sizes
};

FakeMode::Operands FakeMode::survey(const Operator& op, const Values& args) const {
  Operands found;
  each_tensor(args, [&](const Tensor& t) {
    const FakeExtra* extra = extra_of(t);
    if (extra && extra->mode.get() != this)
      throw UserError(
          op.schema().name +
          ": fake tensors of two fake modes meet; mixing fake modes is not possible, convert all inputs with one mode");
    ++found.tensors;
    found.symbolic = found.symbolic || t.is_symbolic();
    if (extra) {
      ++found.fakes;
      found.all_constant = found.all_constant && extra->has_constant();
    } else if (!t.impl().special) {
      if (!t.impl().wrapped_number) ++found.reals;
    } else if (t.device().type == DeviceType::meta && !options_.allow_meta) {
      throw UserError(op.schema().name + ": a tensor on the meta device is used, and this fake mode does not allow it");
    } else {
      found.all_constant = false;
    }
  });
  return found;
}

// The result of known values, where it is small enough to be kept; nothing otherwise.
std::optional<Value> FakeMode::fold(const Operator& op, const Values& args) {
  Values values;
  for (const Value& v : args)
    values.push_back(map_tensors(v, [&](const Tensor& t) -> Value {
      const FakeExtra* extra = extra_of(t);
      return extra ? extra->known->constant : t;
    }));
  const NoModesScope real_work;
  const Value out = op.run_eager(values);
  bool all_small = true;
  each_tensor(out, [&](const Tensor& t) { all_small = all_small && small_enough(t); });
  if (all_small) return map_tensors(out, [&](const Tensor& t) -> Value { return from_constant(t); });
  each_tensor(out, [&](const Tensor& t) { impl_->invalidate(t); });
  return std::nullopt;
}

// What is written now with values that are not known is known no longer.
void FakeMode::forget_written(const Operator& op, const Values& args) {
  const auto& schema = op.schema().arguments;
  for (size_t i = 0; i < args.size() && i < schema.size(); ++i)
    if (schema[i].is_written())
      each_tensor(args[i], [&](const Tensor& t) {
        if (const FakeExtra* extra = extra_of(t); extra && extra->has_constant())
          impl_->invalidate(Tensor(extra->known->constant));
      });
}

// The shape rule's result, or what it gave before for such arguments.
Value FakeMode::run_rule(const Operator& op, const Values& args) {
  std::string key;
  const bool cached = options_.use_cache && impl_->cache.key(op, args, key);
  const std::shared_ptr<FakeExtra> plain = impl_->shared_extra(shared_from_this());
  Value out;
  if (!cached || !impl_->cache.find(key, args, out)) {
    const GuardOperatorScope scope(op.name());
    out = op.run_fake(args);
    if (options_.pytorch_guards) {
      pytorch_guards::ask_arguments(op, args);
      each_tensor(out, pytorch_guards::ask_result);
    }
    if (cached) impl_->cache.remember(key, args, out);
  }
  each_tensor(out, [&](const Tensor& t) { adopt(t, plain, options_.env); });
  return out;
}

Value FakeMode::answer(const Operator& op, const Values& given) {
  if (asserts_symbolic(op, given)) {
    Values known = given;
    known[0] = check(given[0].to_sym_bool());
    return answer(op, known);
  }
  Operands operands = survey(op, given);
  // A literal on its way in.
  if (op.has_tag(Tag::lifts) && operands.fakes == 0) return from_constant(op.run_eager(given).to_tensor());
  const Values* args = &given;
  Values converted;
  if (operands.reals != 0) {
    if (!options_.allow_non_fake_inputs) refuse_real(op);
    for (const Value& v : given)
      converted.push_back(map_tensors(v, [&](const Tensor& t) -> Value {
        return t.impl().special || t.impl().wrapped_number ? t : from_closed_over(t);
      }));
    args = &converted;
    operands.all_constant = false;
  }
  const bool known = operands.all_constant && !operands.symbolic;
  const bool numbers_alone = operands.tensors != 0 && operands.fakes == 0 && operands.reals == 0;
  if (numbers_alone && known && op.form() != Operator::Form::view) {
    const Value out = op.run_eager(given);
    return map_tensors(out, [&](const Tensor& t) -> Value { return from_constant(t); });
  }
  if (operands.fakes != 0 && known && !op.has_tag(Tag::random) && !op.has_tag(Tag::inplace_view))
    if (std::optional<Value> out = fold(op, *args)) return *std::move(out);
  forget_written(op, *args);
  check_devices(op, *args);
  if (op.has_tag(Tag::data_dependent) && !options_.env) refuse_unknown(op);
  return run_rule(op, *args);
}

FakeMode* active_fake_mode() {
  if (!modes_active()) return nullptr;
  const NoTraceScope quiet;
  return fake_mode_of(empty({0}));
}

// The sizes are the file's.
std::optional<Value> FakeMode::file_content(const Value& content) {
  FakeMode* mode = active_fake_mode();
  if (!mode) return std::nullopt;
  return map_tensors(content, [&](const Tensor& t) -> Value {
    SymbolicContext fixed;
    fixed.sizes.assign(t.sym_sizes().size(), DimDynamic::static_size);
    return mode->from_tensor(t, Source::constant("file"), &fixed);
  });
}

FakeMode* fake_mode_of(const Tensor& t) {
  const FakeExtra* extra = extra_of(t);
  return extra ? extra->mode.get() : nullptr;
}

Tensor fake_constant(const Tensor& t) {
  const FakeExtra* extra = extra_of(t);
  return extra && extra->known ? extra->known->constant : Tensor();
}

}  // namespace calque
