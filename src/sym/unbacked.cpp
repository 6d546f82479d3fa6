#include "calque/sym/unbacked.h"

#include <algorithm>
#include <utility>

#include "base/join.h"
#include "calque/base/error.h"
#include "calque/sym/expr.h"
#include "sym/env_impl.h"

namespace calque {

namespace {

BindingPath extended(const BindingPath& path, BindingKey key) {
  BindingPath out = path;
  out.push_back(std::move(key));
  return out;
}

// Finds pending symbols in results. The expressions are taken as they were made, before any replacement.
class Search {
 public:
  Search(ShapeEnv::Impl& env, std::vector<size_t> pending) : env_(env), pending_(std::move(pending)) {}

  void visit(const BindingPath& path, const TensorGeometry& t) {
    const auto list = [&](const char* method, const SymInts& values) {
      const BindingPath at = extended(path, BindingKey::method(method));
      for (size_t i = 0; i < values.size(); ++i) visit(extended(at, BindingKey::item(static_cast<int64_t>(i))), values[i]);
    };
    list("size", t.sizes);
    list("stride", t.strides);
    visit(extended(path, BindingKey::method("storage_offset")), t.storage_offset);
  }

  void visit(const BindingPath& path, SymInt value) {
    const Expr* e = value.expr();
    if (e == nullptr) return;
    if (e->kind() == ExprKind::symbol) {
      bind(e, path);
    } else if (e->kind() == ExprKind::mul && e->args().size() == 2) {
      // A number or an input's size times the symbol.
      const bool first = is_pending(e->arg(0)), second = is_pending(e->arg(1));
      if (first == second) return;
      const Expr* other = e->arg(first ? 1 : 0);
      if (!other->is_integer() && (other->kind() != ExprKind::symbol || other->has_unbacked())) return;
      bind(e->arg(first ? 0 : 1), extended(path, BindingKey::divide_by(SymInt(other))));
    }
  }

  void visit(const BindingPath& path, SymFloat value) {
    if (value.expr() != nullptr && value.expr()->kind() == ExprKind::symbol) bind(value.expr(), path);
  }

  void visit(const BindingPath& path, SymBool value) {  // a bool from data is u == 1
    const Expr* e = value.expr();
    if (e == nullptr || e->kind() != ExprKind::eq || !e->arg(1)->is_integer() || e->arg(1)->integer() != 1) return;
    if (is_pending(e->arg(0))) bind(e->arg(0), extended(path, BindingKey::to_int()));
  }

  const UnbackedBindings& found() const { return found_; }
  const std::vector<size_t>& pending() const { return pending_; }

 private:
  bool is_pending(const Expr* e) const {
    return e->kind() == ExprKind::symbol && std::ranges::find(pending_, e->symbol_index()) != pending_.end();
  }
  void bind(const Expr* symbol, const BindingPath& path) {
    if (!is_pending(symbol)) return;
    found_.emplace(env_.knowledge.symbols()[symbol->symbol_index()].name, path);
    std::erase(pending_, symbol->symbol_index());
  }

