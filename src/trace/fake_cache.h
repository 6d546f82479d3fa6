// FakeCache: what shape rules answered, by operator and arguments. Only for calls whose answer follows from the
// arguments' metadata: nothing drawn from data, no change of an argument's own layout. Symbolic sizes are keys too:
// expressions are interned in the mode's environment, and the guards of an equal call have been taken already.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "calque/op/operator.h"
#include "calque/trace/fake.h"

namespace calque {

class FakeCache {
 public:
  // The key of a call; false when it must not be cached, which is counted.
  bool key(const Operator& op, const Values& args, std::string& out);
  bool find(const std::string& key, const Values& args, Value& out);
  void remember(const std::string& key, const Values& args, const Value& out);
  FakeCacheInfo info() const;

 private:
  struct Part {          // one tensor of the result
    int32_t input = -1;  // the argument it is, or whose storage it shares
    bool same = false;
    bool requires_grad = false;
    bool undefined = false;
    Meta meta;
    SymInt offset;
  };
  struct Entry {
    Value::Kind shape = Value::Kind::tensor;  // tensor, list or tuple
    std::vector<Part> parts;
  };
  std::unordered_map<std::string, Entry> entries_;
  FakeCacheInfo info_;
};

}  // namespace calque
