#include "file/file_format.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>

#include "base/utf8.h"
#include "calque/file/mapped_file.h"
#include "calque/file/zip.h"

namespace calque {
namespace {

constexpr const char* export_it =
    "export the model that it was made from with PyTorch (torch.export.save), and run the .pt2 file with `calque run`";
constexpr const char* save_it =
    "load it with transformers 4 in Python (from_tf=True or from_flax=True) and save_pretrained it as safetensors, or take "
    "the "
    "model's safetensors files";

struct FormatFact {
  FileFormat format;
  const char* name;
  const char* next;
  bool holds_model = false;
};

// The one list.
constexpr FormatFact facts[] = {
    {FileFormat::unknown, "a file of an unknown kind", ""},
    {FileFormat::empty, "an empty file", "a download or a copy was cut off: fetch it again"},
    {FileFormat::safetensors, "a safetensors file", "`calque info FILE` shows its tensors"},
    {FileFormat::checkpoint, "a checkpoint of torch.save", "`calque info FILE` shows what it holds"},
    {FileFormat::program, "a .pt2 program of torch.export.save",
     "`calque info FILE` shows its inputs, `calque run FILE` runs it", true},
    {FileFormat::json, "a JSON text",
     "where it is a model's configuration, index or tokenizer, name the folder that it is in"},
    {FileFormat::torch_script, "a TorchScript archive (torch.jit.save)",
     "it holds code, not only tensors; export the module that it was made from with torch.export.export and "
     "torch.export.save, and run the .pt2 file with `calque run`; its weights alone: in Python "
     "torch.save(torch.jit.load('FILE')"
     ".state_dict(), 'weights.pt')",
     true},
    {FileFormat::other_pickle, "a pickle that is not a checkpoint of torch.save",
     "a pickle is a program of Python's and is not run here; load it in Python and save its tensors with torch.save or "
     "safetensors.torch.save_file"},
    {FileFormat::tar_checkpoint, "a checkpoint in the tar form of PyTorch before 0.1.10",
     "load it in Python (torch.load) and save it again (torch.save)"},
    {FileFormat::onnx, "an ONNX model", export_it, true},
    {FileFormat::gguf, "a GGUF file of llama.cpp",
     "its weights may be quantised, which Calque does not read; take the model's safetensors files, or convert it with "
     "transformers (from_pretrained(FOLDER, gguf_file='FILE'), then save_pretrained)",
     true},
    {FileFormat::keras, "an HDF5 file (Keras weights, tf_model.h5)", save_it, true},
    {FileFormat::saved_model, "a TensorFlow SavedModel", save_it, true},
    {FileFormat::tensorflow_graph, "a frozen TensorFlow graph", save_it, true},
    {FileFormat::tensorflow_checkpoint, "the index of a TensorFlow checkpoint", save_it, true},
    {FileFormat::tensorflow_lite, "a TensorFlow Lite model", export_it, true},
    {FileFormat::flax, "a Flax checkpoint (msgpack)", save_it, true},
    {FileFormat::openvino, "an OpenVINO model", export_it, true},
    {FileFormat::executorch, "an ExecuTorch program (.pte)",
     "it is compiled for devices; take the .pt2 file that it was lowered from, and run that with `calque run`", true},
    {FileFormat::lfs_pointer, "a Git LFS pointer, not the weights themselves",
     "the repository was cloned without git-lfs: install git-lfs and run `git lfs install` followed by `git lfs pull` in "
     "the "
     "folder"},
    {FileFormat::web_page, "a web page",
     "a download failed or asked for a login: open the page, see what it says, and fetch the file again (of the hub: `hf "
     "download ORG/NAME`)"},
    {FileFormat::numpy, "a numpy array (.npy)",
     "save it as safetensors in Python: safetensors.numpy.save_file({'x': numpy.load('FILE')}, 'x.safetensors')"},
    {FileFormat::numpy_archive, "a numpy archive (.npz)",
     "save it as safetensors in Python: safetensors.numpy.save_file(dict(numpy.load('FILE')), 'x.safetensors')"},
    {FileFormat::picture, "a picture", ""},
    {FileFormat::shared_library, "a shared library or a program of the machine", ""},
    {FileFormat::tar, "a tar archive", "unpack it (tar -xf FILE) and name what is in it"},
    {FileFormat::packed, "a compressed file (gzip, bzip2, xz or zstd)", "unpack it and name what is in it"},
    {FileFormat::other_zip, "a zip archive that neither torch.save nor torch.export.save wrote",
     "unpack it (unzip FILE) and name what is in it"},
    {FileFormat::sentencepiece, "a SentencePiece model (a tokenizer)", "name the folder that it is in"},
    {FileFormat::text, "a text file", ""},
};

const FormatFact& fact_of(FileFormat format) {
  return *std::find_if(std::begin(facts), std::end(facts), [&](const FormatFact& f) { return f.format == format; });
}

std::string_view text_of_bytes(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool starts_with_word(std::string_view text, std::string_view word) {
  return text.size() >= word.size() &&
         std::equal(word.begin(), word.end(), text.begin(), [](char w, char t) { return w == lower(t); });
}

// Fields of a protobuf message: which there are, by number, and where the first long one lies.
struct Fields {
  uint64_t varints = 0, lengths = 0;  // bit n: field n is there with that wire type
  std::string_view first;             // of the first field that has a length
  uint64_t first_number = 0;
  size_t count = 0;
};

std::optional<uint64_t> varint(std::string_view& in) {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !in.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(in[0]);
    in.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7fU) << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

// Of a whole message, or of its first fields where there are many.
std::optional<Fields> protobuf_fields(std::string_view in) {
  constexpr size_t enough = 64;
  Fields out;
  for (; !in.empty() && out.count < enough; ++out.count) {
    const std::optional<uint64_t> tag = varint(in);
    if (!tag || *tag >> 3 == 0 || *tag >> 3 >= 64) return std::nullopt;
    const uint64_t number = *tag >> 3;
    switch (*tag & 7U) {
      case 0:
        if (!varint(in)) return std::nullopt;
        out.varints |= uint64_t{1} << number;
        break;
      case 1:
        if (in.size() < 8) return std::nullopt;
        in.remove_prefix(8);
        break;
      case 2: {
        const std::optional<uint64_t> length = varint(in);
        if (!length || *length > in.size()) return std::nullopt;
        if (out.lengths == 0) out.first = in.substr(0, *length), out.first_number = number;
        out.lengths |= uint64_t{1} << number;
        in.remove_prefix(*length);
        break;
      }
      case 5:
        if (in.size() < 4) return std::nullopt;
        in.remove_prefix(4);
        break;
      default: return std::nullopt;
    }
  }
  return out;
}

constexpr uint64_t field(unsigned number) { return uint64_t{1} << number; }

bool printable_text(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    const auto u = static_cast<unsigned char>(c);
    return u >= 0x20 || c == '\n' || c == '\t' || c == '\r' || c == '\f';
  });
}

FileFormat protobuf_format(std::string_view text) {
  const std::optional<Fields> f = protobuf_fields(text);
  if (!f || f->count == 0) return FileFormat::unknown;
  // ModelProto: 1 ir_version, 7 graph, 8 opset_import.
  if ((f->varints & field(1)) && (f->lengths & (field(7) | field(8)))) return FileFormat::onnx;
  // SavedModel: 1 schema version, 2 meta graphs. GraphDef: 1 nodes, each with a name (1) and an operator (2).
  if (f->varints == field(1) && f->lengths == field(2)) return FileFormat::saved_model;
  if (f->first_number != 1) return FileFormat::unknown;
  const std::optional<Fields> inner = protobuf_fields(f->first);
  if (!inner || inner->first_number != 1 || inner->first.empty() || !printable_text(inner->first))
    return FileFormat::unknown;
  // SentencePiece: 1 pieces, each with a text (1), a score (a float, 2) and a kind; the first is "<unk>" or "<pad>".
  if (inner->first.front() == '<' && !(inner->lengths & field(2))) return FileFormat::sentencepiece;
  if ((inner->lengths & field(2)) && (f->lengths & ~(field(1) | field(2) | field(4))) == 0)
    return FileFormat::tensorflow_graph;
  return FileFormat::unknown;
}

FileFormat zip_format(std::span<const std::byte> bytes) {
  try {
    const ZipReader zip(bytes, "", ZipContent::stored);
    bool pickle = false, code = false, arrays = !zip.entries().empty();
    for (const ZipEntry& e : zip.entries()) {
      const bool top = std::count(e.name.begin(), e.name.end(), '/') == 1;
      pickle |= top && e.name.ends_with("/data.pkl");
      code |= (top && e.name.ends_with("/constants.pkl")) || e.name.find("/code/") != std::string::npos;
      arrays &= e.name.ends_with(".npy");
      if (e.name == "archive_format" || e.name.ends_with("/archive_format") || e.name == "serialized_exported_program.json")
        return FileFormat::program;
    }
    return code && pickle ? FileFormat::torch_script
           : pickle       ? FileFormat::checkpoint
           : arrays       ? FileFormat::numpy_archive
                          : FileFormat::other_zip;
  } catch (const UserError&) {  // damaged: whoever reads it says how
    return FileFormat::unknown;
  }
}

// A map of msgpack whose first key is a text. Flax's files are that.
bool is_msgpack_map(std::string_view text) {
  const auto at = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const size_t key = at(0) >= 0x81 && at(0) <= 0x8f ? 1 : at(0) == 0xde ? 3 : at(0) == 0xdf ? 5 : 0;
  if (key == 0) return false;
  const bool short_text = at(key) >= 0xa1 && at(key) <= 0xbf;
  const size_t length = short_text ? at(key) & 0x1fU : at(key) == 0xd9 ? at(key + 1) : 0;
  const size_t begin = key + (short_text ? 1 : 2);
  return length > 0 && begin + length <= text.size() && printable_text(text.substr(begin, length));
}

// By the first bytes of binary formats.
FileFormat magic_format(std::string_view text) {
  struct Magic {
    size_t at;
    std::string_view bytes;
    FileFormat format;
  };
  static constexpr Magic magics[] = {
      {0, "GGUF", FileFormat::gguf},
      {0, "ggjt", FileFormat::gguf},
      {0, "\x89HDF\r\n\x1a\n", FileFormat::keras},
      {4, "TFL3", FileFormat::tensorflow_lite},
      {4, "ET12", FileFormat::executorch},
      {0, "\x93NUMPY", FileFormat::numpy},
      {0, "\x89PNG", FileFormat::picture},
      {0, "\xff\xd8\xff", FileFormat::picture},
      {0, "GIF8", FileFormat::picture},
      {0,
       "\x7f"
       "ELF",
       FileFormat::shared_library},
      {0, "\x1f\x8b", FileFormat::packed},
      {0, "BZh", FileFormat::packed},
      {0,
       "\xfd"
       "7zXZ",
       FileFormat::packed},
      {0, "\x28\xb5\x2f\xfd", FileFormat::packed},
  };
  for (const Magic& m : magics)
    if (text.size() > m.at && text.substr(m.at).starts_with(m.bytes)) return m.format;
  if (text.size() > 512 && text.substr(257).starts_with("ustar"))
    return text.substr(0, 100).find("sys_info") != std::string_view::npos ||
                   text.substr(0, 100).find("storages") != std::string_view::npos
               ? FileFormat::tar_checkpoint
               : FileFormat::tar;
  // The footer of a table of LevelDB, which a TensorFlow checkpoint's index is.
  if (text.size() >= 48 && text.ends_with("\x57\xfb\x80\x8b\x24\x75\x47\xdb")) return FileFormat::tensorflow_checkpoint;
  return FileFormat::unknown;
}

FileFormat text_format(std::string_view text) {
  std::string_view start = text.substr(0, 4096);
  if (start.size() < text.size())  // not in the middle of a letter
    while (!start.empty() && (static_cast<unsigned char>(text[start.size()]) & 0xc0U) == 0x80U) start.remove_suffix(1);
  if (!printable_text(start) || !is_valid_utf8(start)) return FileFormat::unknown;
  if (start.starts_with("\xef\xbb\xbf")) start.remove_prefix(3);
  start.remove_prefix(std::min(start.find_first_not_of(" \t\r\n"), start.size()));
  if (start.starts_with("version https://git-lfs")) return FileFormat::lfs_pointer;
  if (starts_with_word(start, "<!doctype html") || starts_with_word(start, "<html")) return FileFormat::web_page;
  if (start.starts_with("<?xml"))
    return start.find("<net ") != std::string_view::npos   ? FileFormat::openvino
           : start.find("<html") != std::string_view::npos ? FileFormat::web_page
                                                           : FileFormat::text;
  // Whether it is good JSON its reader says.
  if (start.starts_with('{') || start.starts_with('[')) return FileFormat::json;
  return FileFormat::text;
}

bool is_safetensors_start(std::string_view text) {
  uint64_t header = 0;
  if (text.size() < 10) return false;
  std::memcpy(&header, text.data(), sizeof header);
  return text[8] == '{' && header < (uint64_t{1} << 32);
}

}  // namespace

