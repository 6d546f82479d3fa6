// What an export asks of an environment beside its options.
#pragma once

#include <string>
#include <unordered_map>

#include "calque/sym/shape_env.h"

namespace calque {

// The symbols of inputs are named s0, s1, ... in the order in which they are made. From now on they are named as PyTorch
// names its own, after their sources ("s77" for L['x'].size()[0]): exports of one program by both read the same. `called` are
// inputs that go by another name there ("L['x']" as "L['flat_args'][0]"); everything but the symbols' names keeps the source.
void name_symbols_by_source(ShapeEnv& env, std::unordered_map<std::string, std::string> called = {});

// From now on a condition on backed values that is guarded on becomes a runtime assert instead, unless it makes a symbol an
// expression of others. (ShapeEnvOptions::prefer_deferred_runtime_asserts alone defers check()s.)
void defer_guards(ShapeEnv& env);

}  // namespace calque
