#include "cli/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "calque/base/error.h"
#include "cli/command.h"
#include "hub/near_names.h"

namespace calque::cli {

void occupy_standard_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    // The lowest free number is the one that open() gives; an output that is open for reading alone refuses to be written.
    if (::fcntl(descriptor, F_GETFD) < 0 && errno == EBADF) [[maybe_unused]]
      const int taken = ::open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

void flush_output() {
  errno = 0;
  const bool written = std::fflush(stdout) == 0 && !std::ferror(stdout);
  if (written) return;
  static int reason = 0;  // the first one: stdio remembers that writing failed, and not why
  if (reason == 0) reason = errno;
  if (reason == EPIPE) throw ExitStatus{2};
  throw UserError(ErrorKind::bad_file, "cannot write standard output" +
                                           (reason ? ": " + std::string(std::strerror(reason)) : std::string()) +
                                           "; what was printed is not complete");
}

// What people ask for that is not written here, and how to get it.
static std::string other_format(const std::string& path) {
  constexpr std::pair<const char*, const char*> ways[] = {
      {".onnx",
       "for ONNX export a .pt2 program and convert it in Python: torch.onnx.export(torch.export.load('model.pt2'), "
       "dynamo=True).save('model.onnx')"},
      {".gguf", "for GGUF save a model folder and convert it with llama.cpp's convert_hf_to_gguf.py"},
      {".torchscript", "TorchScript is not written; a .pt2 program is what PyTorch loads instead (torch.export.load)"},
      {".tflite", "for TensorFlow Lite export a .pt2 program and convert it in Python with litert-torch"},
      {".engine", "for TensorRT export a .pt2 program and compile it in Python with torch_tensorrt"},
      {".mlmodel", "for Core ML export a .pt2 program and convert it in Python with coremltools"},
      {".npy", "numpy reads safetensors: safetensors.numpy.load_file('x.safetensors')"},
      {".npz", "numpy reads safetensors: safetensors.numpy.load_file('x.safetensors')"},
      {".pt", "PyTorch reads safetensors (safetensors.torch.load_file) and .pt2 programs (torch.export.load)"},
      {".pth", "PyTorch reads safetensors (safetensors.torch.load_file) and .pt2 programs (torch.export.load)"},
  };
  for (const auto& [ending, way] : ways)
    if (path.ends_with(ending)) return std::string("; ") + way;
  return "";
}

void require_ending(const std::string& path, const std::string& option, const std::vector<std::string>& endings) {
  if (path.empty()) return;
  for (const std::string& ending : endings)
    if (path == ending || (path.size() > ending.size() && path.ends_with(ending))) return;
  std::vector<std::string> named = endings;
  const bool takes_output = std::erase(named, "-") > 0;
  throw UserError(option + ": expected a name that ends in " + listed(named, "or") +
                  (takes_output ? ", or - for standard output" : "") + ", found '" + path + "'" + other_format(path));
}

static std::atomic<bool> quiet{false};
void be_quiet() { quiet = true; }
bool is_quiet() { return quiet; }

void note(std::string_view message) {
  if (!is_quiet()) say(message);
}

void say(std::string_view message) { write_error_text("calque: " + std::string(message) + "\n"); }

void write_error_text(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace calque::cli
