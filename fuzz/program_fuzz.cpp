// Programs that are changed and then run: .pt2 archives of PyTorch (tests/export/golden) and, for every operator that PyTorch's
// cases cover (tests/op/golden), a program that calls it. A change keeps the JSON of the graph JSON, so that most programs load and call
// operators. The answer is results, or a UserError.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "../tests/op/opcheck_support.h"
#include "../tests/support/json_changes.h"
#include "calque/base/error.h"
#include "calque/base/memory.h"
#include "calque/base/thread.h"
#include "calque/base/warning.h"
#include "calque/export/export.h"
#include "calque/export/pt2.h"
#include "calque/file/zip.h"
#include "calque/op/bind_arguments.h"
#include "calque/op/mode.h"
#include "forked.h"
#include "support/paths.h"

using namespace calque;
using Json = nlohmann::ordered_json;

namespace {

constexpr const char* graph_entry = "models/model.json";

// An archive in parts: the graph as JSON, everything else as it is.
struct Archive {
  Json graph;
  std::vector<std::pair<std::string, std::string>> others;
};

Archive take_apart(const std::string& bytes) {
  Archive a;
  const ZipReader zip(std::as_bytes(std::span(bytes)), "a seed");
  for (const ZipEntry& e : zip.entries()) {
    const size_t slash = e.name.find('/');
    const std::string inner = slash == std::string::npos ? e.name : e.name.substr(slash + 1);
    if (inner == graph_entry || e.name == graph_entry)
      a.graph = Json::parse(e.text());
    else
      a.others.emplace_back(zip.find("archive_format") ? e.name : inner, std::string(e.text()));
  }
  return a;
}

std::string put_together(const Archive& a, const std::string& graph) {
  std::string out;
  ZipWriter zip([&](std::span<const std::byte> b) { out.append(reinterpret_cast<const char*>(b.data()), b.size()); },
                "fuzz");
  for (const auto& [name, text] : a.others) zip.add(name, text);
  zip.add(graph_entry, graph);
  zip.finish();
  return out;
}

// What the program's placeholders ask for, with sizes that are not known as 2.
Value input_for(const InputSpec& spec, const ExportedProgram& program, std::mt19937& chance) {
  if (spec.arg.kind == ArgumentKind::constant) return spec.arg.value;
  for (const Node* node : program.graph().nodes()) {
    if (node->name() != spec.arg.name || !node->meta.val.is_tensor()) continue;
    const Tensor& like = node->meta.val.to_tensor();
    std::vector<int64_t> sizes;
    int64_t count = 1;
    for (const SymInt s : like.sym_sizes()) {
      const int64_t size = s.is_symbolic() ? 2 : s.as_int();
      if (size < 0 || size > 4096 || count > 65536 || (count *= std::max<int64_t>(size, 1)) > 65536)
        throw UserError("an input too large to make");
      sizes.push_back(size);
    }
    const Tensor t = make_tensor(sizes, like.dtype());
    auto* bytes = static_cast<unsigned char*>(t.mutable_data());
    const bool wild = chance() % 4 == 0;
    for (size_t i = 0; i < t.nbytes(); ++i) bytes[i] = wild ? static_cast<unsigned char>(chance()) : 0;
    return t;
  }
  return int64_t{2};
}

forked::Outcome attempt(const Archive& seed, uint64_t number) {
  std::mt19937 chance(static_cast<unsigned>(number));
  Json graph = seed.graph;
  for (size_t times = chance() % 4; times > 0; --times) test::change_one(graph, chance);
  const std::string text = graph.dump(-1, ' ', false, Json::error_handler_t::replace);
  const auto bytes = std::make_shared<const std::string>(put_together(seed, text));
  try {
    const auto program = load_program(std::as_bytes(std::span(*bytes)), bytes);
    Values inputs;
    for (const InputSpec& spec : program->graph_signature().input_specs)
      if (spec.kind == InputKind::user_input) inputs.push_back(input_for(spec, *program, chance));
    // A loop need not end, and is no finding. The second call has the plan with packed weights.
    for (int times = 0; times < 2 && text.find("while_loop") == std::string::npos; ++times)
      static_cast<void>(program->run_flat(inputs));
    return {forked::Kind::answered, ""};
  } catch (const UserError& e) {
    return {forked::Kind::refused, e.what()};
  } catch (const std::exception& e) {
    return {forked::Kind::wrong, std::string("not a UserError: ") + e.what()};
  }
}

// A program whose only call is the operator's, its tensors the program's inputs.
std::optional<std::string> program_of(const Operator& op, const opcheck::CaseFile& golden, size_t at) {
  try {
    const opcheck::Arguments made = opcheck::make_arguments(golden, golden.at(at), op, opcheck::Data::real);
    Values args = bind_arguments(op.schema(), made.positional, made.keyword);
    Values tensors;
    for (const Value& v : args)
      if (v.is_tensor()) tensors.push_back(v);
    TraceableFunction function;
    for (size_t i = 0; i < tensors.size(); ++i) function.names.push_back("x" + std::to_string(i));
    function.body = [&](const Values& inputs) {
      Values call_args = args;
      size_t next = 0;
      for (Value& v : call_args)
        if (v.is_tensor()) v = inputs.at(next++);
      return dispatch(op, call_args);
    };
    return serialize_program(export_program(function, tensors));
  } catch (const std::exception&) {
    return std::nullopt;  // no such program: writes its input, gives no tensor, ...
  }
}

}  // namespace

int main(int argc, char** argv) {
  set_memory_limit(size_t{256} << 20);
  set_num_threads(1);
  set_warning_sink([](std::string_view) {});
  std::vector<forked::Subject> subjects;
  const auto add = [&](const std::string& family, const std::string& name, const std::string& bytes) {
    const auto archive = std::make_shared<const Archive>(take_apart(bytes));
    if (!archive->graph.is_null())
      subjects.push_back({family, name, [archive](uint64_t seed) { return attempt(*archive, seed); }, {}});
  };
  const std::filesystem::path tests = calque::test::source_folder() + "/tests";
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(tests / "export/golden"))
    if (entry.path().extension() == ".pt2" && entry.file_size() < 100000) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const auto& path : files) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    add("PyTorch's", path.stem().string(), text.str());
  }
  const opcheck::CaseFile golden((tests / "op/golden/cases.jsonl").string());
  std::map<std::string, int> taken;
  for (size_t i = 0; i < golden.size(); ++i) {
    const Operator* op = find_operator(golden.operator_at(i));
    if (!op || taken[op->name()] >= 2) continue;
    const auto bytes = program_of(*op, golden, i);
    if (!bytes) continue;
    ++taken[op->name()];
    add("operators", op->name() + "#" + std::to_string(i), *bytes);
  }
  return forked::run(argc, argv, subjects);
}
