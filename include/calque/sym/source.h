// Source: where an input value comes from, written as PyTorch's guards write it: "L['x'].size()[0]". A plain value;
// sources are the same if their names are. It reads nothing: binding names to real inputs is produce_guards.h's. The
// sizes and strides of a tensor share its name; theirs are written when somebody asks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace calque {

class Source {
 public:
  enum class Property : uint8_t { none, size, stride, storage_offset };

  static Source local(const std::string& name);   // L['name']
  static Source global(const std::string& name);  // G['name']
  static Source constant(std::string name);       // the name as it is

  Source attribute(const std::string& name) const;  // base.name
  Source item(int64_t index) const;                 // base[0]
  Source item(const std::string& key) const;        // base['key']
  Source size(size_t dimension) const;              // base.size()[0]
  Source stride(size_t dimension) const;
  Source storage_offset() const;

  std::string name() const;
  const std::string& base() const;  // of a tensor's property: the tensor's name
  Property property() const { return property_; }
  size_t dimension() const { return dimension_; }
  bool is_size() const { return property_ == Property::size; }
  bool is_property() const { return property_ != Property::none; }
  std::string described() const;  // "x, dimension 0"

  friend bool operator==(const Source& a, const Source& b) {
    return a.property_ == b.property_ && a.dimension_ == b.dimension_ &&
           (a.names_ == b.names_ || a.names_->name == b.names_->name);
  }

 private:
  struct Names {
    std::string name;
    std::string plain;  // for people: "x", "cache.0"
  };
  Source(std::string name, std::string plain)
      : names_(std::make_shared<const Names>(Names{std::move(name), std::move(plain)})) {}
  Source(const Source& base, Property property, size_t dimension)
      : names_(base.names_), property_(property), dimension_(dimension) {}

  std::shared_ptr<const Names> names_;
  Property property_ = Property::none;
  size_t dimension_ = 0;
};

}  // namespace calque
