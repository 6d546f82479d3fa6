#include "calque/sym/source.h"

namespace calque {

Source Source::local(const std::string& name) { return {"L['" + name + "']", name}; }
Source Source::global(const std::string& name) { return {"G['" + name + "']", name}; }
Source Source::constant(std::string name) { return {name, name}; }

Source Source::attribute(const std::string& name) const { return {this->name() + "." + name, described() + "." + name}; }
Source Source::item(int64_t index) const {
  return {name() + "[" + std::to_string(index) + "]", described() + "." + std::to_string(index)};
}
Source Source::item(const std::string& key) const { return {name() + "['" + key + "']", described() + "." + key}; }

Source Source::size(size_t dimension) const { return {*this, Property::size, dimension}; }
Source Source::stride(size_t dimension) const { return {*this, Property::stride, dimension}; }
Source Source::storage_offset() const { return {*this, Property::storage_offset, 0}; }

std::string Source::name() const {
  switch (property_) {
    case Property::none: return names_->name;
    case Property::size: return names_->name + ".size()[" + std::to_string(dimension_) + "]";
    case Property::stride: return names_->name + ".stride()[" + std::to_string(dimension_) + "]";
    case Property::storage_offset: return names_->name + ".storage_offset()";
  }
  return names_->name;
}

std::string Source::described() const {
  switch (property_) {
    case Property::none: return names_->plain;
    case Property::size: return names_->plain + ", dimension " + std::to_string(dimension_);
    case Property::stride: return names_->plain + ", stride " + std::to_string(dimension_);
    case Property::storage_offset: return names_->plain + ", storage offset";
  }
  return names_->plain;
}

const std::string& Source::base() const {
  static const std::string none;
  return is_property() ? names_->name : none;
}

}  // namespace calque
