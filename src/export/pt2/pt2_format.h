// The parts of PyTorch's export schema that reading and writing share: enum numbers, symbolic values, tensors' metadata,
// argument specs. Private to export/.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "calque/export/pt2.h"
#include "calque/export/signature.h"
#include "calque/file/json.h"
#include "calque/op/tensor.h"
#include "calque/trace/fake.h"

namespace calque::pt2 {

inline constexpr int schema_major = 8;
inline constexpr int schema_minor = 20;

// Entries of compiled files, which PyTorch does not look at.
inline constexpr const char* compiled_plan = "plan.json";
inline std::string compiled_folder(const std::string& model) { return "compiled/" + model + "/"; }
inline std::string compiled_block(size_t number) { return "block_" + std::to_string(number); }

DType dtype_from_number(const Json& number);
int number_of(DType dtype);
Layout layout_from_number(const Json& number);
int number_of(Layout layout);
MemoryFormat memory_format_from_number(const Json& number);
int number_of(MemoryFormat format);
// Functions of symbols, with the names of their arguments; empty for others. Files write "_operator.mul".
const std::vector<std::string>* symbolic_function_arguments(std::string_view name);

// "cuda:1" as the options' device map has it.
class DeviceMap {
 public:
  explicit DeviceMap(const std::map<std::string, std::string>& names) : names_(names) {}
  Device operator()(const Json& device) const;

 private:
  const std::map<std::string, std::string>& names_;
};

// The symbols of one program: expressions become values of one ShapeEnv, tensors' metadata fakes of one mode.
class SymbolReader {
 public:
  SymbolReader(const Json& range_constraints, const DeviceMap& devices);

  SymInt sym_int(const Json& value);
  SymFloat sym_float(const Json& value);
  SymBool sym_bool(const Json& value);
  Tensor fake(const Json& tensor_meta);
  void finish();  // gives the symbols their ranges; nothing is read afterwards
  Device device(const Json& d) const { return devices_(d); }
  const std::shared_ptr<ShapeEnv>& env() const { return env_; }
  const std::vector<std::pair<std::string, ValueRange>>& ranges() const { return ranges_; }

 private:
  std::vector<std::string> note_symbols(std::string_view expression);
  void learn_hint(SymInt value, const std::vector<std::string>& names, int64_t hint);

  const DeviceMap& devices_;
  std::shared_ptr<ShapeEnv> env_;
  std::shared_ptr<FakeMode> mode_;
  std::vector<std::pair<std::string, ValueRange>> ranges_;
  std::unordered_map<std::string_view, SymInt> parsed_;  // by the expression's text
  std::unordered_set<std::string> declared_;             // symbols that expressions have
};

std::vector<int64_t> plain_integers(const Json& list);  // of {"as_int": n}

// ---- the signature --------------------------------------------------------------------------------------------------
GraphSignature read_signature(const Json& signature);
std::vector<ModuleCallEntry> read_module_call_graph(const Json& graph_module);

void write_signature(JsonWriter& out, const GraphSignature& signature);
void write_module_call_graph(JsonWriter& out, const std::vector<ModuleCallEntry>& entries, bool plain_containers);
void write_namedtuple_fields(JsonWriter& out, const std::vector<ModuleCallEntry>& entries, bool plain_containers);

// ---- the graph ------------------------------------------------------------------------------------------------------
// `objects`: custom objects that are not inputs of the graph, by name.
std::shared_ptr<GraphModule> read_graph(const Json& graph, const GraphSignature& signature, SymbolReader& symbols,
                                        const std::vector<std::pair<std::string, Value>>& objects);

// The graph's inputs that a run writes, by the names of their nodes: in place, in a graph that it calls, or from an output.
std::unordered_set<std::string> written_inputs(const Graph& graph, const GraphSignature& signature);
// State that the graph writes is copied out of the mapped file.
void own_written_state(ExportedProgram::Parts& parts);

void write_tensor_meta(JsonWriter& out, const Tensor& tensor);
void write_graph(JsonWriter& out, const GraphModule& module);

// A constant that only PyTorch can open: its bytes, kept as they are. `kind` is the file's prefix, "custom_obj_".
Value opaque_object(std::string kind, std::string bytes);
const StructValue* as_opaque_object(const Value& value);

// Custom metadata as JSON; value_of_json (file/json_value.h) reads it.
void write_json(JsonWriter& out, const Value& value);

// The text of an operator or function that is itself an argument ("torch.ops.mylib.foo.default").
Value operator_argument(std::string name);
const std::string* as_operator_argument(const Value& value);

// What is not known about an operator that Calque does not have, but must be written again: its arguments' names, and
// whether it gives a list. Kept in the node's meta under this key.
inline constexpr std::string_view unknown_operator_key = "pt2";

}  // namespace calque::pt2
