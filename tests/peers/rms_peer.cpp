// rms_peer: runs operators on tensors from files. Reads one JSON object a line: "op", "args" and "keyword" ({"file": F} is the tensor
// "x" of a file, everything else is itself), and the file "outputs" that its result is written to as "result".
// Answers each line with "done" or with "error: " and why.
#include <iostream>
#include <string>

#include <nlohmann/json.hpp>

#include "calque/file/safetensors.h"
#include "calque/op/mode.h"
#include "calque/op/operators.h"

namespace {

using namespace calque;
using Json = nlohmann::json;

Value make_value(const Json& v) {
  if (v.is_boolean()) return Value(v.get<bool>());
  if (v.is_number_integer()) return Value(v.get<int64_t>());
  if (v.is_number_float()) return Value(v.get<double>());
  if (v.is_null()) return Value();
  if (v.is_array()) {
    Values items;
    for (const Json& x : v) items.push_back(make_value(x));
    return list(std::move(items));
  }
  return Value(SafetensorsFile::open(v.at("file")).tensor("x"));
}

void run(const Json& request) {
  const Operator& op = get_operator(request.at("op").get<std::string>());
  const auto& schema = op.schema().arguments;
  const Json &args = request.at("args"), &keyword = request.at("keyword");
  Values values;
  for (size_t i = 0; i < schema.size(); ++i) {
    if (i < args.size())
      values.push_back(make_value(args[i]));
    else if (keyword.contains(schema[i].name))
      values.push_back(make_value(keyword[schema[i].name]));
    else
      values.push_back(*schema[i].default_value);
  }
  save_safetensors(request.at("outputs"), {{"result", dispatch(op, values).to_tensor()}});
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    try {
      run(Json::parse(line));
      std::cout << "done" << std::endl;
    } catch (const std::exception& e) {
      std::cout << "error: " << e.what() << std::endl;
    }
  }
  return 0;
}
