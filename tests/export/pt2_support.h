// Golden programs of tests/export/golden (tools/golden/pt2.py makes them): load, run, compare, look into what is saved.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "calque/export/pt2.h"
#include "support/folder_support.h"

namespace calque::pt2_test {

using namespace test;

std::string golden(const std::string& name);  // the path
std::shared_ptr<const ExportedProgram> load_golden(const std::string& name);
// The golden inputs, in the order of the program's user inputs.
Values golden_inputs(const ExportedProgram& program, const std::string& name);
// Runs the program on its golden inputs; what differs from PyTorch's results, empty for nothing.
std::string difference(const ExportedProgram& program, const std::string& name);

std::shared_ptr<const ExportedProgram> load_bytes(std::string bytes, const LoadProgramOptions& options = {});
std::shared_ptr<const ExportedProgram> round_trip(const ExportedProgram& program);
// An entry of an archive; the folder that all are in is left out.
std::string entry(const std::string& archive, const std::string& name);
nlohmann::json saved_json(const ExportedProgram& program);  // models/model.json as save_program writes it
const nlohmann::json& node_of(const nlohmann::json& program, const std::string& target);  // the first with this target

// The same archive with one entry replaced, or added.
std::string with_entry(const std::string& archive, const std::string& name, const std::string& content);
// A copy whose graph may be changed.
ExportedProgram copy_of(const ExportedProgram& program);

}  // namespace calque::pt2_test
