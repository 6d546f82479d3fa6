#include "calque/graph/stack_trace.h"

#include "calque/graph/node.h"

namespace calque {
namespace {

// "forward" of "calque::Tensor calque::Linear::forward(const Tensor&) [with T = int]", as the compiler writes functions.
std::string plain_name(std::string signature) {
  if (const size_t with = signature.find(" [with "); with != std::string::npos) signature.resize(with);
  if (signature.ends_with('>') && signature.rfind("<lambda") != std::string::npos) return "<lambda>";
  size_t end = signature.rfind(')');
  if (end == std::string::npos) return signature.empty() ? "forward" : signature;
  for (int depth = 0; end > 0; --end) {
    if (signature[end] == ')') ++depth;
    if (signature[end] == '(' && --depth == 0) break;
  }
  size_t begin = end;
  for (int depth = 0; begin > 0; --begin) {
    const char c = signature[begin - 1];
    if (c == '>') ++depth;
    if (c == '<') --depth;
    if (depth == 0 && (c == ':' || c == ' ' || c == '*' || c == '&')) break;
  }
  return begin == end ? signature : signature.substr(begin, end - begin);
}

}  // namespace

std::string stack_trace(const std::source_location& where) {
  const std::string signature = where.function_name();
  return "File \"" + std::string(where.file_name()) + "\", line " + std::to_string(where.line()) + ", in " +
         plain_name(signature) + "\n    " + (signature.empty() ? "forward" : signature) + "\n";
}

std::string node_with_line(const Node& node) {
  std::string text = node.str();
  if (node.meta.location.line() != 0)
    text += " (" + std::string(node.meta.location.file_name()) + ":" + std::to_string(node.meta.location.line()) + ")";
  if (node.meta.stack_trace) text += "\n" + *node.meta.stack_trace;
  return text;
}

}  // namespace calque
