#include "calque/file/npz.h"

#include <set>

#include "calque/base/error.h"
#include "calque/file/file_writer.h"
#include "calque/file/mapped_file.h"
#include "calque/file/npy.h"
#include "calque/file/zip.h"

namespace calque {
namespace {

constexpr std::string_view npy_ending = ".npy";

void check_array_name(const std::string& name) {
  const bool leads_out = name.starts_with('/') || ("/" + name + "/").find("/../") != std::string::npos;
  if (name.empty() || leads_out || name.find('\0') != std::string::npos || name.find('\\') != std::string::npos)
    throw UserError("save_npz: expected names of files below the archive, found '" + name + "'; rename the array");
}

}  // namespace

NamedArrays read_npz(std::span<const std::byte> bytes, const std::string& name) {
  const ZipReader zip(bytes, name);
  NamedArrays out;
  for (const ZipEntry& entry : zip.entries()) {
    if (!entry.name.ends_with(npy_ending))
      throw UserError(
          ErrorKind::bad_file,
          name + ": expected arrays (.npy) alone, as numpy.savez writes them, found the entry '" + entry.name + "'");
    zip.check(entry);
    out.emplace_back(entry.name.substr(0, entry.name.size() - npy_ending.size()),
                     read_npy(entry.data, name + ": " + entry.name));
  }
  return out;
}

NamedArrays load_npz(const std::string& path) {
  const auto file = MappedFile::open(path);
  return read_npz(file->bytes(), path);
}

std::vector<std::byte> serialize_npz(const NamedArrays& arrays) {
  std::set<std::string> names;
  std::vector<std::byte> out;
  ZipWriter zip([&](std::span<const std::byte> bytes) { out.insert(out.end(), bytes.begin(), bytes.end()); }, "");
  for (const auto& [name, tensor] : arrays) {
    check_array_name(name);
    if (!names.insert(name).second) throw UserError("save_npz: expected each name once, found '" + name + "' twice");
    zip.add(name + std::string(npy_ending), serialize_npy(tensor));
  }
  zip.finish();
  return out;
}

void save_npz(const std::string& path, const NamedArrays& arrays) {
  FileWriter file(path);
  file.write(serialize_npz(arrays));
  file.commit();
}

}  // namespace calque
