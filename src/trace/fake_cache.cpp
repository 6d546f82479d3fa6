#include "trace/fake_cache.h"

#include <cstring>

namespace calque {
namespace {

void put(std::string& key, const void* data, size_t n) { key.append(static_cast<const char*>(data), n); }
template <class T>
void put(std::string& key, T x) {
  put(key, &x, sizeof x);
}

// False for what cannot be a key.
bool put_value(std::string& key, const Value& v) {
  put(key, v.kind());
  switch (v.kind()) {
    case Value::Kind::none: return true;
    case Value::Kind::boolean:
      put(key, v.to_sym_bool().expr());
      put(key, v.to_sym_bool().plain());
      return true;
    case Value::Kind::integer: put(key, v.to_sym_int().word()); return true;
    case Value::Kind::floating:
      put(key, v.to_sym_float().expr());
      if (!v.to_sym_float().is_symbolic()) put(key, v.to_float());
      return true;
    case Value::Kind::string:
      put(key, v.to_string().size());
      key += v.to_string();
      return true;
    case Value::Kind::tensor: {
      const TensorImpl& t = v.to_tensor().impl();
      put(key, t.dtype);
      put(key, t.device.type);
      put(key, t.device.index);
      put(key, static_cast<uint8_t>(t.requires_grad | t.wrapped_number << 1 | t.is_leaf << 2 | (t.special << 3)));
      put(key, t.sizes.size());
      put(key, t.sizes.data(), t.sizes.size() * sizeof(SymInt));
      put(key, t.strides.data(), t.strides.size() * sizeof(SymInt));
      put(key, t.offset.word());
      return true;
    }
    case Value::Kind::dtype: put(key, v.to_dtype()); return true;
    case Value::Kind::device:
      put(key, v.to_device().type);
      put(key, v.to_device().index);
      return true;
    case Value::Kind::layout: put(key, v.to_layout()); return true;
    case Value::Kind::memory_format: put(key, v.to_memory_format()); return true;
    case Value::Kind::list:
    case Value::Kind::tuple:
      put(key, v.to_items().size());
      for (const Value& item : v.to_items())
        if (!put_value(key, item)) return false;
      return true;
    case Value::Kind::complex:
    case Value::Kind::slice:
    case Value::Kind::generator:
    case Value::Kind::node:
    case Value::Kind::dict:
    case Value::Kind::structure: return false;
  }
  return false;
}

template <class F>
void each_cached_tensor(const Values& values, F&& f) {
  for (const Value& v : values) {
    if (v.is_tensor())
      f(v.to_tensor());
    else if (v.kind() == Value::Kind::list || v.kind() == Value::Kind::tuple)
      each_cached_tensor(v.to_items(), f);
  }
}

const Tensor& tensor_at(const Values& args, int32_t at) {
  const Tensor* found = nullptr;
  int32_t i = 0;
  each_cached_tensor(args, [&](const Tensor& t) {
    if (i++ == at) found = &t;
  });
  return *found;
}

}  // namespace

bool FakeCache::key(const Operator& op, const Values& args, std::string& out) {
  const bool refused = op.has_tag(Tag::data_dependent) || op.has_tag(Tag::inplace_view) || op.has_tag(Tag::side_effect) ||
                       op.has_tag(Tag::out);
  out.reserve(256);
  put(out, &op);
  put(out, grad_enabled());
  put(out, default_dtype());  // of a float that meets integers
  bool good = !refused;
  for (const Value& v : args) good = good && put_value(out, v);
  // Whether two arguments are one tensor or share memory may matter.
  std::vector<const Storage*> storages;
  each_cached_tensor(args, [&](const Tensor& t) { storages.push_back(t.storage().get()); });
  for (size_t i = 0; i < storages.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (storages[i] == storages[j]) put(out, static_cast<uint32_t>(i << 16 | j));
  if (!good) ++info_.bypasses;
  return good;
}

bool FakeCache::find(const std::string& key, const Values& args, Value& out) {
  const auto it = entries_.find(key);
  if (it == entries_.end()) {
    ++info_.misses;
    return false;
  }
  ++info_.hits;
  Values items;
  items.reserve(it->second.parts.size());
  for (const Part& p : it->second.parts) {
    if (p.undefined) {
      items.emplace_back();
    } else if (p.same) {
      const Tensor& self = tensor_at(args, p.input);
      self.storage()->bump_version();
      items.emplace_back(self);
    } else if (p.input >= 0) {
      Tensor t = make_view(tensor_at(args, p.input), p.meta.sizes, p.meta.strides, p.offset);
      t.impl().dtype = p.meta.dtype;
      items.emplace_back(std::move(t));
    } else {
      Tensor t = make_tensor(p.meta, true);
      t.impl().requires_grad = p.requires_grad;
      t.impl().is_leaf = !p.requires_grad;
      items.emplace_back(std::move(t));
    }
  }
  if (it->second.shape == Value::Kind::list)
    out = list(std::move(items));
  else if (it->second.shape == Value::Kind::tuple)
    out = tuple(std::move(items));
  else
    out = std::move(items[0]);
  return true;
}

void FakeCache::remember(const std::string& key, const Values& args, const Value& out) {
  Entry entry;
  const auto add = [&](const Value& v) {
    Part p;
    if (v.is_none()) {
      p.undefined = true;
    } else if (!v.is_tensor()) {
      return false;
    } else {
      const Tensor& t = v.to_tensor();
      int32_t i = 0;
      each_cached_tensor(args, [&](const Tensor& a) {
        if (a.is_same(t)) {
          p.input = i;
          p.same = true;
        } else if (!p.same && p.input < 0 && a.storage().get() == t.storage().get()) {
          p.input = i;
        }
        ++i;
      });
      p.meta = t.meta();
      p.offset = t.sym_storage_offset();
      p.requires_grad = t.requires_grad();
    }
    entry.parts.push_back(std::move(p));
    return true;
  };
  entry.shape = out.kind();
  if (out.kind() == Value::Kind::list || out.kind() == Value::Kind::tuple) {
    for (const Value& v : out.to_items())
      if (!add(v)) return;
  } else if (!out.is_tensor() || !add(out)) {
    return;
  }
  entries_.emplace(key, std::move(entry));
}

FakeCacheInfo FakeCache::info() const {
  FakeCacheInfo info = info_;
  info.size = entries_.size();
  return info;
}

}  // namespace calque