  ShapeEnv::Impl& env_;
  std::vector<size_t> pending_;
  UnbackedBindings found_;
};

const Expr* value_at(const ResultLeaf& leaf, const BindingPath& path) {
  if (path.size() < leaf.path.size()) return nullptr;
  for (size_t i = 0; i < leaf.path.size(); ++i)
    if (path[i].kind != leaf.path[i].kind || path[i].index != leaf.path[i].index) return nullptr;
  size_t at = leaf.path.size();
  SymInt value;
  if (const auto* t = std::get_if<TensorGeometry>(&leaf.value)) {
    if (at == path.size()) return nullptr;
    const std::string& method = path[at++].name;
    if (method == "storage_offset") {
      value = t->storage_offset;
    } else {
      const SymInts& values = method == "size" ? t->sizes : t->strides;
      if (at == path.size() || static_cast<size_t>(path[at].index) >= values.size()) return nullptr;
      value = values[static_cast<size_t>(path[at++].index)];
    }
  } else if (const auto* f = std::get_if<SymFloat>(&leaf.value)) {
    return f->expr();
  } else if (const auto* b = std::get_if<SymBool>(&leaf.value)) {
    const Expr* e = b->expr();
    return e != nullptr && e->kind() == ExprKind::eq ? e->arg(0) : nullptr;
  } else {
    value = std::get<SymInt>(leaf.value);
  }
  const Expr* e = value.expr();
  if (at < path.size() && path[at].kind == BindingKey::Kind::divide_by && e != nullptr && e->kind() == ExprKind::mul)
    e = e->arg(e->arg(0)->has_unbacked() ? 0 : 1);
  return e;
}

}  // namespace

std::string BindingKey::str() const {
  switch (kind) {
    case Kind::item: return "[" + std::to_string(index) + "]";
    case Kind::method: return "." + name + "()";
    case Kind::to_int: return ".to_int()";
    case Kind::divide_by: return ".__floordiv__(" + divisor.str() + ")";
  }
  throw InternalError("a binding key of unknown kind");
}

std::string str(const BindingPath& path) {
  std::string out;
  for (const BindingKey& key : path) out += key.str();
  return out;
}

std::vector<std::string> pending_unbacked(const ShapeEnv& env) {
  std::vector<std::string> out;
  for (const size_t i : env.impl().pending_unbacked) out.push_back(env.symbols()[i].name);
  return out;
}

void forget_pending_unbacked(ShapeEnv& env) { env.impl().pending_unbacked.clear(); }

UnbackedBindings compute_unbacked_bindings(ShapeEnv& env, const std::vector<ResultLeaf>& results, bool peek) {
  ShapeEnv::Impl& impl = env.impl();
  Search search(impl, impl.pending_unbacked);
  if (!peek) impl.pending_unbacked.clear();
  if (search.pending().empty()) return {};
  for (const ResultLeaf& leaf : results) std::visit([&](const auto& value) { search.visit(leaf.path, value); }, leaf.value);
  if (!peek && !search.pending().empty()) {
    const std::string names = join(search.pending(), ", ", [&](const size_t i) { return env.symbols()[i].name; });
    throw UserError(ErrorKind::data_dependent,
                    "the values " + names +
                        " from tensor data are in none of the operator's results: its shape rule made more of them than "
                        "it returns");
  }
  return search.found();
}

void rename_unbacked(ShapeEnv& env, SymInt fresh, SymInt known) {
  const Expr* a = fresh.expr();
  const Expr* b = known.expr();
  const auto is_unbacked = [](const Expr* e) { return e != nullptr && e->kind() == ExprKind::symbol && e->has_unbacked(); };
  if (!is_unbacked(a) || !is_unbacked(b))
    throw UserError("rename_unbacked takes values from tensor data, not " + fresh.str() + " and " + known.str());
  if (a == b) return;
  ShapeEnv::Impl& impl = env.impl();
  // What the new symbol was known to equal, the old one equals from now on.
  const Expr* target = impl.knowledge.replacement(a->symbol_index()) != nullptr ? impl.knowledge.replace(a) : nullptr;
  impl.unbacked_renamings[a->symbol_index()] = b->symbol_index();
  if (target == nullptr)
    impl.knowledge.set_replacement(a->symbol_index(), b);
  else if (impl.knowledge.replacement(b->symbol_index()) == nullptr)
    impl.knowledge.set_replacement(b->symbol_index(), target);
}

void rebind_unbacked(ShapeEnv& env, const UnbackedBindings& bindings, const std::vector<ResultLeaf>& results) {
  ShapeEnv::Impl& impl = env.impl();
  for (const auto& [name, path] : resolve_unbacked_bindings(env, bindings)) {
    const auto old = impl.by_name.find(name);
    if (old == impl.by_name.end()) throw UserError("there is no symbol " + name + " in this environment");
    for (const ResultLeaf& leaf : results) {
      const Expr* e = value_at(leaf, path);
      if (e == nullptr || e->kind() != ExprKind::symbol || !e->has_unbacked()) continue;
      if (e->symbol_index() == old->second || e->is_float()) break;
      rename_unbacked(env, SymInt(e), SymInt(impl.knowledge.node(old->second)));
      break;
    }
  }
}

UnbackedBindings resolve_unbacked_bindings(const ShapeEnv& env, const UnbackedBindings& bindings) {
  UnbackedBindings out;
  const ShapeEnv::Impl& impl = env.impl();
  for (const auto& [name, path] : bindings) {
    const auto at = impl.by_name.find(name);
    const auto renamed = at == impl.by_name.end() ? impl.unbacked_renamings.end() : impl.unbacked_renamings.find(at->second);
    out.emplace(renamed == impl.unbacked_renamings.end() ? name : env.symbols()[renamed->second].name, path);
  }
  return out;
}

}  // namespace calque