FileFormat format_of(std::span<const std::byte> bytes) {
  const std::string_view text = text_of_bytes(bytes);
  if (text.empty()) return FileFormat::empty;
  if (is_safetensors_start(text)) return FileFormat::safetensors;
  if (text.starts_with("PK\3\4") || text.starts_with("PK\5\6")) return zip_format(bytes);
  if (text[0] == '\x80' && text.size() > 2 && text[1] >= 1 && text[1] <= 5) {
    constexpr std::string_view torch_magic("\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 10);
    return text.substr(0, 32).find(torch_magic) != std::string_view::npos ? FileFormat::checkpoint
                                                                          : FileFormat::other_pickle;
  }
  if (const FileFormat found = magic_format(text); found != FileFormat::unknown) return found;
  if (is_msgpack_map(text)) return FileFormat::flax;
  if (const FileFormat found = text_format(text); found != FileFormat::unknown) return found;
  return protobuf_format(text);
}

FileFormat format_of_file(const std::string& path) { return format_of(MappedFile::open(path)->bytes()); }

std::string_view format_name(FileFormat format) { return fact_of(format).name; }
std::string_view next_step(FileFormat format) { return fact_of(format).next; }
bool holds_model(FileFormat format) { return fact_of(format).holds_model; }

void refuse_format(const std::string& path, std::string_view expected, FileFormat found) {
  std::string next(next_step(found));
  // With the file's own name where the advice speaks of it.
  for (size_t at = next.find("FILE"); at != std::string::npos; at = next.find("FILE", at + path.size()))
    next.replace(at, 4, path);
  throw UserError(ErrorKind::bad_file, path + ": expected " + std::string(expected) + ", found " +
                                           std::string(format_name(found)) + (next.empty() ? "" : "; " + next));
}

}  // namespace calque
