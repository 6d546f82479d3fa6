#include "calque/compile/recording.h"

#include <cstdlib>
#include <filesystem>
#include <mutex>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "calque/base/error.h"
#include "calque/base/version.h"
#include "calque/compile/compile.h"
#include "calque/file/file_writer.h"
#include "calque/file/mapped_file.h"
#include "calque/graph/text.h"
#include "calque/op/aten/zeros.h"
#include "compile/recording.h"

namespace calque {
namespace {

struct RecordingFolder {
  std::mutex mutex;
  bool asked = false;
  std::string path;
  size_t written = 0;
};
RecordingFolder& recording_folder() {
  static RecordingFolder folder;
  return folder;
}

constexpr size_t most_recordings = 64;  // of a process

// State has plain sizes.
Tensor stand_in(const Tensor& like) {
  SymInts sizes;
  for (const SymInt s : like.sym_sizes()) sizes.push_back(s.is_symbolic() ? SymInt(2) : s);
  return zeros(sizes, like.dtype());
}

}  // namespace

void set_recording_folder(const std::string& folder) {
  RecordingFolder& f = recording_folder();
  const std::lock_guard lock(f.mutex);
  f.asked = true;
  f.path = folder;
}

namespace compile_detail {

std::string write_recording(const GraphModule& module, const std::string& function, const std::string& backend,
                            const std::string& error) {
  RecordingFolder& f = recording_folder();
  const std::lock_guard lock(f.mutex);
  if (!f.asked) {
    f.asked = true;
    if (const char* wanted = std::getenv("CALQUE_RECORD")) f.path = wanted;
  }
  if (f.path.empty() || f.written == most_recordings) return {};
  const nlohmann::ordered_json record = {{"calque", version()},
                                         {"function", function},
                                         {"backend", backend},
                                         {"error", error},
                                         {"graph", text_with_symbols(module.graph())}};
  const std::string text = record.dump(1, ' ', true, nlohmann::json::error_handler_t::replace);
  const std::string path = fmt::format("{}/recording_{}.json", f.path, f.written);
  try {
    std::filesystem::create_directories(f.path);
    FileWriter file(path);
    file.write(text.data(), text.size());
    file.commit(false);
  } catch (const std::exception&) {
    return {};  // the failure itself is what the caller is told
  }
  ++f.written;
  return path;
}

}  // namespace compile_detail

Recording Recording::read(const std::string& path) {
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  const std::string_view text(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
  const auto record = nlohmann::json::parse(text, nullptr, false);
  if (!record.is_object())
    throw UserError(ErrorKind::bad_file,
                    path + ": expected a recording, as CALQUE_RECORD=FOLDER writes them, found other text");
  const auto member = [&](const char* name) {
    const auto at = record.find(name);
    if (at == record.end() || !at->is_string())
      throw UserError(ErrorKind::bad_file, path + ": expected a recording with a text '" + name + "', found none");
    return at->get<std::string>();
  };
  return {member("function"), member("backend"), member("error"), member("graph")};
}

Replayed replay(const Recording& recording, const std::string& backend) {
  const std::string name = backend.empty() ? recording.backend : backend;
  if (name.empty())
    throw UserError("replay: " + recording.function +
                    " was given to a function of its program, which is not here; name a backend of " +
                    std::string("these: calque, eager, aot_eager"));
  const Backend run = lookup_backend(name);
  Graph graph = parse_graph(recording.graph);
  Attributes state;
  Values examples;
  for (const Node* n : graph.nodes()) {
    if (n->kind() == NodeKind::placeholder) examples.push_back(n->meta.val);
    if (n->kind() == NodeKind::get_attr && n->meta.val.is_tensor())
      state.emplace_back(n->target().text(), Attribute(stand_in(n->meta.val.to_tensor())));
  }
  try {
    static_cast<void>(run(std::make_shared<GraphModule>(state, std::move(graph)), examples));
    return {};
  } catch (const std::exception& e) {
    return {e.what(), recording.error == e.what()};
  }
}

}  // namespace calque
