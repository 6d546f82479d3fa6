// calque info FILE: what a safetensors file, a program or a checkpoint holds.
#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "calque/file/json.h"
#include "calque/file/safetensors.h"
#include "cli/command.h"
#include "cli/models.h"
#include "cli/program.h"
#include "cli/table.h"

namespace calque::cli {
namespace {

struct Totals {
  uint64_t tensors = 0, elements = 0, bytes = 0;
};

std::map<std::string, Totals> by_dtype(const SafetensorsFile& file) {
  std::map<std::string, Totals> out;
  for (const auto& e : file.entries()) {
    Totals& t = out[std::string(e.dtype_name)];
    ++t.tensors;
    t.elements += static_cast<uint64_t>(e.numel());
    t.bytes += e.nbytes();
  }
  return out;
}

Totals total(const std::map<std::string, Totals>& parts) {
  Totals out;
  for (const auto& [dtype, t] : parts) {
    out.tensors += t.tensors;
    out.elements += t.elements;
    out.bytes += t.bytes;
  }
  return out;
}

std::vector<const SafetensorsEntry*> entries_by_name(const SafetensorsFile& file) {
  std::vector<const SafetensorsEntry*> out;
  out.reserve(file.entries().size());
  for (const SafetensorsEntry& e : file.entries()) out.push_back(&e);
  const auto before = [](const SafetensorsEntry* a, const SafetensorsEntry* b) { return a->name < b->name; };
  if (!std::is_sorted(out.begin(), out.end(), before)) std::stable_sort(out.begin(), out.end(), before);
  return out;
}

// Written as it goes: a document of a million tensors takes longer to build than to print.
void print_tensors_json(const SafetensorsFile& file) {
  if (file.entries().empty()) return fmt::print("[]");
  std::string out = "[";
  const char* separator = "";
  const auto list = [&](const auto& numbers) {
    if (numbers.empty()) {
      out += "[]";
      return;
    }
    for (size_t i = 0; i < numbers.size(); ++i)
      fmt::format_to(std::back_inserter(out), "{}\n        {}", i == 0 ? "[" : ",", numbers[i]);
    out += "\n      ]";
  };
  for (const SafetensorsEntry* e : entries_by_name(file)) {
    fmt::format_to(std::back_inserter(out),
                   "{}\n    {{\n      \"name\": {},\n      \"dtype\": \"{}\",\n      \"shape\": ", separator,
                   json_quoted(e->name), e->dtype_name);
    separator = ",";
    list(e->sizes);
    fmt::format_to(std::back_inserter(out),
                   ",\n      \"parameters\": {},\n      \"bytes\": {},\n      \"data_offsets\": ", e->numel(), e->nbytes());
    list(std::array{e->begin, e->end});
    out += "\n    }";
    if (out.size() < size_t{1} << 16) continue;
    fmt::print("{}", out);
    out.clear();
  }
  fmt::print("{}\n  ]", out);
}

void print_json(const SafetensorsFile& file) {
  using Json = nlohmann::ordered_json;
  const auto parts = by_dtype(file);
  const Totals all = total(parts);
  Json out;
  out["path"] = file.path();
  out["format"] = "safetensors";
  out["file_bytes"] = file.file_bytes();
  out["header_bytes"] = file.header_bytes();
  out["tensor_bytes"] = all.bytes;
  out["parameters"] = all.elements;
  out["metadata"] = file.metadata() ? Json(*file.metadata()) : Json(nullptr);
  out["dtypes"] = Json::object();
  for (const auto& [dtype, t] : parts)
    out["dtypes"][dtype] = {{"tensors", t.tensors}, {"parameters", t.elements}, {"bytes", t.bytes}};
  // A path need not be UTF-8.
  std::string text = out.dump(2, ' ', false, Json::error_handler_t::replace);
  text.resize(text.size() - std::string_view("\n}").size());
  fmt::print("{},\n  \"tensors\": ", text);
  print_tensors_json(file);
  fmt::print("\n}}\n");
}

void print_text(const SafetensorsFile& file) {
  using Align = Table::Align;
  const auto parts = by_dtype(file);
  const Totals all = total(parts);
  fmt::print("{}: safetensors, {} tensors, {} parameters, {} ({} bytes)\n", file.path(), all.tensors,
             with_thousands(all.elements), human_bytes(file.file_bytes()), file.file_bytes());
  if (file.metadata()) {
    fmt::print("\nmetadata\n");
    for (const auto& [key, value] : *file.metadata()) fmt::print("  {}: {}\n", printable(key), printable(value));
  }
  if (file.entries().empty()) return;
  Table tensors({{"tensor"}, {"dtype"}, {"shape"}, {"parameters", Align::right}, {"bytes", Align::right}});
  for (const SafetensorsEntry* e : entries_by_name(file))
    tensors.add({printable(e->name), std::string(e->dtype_name), str(IntList(e->sizes)),
                 with_thousands(static_cast<uint64_t>(e->numel())), with_thousands(e->nbytes())});
  fmt::print("\n{}", tensors.str());
  Table dtypes({{"dtype"}, {"tensors", Align::right}, {"parameters", Align::right}, {"bytes", Align::right}});
  for (const auto& [dtype, t] : parts)
    dtypes.add({dtype, with_thousands(t.tensors), with_thousands(t.elements), with_thousands(t.bytes)});
  dtypes.add({"total", with_thousands(all.tensors), with_thousands(all.elements), with_thousands(all.bytes)});
  fmt::print("\n{}", dtypes.str());
}

}  // namespace

void run_info(const InfoOptions& options) {
  if (names_model(options.path)) return run_model_info(options);
  refuse_model_options("info", {options.path, "", options.dtype, ""});
  switch (kind_of(options.path)) {
    case FileKind::program: return run_program_info(options);
    case FileKind::pickle: return run_pickle_info(options);
    case FileKind::arrays: return run_arrays_info(options);
    case FileKind::safetensors: break;
  }
  const SafetensorsFile file = SafetensorsFile::open(options.path);
  options.json ? print_json(file) : print_text(file);
}

}  // namespace calque::cli
