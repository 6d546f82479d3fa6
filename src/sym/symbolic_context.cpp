#include "calque/sym/symbolic_context.h"

#include <algorithm>
#include <numeric>

#include "calque/base/error.h"
#include "calque/base/small_vector.h"
#include "calque/sym/expr.h"
#include "sym/env_impl.h"
#include "sym/range.h"

namespace calque {

namespace {

// The request of one dimension of a tensor, with what the context says beside it.
struct Dimension {
  SymbolRequest request;
  const std::string* shape_id = nullptr;
  const ValueRange* bounds = nullptr;
};

// Its place among the symbol's sources.
size_t add_source(ShapeEnv::Impl& impl, size_t symbol, const Source& source) {
  std::vector<Source>& all = impl.sources[symbol];
  all.push_back(source);
  return all.size() - 1;
}

SymInt create_unbacked_input(ShapeEnv& env, const Source& source, const Dimension& dimension) {
  ShapeEnv::Impl& impl = env.impl();
  const SymInt out = env.create_unbacked();
  const size_t index = out.expr()->symbol_index();
  std::erase(impl.pending_unbacked, index);  // an input is bound by being one
  impl.knowledge.symbol(index).origin = source.described();
  impl.knowledge.symbol(index).is_input = true;
  env.constrain_range_for_size(out);
  add_source(impl, index, source);
  const auto must = [&](SymBool condition) {
    if (!check(condition))
      throw UserError(ErrorKind::constraint_violation, source.described() + ": " + condition.str() + " does not hold");
  };
  if (dimension.bounds != nullptr) {
    if (dimension.bounds->lower != ValueRange::unbounded_below) must(out >= dimension.bounds->lower);
    if (dimension.bounds->upper != ValueRange::unbounded_above) must(out <= dimension.bounds->upper);
  }
  if (dimension.shape_id != nullptr) {
    const auto [at, is_new] = impl.shape_ids.emplace(*dimension.shape_id, index);
    if (!is_new) must(out == SymInt(impl.knowledge.node(at->second)));
  }
  return out;
}

SymInt create(ShapeEnv& env, int64_t example, const Source& source, const Dimension& dimension) {
  ShapeEnv::Impl& impl = env.impl();
  SymbolRequest request = dimension.request;
  const auto* promised = std::get_if<StrictMinMaxConstraint>(&request.constraint);
  if (promised != nullptr && promised->range.lower == promised->range.upper) {
    if (promised->range.lower != example)
      throw UserError(ErrorKind::constraint_violation,
                      "Static shape constraint of " + std::to_string(promised->range.lower) +
                          " does not match input size of " + std::to_string(example) + ", for " + source.name());
    return example;
  }
  if (request.dynamic == DimDynamic::unbacked) return create_unbacked_input(env, source, dimension);
  if (request.positive && example < 0)
    throw UserError("the size " + std::to_string(example) + " of " + source.described() + " is negative");
  // A dimension that something is promised about has its own symbol.
  if (!std::holds_alternative<std::monostate>(request.constraint)) request.dynamic = DimDynamic::dynamic_size;
  if (request.dynamic == DimDynamic::static_size) return example;
  const bool duck = request.dynamic == DimDynamic::duck && impl.options.duck_shape;
  const bool zero_one = request.positive && (example == 0 || example == 1) && impl.options.specialize_zero_one;
  if (zero_one && !request.do_not_specialize_zero_one) {
    impl.note_static(source, example);
    return example;
  }
  if (duck) {
    if (const auto same = impl.by_example.find(example); same != impl.by_example.end()) {
      const Expr* node = impl.knowledge.node(same->second);
      impl.note_shared(node, add_source(impl, same->second, source), example);
      return SymInt(node);
    }
  }
  ValueRange range;
  if (request.positive) {
    const bool may_be_small = request.do_not_specialize_zero_one || !impl.options.specialize_zero_one;
    range.lower = may_be_small ? 0 : 2;
    if (promised != nullptr) {
      const ValueRange both = range_intersect(range, promised->range);
      // Promised to be 1 or 2, say: without 0 and 1 one value is left, but the dimension is dynamic all the same.
      if (both.lower < both.upper) range = both;
    }
  }
  if (!range_contains(range, example))
    throw UserError(ErrorKind::constraint_violation,
                    std::to_string(example) + " not in range " + str(range) + " (" + source.described() + ")");
  std::string name = impl.names_by_source ? impl.name_after(source) : impl.fresh_name("s", impl.next_backed);
  const SymInt out = impl.declare(std::move(name), example, range, source.described(), false, request.positive);
  const size_t index = impl.knowledge.symbols().size() - 1;
  if (duck) impl.by_example.emplace(example, index);
  add_source(impl, index, source);
  return out;
}

template <class T>
T at_or(const std::vector<T>& values, size_t i, T otherwise) {
  return values.empty() ? otherwise : values[i];
}

void check_length(const char* what, size_t found, size_t expected, bool may_be_empty) {
  if (found != expected && !(may_be_empty && found == 0))
    throw UserError(std::string("symbolic context: ") + std::to_string(found) + " " + what + " for " +
                    std::to_string(expected) + " dimensions");
}

// The order of a tensor's dimensions in memory: smallest stride first, the last dimension first among equals.
SmallVector<size_t, 6> memory_order(IntList strides) {
  SmallVector<size_t, 6> order(strides.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, [&](size_t a, size_t b) { return strides[a] != strides[b] ? strides[a] < strides[b] : a > b; });
  return order;
}

// The strides that a tensor of other sizes has if it lies in memory as this one does. Where a size is 0 or 1 its stride says nothing;
// the order of the dimensions decides if the rest allows it.
std::vector<int64_t> strides_at(IntList others, IntList sizes, IntList strides) {
  std::vector<int64_t> out(sizes.size());
  const auto fill = [&](const auto& order) {
    int64_t product = 1, other_product = 1;
    bool dense = true;
    for (const size_t i : order) {
      const bool fits = strides[i] == product || sizes[i] <= 1;
      out[i] = fits ? other_product : strides[i];
      dense = dense && fits;
      product *= std::max<int64_t>(sizes[i], 1);
      other_product *= std::max<int64_t>(others[i], 1);
    }
    return dense;
  };
  SmallVector<size_t, 6> rows(sizes.size());
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = rows.size() - 1 - i;
  if (!fill(rows)) fill(memory_order(strides));
  return out;
}

}  // namespace

SymInt create_symbol(ShapeEnv& env, int64_t example, const Source& source, const SymbolRequest& request) {
  return create(env, example, source, {request});
}

SymInt create_unspecified_symbol(ShapeEnv& env, int64_t example, const Source& source, DimDynamic dynamic) {
  return create(env, example, source, {{dynamic, {}, false, true}});
}

SymFloat create_float_symbol(ShapeEnv& env, double example, const Source& source) {
  const SymFloat out = env.create_float(example, source.described());
  add_source(env.impl(), out.expr()->symbol_index(), source);
  return out;
}

TensorGeometry create_symbolic_geometry(ShapeEnv& env, IntList sizes, IntList strides, int64_t storage_offset,
                                        const Source& source, const SymbolicContext* context) {
  const size_t n = sizes.size();
  std::vector<int64_t> other_strides;
  if (context != nullptr && !context->examples.empty()) {
    check_length("examples", context->examples.size(), n, false);
    other_strides = strides_at(context->examples, sizes, strides);
    sizes = context->examples;
    strides = other_strides;
  }
  if (strides.size() != n)
    throw UserError(source.described() + ": " + std::to_string(n) + " sizes but " + std::to_string(strides.size()) +
                    " strides");
  static const SymbolicContext plain;
  const DimDynamic by_default = env.options().assume_static_by_default ? DimDynamic::static_size : DimDynamic::duck;
  check_length("sizes", context == nullptr ? n : context->sizes.size(), n, false);
  if (context == nullptr) context = &plain;
  check_length("strides", context->strides.size(), n, true);
  check_length("size constraints", context->constraint_sizes.size(), n, true);
  check_length("stride constraints", context->constraint_strides.size(), n, true);

  TensorGeometry out;
  for (size_t i = 0; i < n; ++i) {
    Dimension d{{at_or(context->sizes, i, by_default), at_or(context->constraint_sizes, i, DimConstraint{})}};
    if (const auto id = context->shape_ids.find(i); id != context->shape_ids.end()) d.shape_id = &id->second;
    if (const auto bounds = context->unbacked_bounds.find(i); bounds != context->unbacked_bounds.end())
      d.bounds = &bounds->second;
    out.sizes.push_back(create(env, sizes[i], source.size(i), d));
  }

  // What a stride is a multiple of is known by then.
  const bool all_static =
      context->sizes.empty()
          ? n == 0 || by_default == DimDynamic::static_size
          : std::ranges::all_of(context->sizes, [](DimDynamic d) { return d == DimDynamic::static_size; });
  const SmallVector<size_t, 6> order = memory_order(strides);
  struct Product {
    int64_t example;
    SymInt value;
  };
  SmallVector<Product, 6> products;
  const auto product_at = [&](int64_t example) {
    return std::find_if(products.begin(), products.end(), [&](const Product& p) { return p.example == example; });
  };
  out.strides.resize(n);
  for (const size_t i : order) {
    const int64_t stride = strides[i];
    const bool follows = i + 1 < n && stride == sizes[i + 1] * strides[i + 1];
    const DimDynamic policy = at_or(context->strides, i, DimDynamic::infer_stride);
    if ((stride == 0 || stride == 1) && !follows) {
      out.strides[i] = stride;
    } else if (const auto known = product_at(stride); policy == DimDynamic::infer_stride && known != products.end()) {
      out.strides[i] = known->value;
    } else {
      DimDynamic dynamic = policy;
      if (policy == DimDynamic::infer_stride) dynamic = all_static ? DimDynamic::static_size : DimDynamic::duck;
      out.strides[i] =
          create(env, stride, source.stride(i), {{dynamic, at_or(context->constraint_strides, i, DimConstraint{})}});
    }
    if (i == order.back()) break;  // nothing can follow it
    const Product next{sizes[i] * stride, out.sizes[i] * out.strides[i]};
    if (const auto at = product_at(next.example); at != products.end())
      *at = next;
    else
      products.push_back(next);
  }
  const DimDynamic offset = all_static ? DimDynamic::static_size : DimDynamic::duck;
  out.storage_offset = create(env, storage_offset, source.storage_offset(), {{offset, {}}});
  return out;
}

void set_debug_name(ShapeEnv& env, const Source& source, const std::string& name) {
  auto& names = env.impl().debug_names;
  const auto at = std::ranges::find(names, source.name(), [](const auto& entry) { return entry.first; });
  if (at == names.end())
    names.emplace_back(source.name(), name);
  else
    at->second = name;
}

std::vector<Source> sources_of(const ShapeEnv& env, std::string_view symbol) {
  const ShapeEnv::Impl& impl = env.impl();
  const auto at = impl.by_name.find(std::string(symbol));
  if (at == impl.by_name.end()) throw UserError("there is no symbol " + std::string(symbol) + " in this environment");
  const auto found = impl.sources.find(at->second);
  return found == impl.sources.end() ? std::vector<Source>{} : found->second;
}

}  // namespace calque
