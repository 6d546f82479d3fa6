#include "export/pt2_support.h"

#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>

#include "calque/base/error.h"
#include "calque/file/safetensors.h"
#include "calque/file/zip.h"
#include "calque/op/operators.h"
#include "support/paths.h"

namespace calque::pt2_test {

std::string golden(const std::string& name) { return test::source_folder() + "/tests/export/golden/" + name; }
std::shared_ptr<const ExportedProgram> load_golden(const std::string& name) { return load_program(golden(name + ".pt2")); }

Values golden_inputs(const ExportedProgram& program, const std::string& name) {
  const SafetensorsFile file = SafetensorsFile::open(golden(name + ".in"));
  Values inputs;
  for (const InputSpec& spec : program.graph_signature().input_specs) {
    if (spec.kind != InputKind::user_input) continue;
    if (spec.arg.kind == ArgumentKind::constant)
      inputs.push_back(spec.arg.value);
    else
      inputs.push_back(file.tensor(spec.arg.name).clone());  // a program may write its inputs
  }
  return inputs;
}

namespace {

std::string compare(const Tensor& got, const Tensor& want) {
  if (got.dtype() != want.dtype() || str(got.sizes()) != str(want.sizes()))
    return "expected " + std::string(name(want.dtype())) + str(want.sizes()) + ", found " + std::string(name(got.dtype())) +
           str(got.sizes());
  if (!is_floating(want.dtype()))
    return want.numel() == 0 || std::memcmp(got.contiguous().data(), want.contiguous().data(), want.nbytes()) == 0
               ? ""
               : "values differ";
  const Tensor a = got.to(DType::float64).contiguous();
  const Tensor b = want.to(DType::float64).contiguous();
  double largest = 1;
  for (int64_t i = 0; i < b.numel(); ++i)
    if (std::isfinite(b.data_as<double>()[i])) largest = std::max(largest, std::fabs(b.data_as<double>()[i]));
  for (int64_t i = 0; i < a.numel(); ++i) {
    const double x = a.data_as<double>()[i];
    const double y = b.data_as<double>()[i];
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    if (!(std::fabs(x - y) <= 1e-5 * largest))
      return "element " + std::to_string(i) + ": expected " + std::to_string(y) + ", found " + std::to_string(x);
  }
  return "";
}

}  // namespace

std::string difference(const ExportedProgram& program, const std::string& name) {
  const Values results = program.run_flat(golden_inputs(program, name));
  const SafetensorsFile file = SafetensorsFile::open(golden(name + ".out"));
  for (const std::string& key : file.names()) {
    const size_t i = std::stoul(key);
    if (i >= results.size() || !results[i].is_tensor()) return "result " + key + " is missing";
    const std::string wrong = compare(results[i].to_tensor(), file.tensor(key));
    if (!wrong.empty()) return "result " + key + ": " + wrong;
  }
  return "";
}

std::shared_ptr<const ExportedProgram> load_bytes(std::string bytes, const LoadProgramOptions& options) {
  const auto owner = std::make_shared<const std::string>(std::move(bytes));
  return load_program(std::as_bytes(std::span(*owner)), owner, options);
}
std::shared_ptr<const ExportedProgram> round_trip(const ExportedProgram& program) {
  return load_bytes(serialize_program(program));
}

namespace {

std::string without_folder(const std::string& name) { return name.substr(name.find('/') + 1); }

}  // namespace

std::string entry(const std::string& archive, const std::string& name) {
  const ZipReader zip(std::as_bytes(std::span(archive)), "archive");
  for (const ZipEntry& e : zip.entries())
    if (without_folder(e.name) == name) return std::string(e.text());
  throw UserError("no entry " + name);
}

nlohmann::json saved_json(const ExportedProgram& program) {
  return nlohmann::json::parse(entry(serialize_program(program), "models/model.json"));
}

const nlohmann::json& node_of(const nlohmann::json& program, const std::string& target) {
  for (const nlohmann::json& node : program.at("graph_module").at("graph").at("nodes"))
    if (node.at("target") == target) return node;
  throw UserError("no node calls " + target);
}

std::string with_entry(const std::string& archive, const std::string& name, const std::string& content) {
  const ZipReader zip(std::as_bytes(std::span(archive)), "archive");
  std::string out;
  ZipWriter writer([&](std::span<const std::byte> b) { out.append(reinterpret_cast<const char*>(b.data()), b.size()); }, "");
  std::string folder;
  bool found = false;
  for (const ZipEntry& e : zip.entries()) {
    const bool replaced = e.name == name || without_folder(e.name) == name;
    found |= replaced;
    if (e.name.find('/') != std::string::npos) folder = e.name.substr(0, e.name.find('/') + 1);
    if (replaced)
      writer.add(e.name, content);
    else
      writer.add(e.name, e.data);
  }
  if (!found) writer.add(folder + name, content);
  writer.finish();
  return out;
}

ExportedProgram copy_of(const ExportedProgram& program) {
  ExportedProgram::Parts parts = program.parts();
  parts.graph_module = deep_copy(*parts.graph_module);
  return ExportedProgram(std::move(parts));
}

}  // namespace calque::pt2_test
