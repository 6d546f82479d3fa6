// What a file is, by its bytes. Of a large file only the beginning, the end and (of a zip) the directory are looked at. Readers ask
// when a file turns out not to be theirs: the message then says what it is, and what to do with that.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "calque/base/error.h"

namespace calque {

enum class FileFormat {
  unknown,
  empty,
  // Read by Calque.
  safetensors,
  checkpoint,  // torch.save's zip or its older form
  program,     // torch.export.save's
  json,
  // Of others.
  torch_script,
  other_pickle,
  tar_checkpoint,
  onnx,
  gguf,
  keras,
  saved_model,
  tensorflow_graph,
  tensorflow_checkpoint,
  tensorflow_lite,
  flax,
  openvino,
  executorch,
  lfs_pointer,
  web_page,
  numpy,
  numpy_archive,
  picture,
  shared_library,
  tar,
  packed,
  other_zip,
  sentencepiece,
  text,
};

FileFormat format_of(std::span<const std::byte> bytes);
// Of a file that can be opened and mapped; UserError otherwise.
FileFormat format_of_file(const std::string& path);

std::string_view format_name(FileFormat format);  // "an ONNX model"
std::string_view next_step(FileFormat format);    // "convert ..."; empty where nothing can be said
bool holds_model(FileFormat format);              // code and weights in one, in a form that is no model folder's

// "PATH: expected EXPECTED, found an ONNX model; NEXT STEP".
[[noreturn]] void refuse_format(const std::string& path, std::string_view expected, FileFormat found);

// What fn() gives. When it refuses bytes that are of another format than `own`, the message says which one they are.
template <class F>
decltype(auto) reading_format(FileFormat own, std::span<const std::byte> bytes, const std::string& what, F&& fn) {
  try {
    return fn();
  } catch (const UserError& error) {
    if (error.kind() != ErrorKind::bad_file) throw;
    const FileFormat found = format_of(bytes);
    if (found == own || found == FileFormat::unknown) throw;
    refuse_format(what, format_name(own), found);
  }
}

}  // namespace calque
