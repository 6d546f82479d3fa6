#include "calque/sym/source.h"

namespace calque {

Source Source::local(const std::string& name) { return {"L['" + name + "']", name}; }
Source Source::global(const std::string& name) { return {"G['" + name + "']", name}; }
Source Source::constant(std::string name) { return {name, name}; }

Source Source::attribute(const std::string& name) const { return {name_ + "." + name, plain_ + "." + name}; }
Source Source::item(int64_t index) const {
  return {name_ + "[" + std::to_string(index) + "]", plain_ + "." + std::to_string(index)};
}
Source Source::item(const std::string& key) const { return {name_ + "['" + key + "']", plain_ + "." + key}; }

Source Source::with_property(Property property, size_t dimension, const char* suffix, const char* word) const {
  Source out(name_ + suffix, plain_ + word);
  if (property != Property::storage_offset) {
    out.name_ += "[" + std::to_string(dimension) + "]";
    out.plain_ += " " + std::to_string(dimension);
  }
  out.base_ = name_;
  out.property_ = property;
  out.dimension_ = dimension;
  return out;
}

Source Source::size(size_t dimension) const { return with_property(Property::size, dimension, ".size()", ", dimension"); }
Source Source::stride(size_t dimension) const { return with_property(Property::stride, dimension, ".stride()", ", stride"); }
Source Source::storage_offset() const {
  return with_property(Property::storage_offset, 0, ".storage_offset()", ", storage offset");
}

std::string Source::described() const { return plain_; }

}  // namespace calque
