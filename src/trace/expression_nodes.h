// A symbolic expression as nodes of a graph: Python's operators over its parts. Who the parts are and how a node is made is
// the caller's: the recorder and the tracer write their numbers this way.
#pragma once

#include <functional>

#include "calque/graph/graph.h"
#include "calque/sym/expr.h"

namespace calque {

Value value_of(const Expr* e);  // the SymInt, SymFloat or SymBool

// The function that computes an expression from its parts: "operator.add"; null for symbols and numbers.
const char* python_function(const Expr* e);

struct ExpressionWriter {
  std::function<Value(const Expr*)> number;  // a part that is no plain number, as an argument
  // `value` is what the call gives; None where nobody worked it out.
  std::function<Node*(const char* function, Values args, const Value& value)> call;
};
// The node of the whole; null when `e` is a symbol, which nothing computes.
Node* write_expression(const Expr* e, const ExpressionWriter& writer);

}  // namespace calque
