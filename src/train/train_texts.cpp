// Reads files of texts: lines, JSON lines, CSV.
#include <algorithm>
#include <initializer_list>

#include "calque/base/error.h"
#include "calque/file/json.h"
#include "calque/file/mapped_file.h"
#include "calque/train/data.h"

namespace calque {
namespace {

[[noreturn]] void refuse(const std::string& path, size_t line, const std::string& why) {
  throw UserError(ErrorKind::bad_file, path + ", line " + std::to_string(line) + ": " + why);
}

// What a line has, by column.
using Columns = std::vector<std::pair<std::string, std::string>>;

std::optional<std::string> take(const Columns& columns, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names)
    for (const auto& [column, value] : columns)
      if (column == name) return value;
  return std::nullopt;
}

std::string expected_columns(TrainTask task) {
  switch (task) {
    case TrainTask::causal_lm: return "\"text\", or \"prompt\" and \"completion\"";
    case TrainTask::masked_lm: return "\"text\"";
    case TrainTask::seq2seq_lm: return "\"source\" and \"target\"";
    case TrainTask::classification: return "\"text\" (or \"sentence1\" and \"sentence2\") and \"label\"";
  }
  return "";
}

TrainText text_of_columns(const Columns& columns, TrainTask task, const std::string& path, size_t line) {
  TrainText out;
  std::optional<std::string> first, second;
  bool whole = false;
  switch (task) {
    case TrainTask::causal_lm:
      first = take(columns, {"text", "prompt"});
      second = take(columns, {"completion"});
      whole = first && (second || take(columns, {"text"}));
      break;
    case TrainTask::masked_lm:
      first = take(columns, {"text"});
      whole = first.has_value();
      break;
    case TrainTask::seq2seq_lm:
      first = take(columns, {"source", "input", "text"});
      second = take(columns, {"target", "output", "summary", "label"});
      whole = first && second;
      break;
    case TrainTask::classification:
      first = take(columns, {"text", "sentence", "sentence1", "premise"});
      second = take(columns, {"text_pair", "sentence2", "hypothesis"});
      out.label = take(columns, {"label", "labels"});
      whole = first && out.label;
      break;
  }
  if (!whole) {
    std::string found;
    for (const auto& [name, value] : columns) found += (found.empty() ? "\"" : ", \"") + name + "\"";
    refuse(path, line, "expected " + expected_columns(task) + ", found " + (found.empty() ? "nothing" : found));
  }
  out.first = std::move(*first);
  out.second = std::move(second);
  return out;
}

TrainText text_of_line(std::string_view line, TrainTask task, const std::string& path, size_t number) {
  if (task == TrainTask::causal_lm || task == TrainTask::masked_lm) return {std::string(line), std::nullopt, std::nullopt};
  const size_t tab = line.find('\t');
  if (tab == std::string_view::npos)
    refuse(path, number,
           std::string("expected ") +
               (task == TrainTask::seq2seq_lm ? "a source, a tab and its target" : "a label, a tab and a text") +
               ", found no tab");
  std::string before(line.substr(0, tab)), after(line.substr(tab + 1));
  if (task == TrainTask::seq2seq_lm) return {std::move(before), std::move(after), std::nullopt};
  return {std::move(after), std::nullopt, std::move(before)};
}

TrainText text_of_json(std::string_view line, TrainTask task, const std::string& path, size_t number) {
  const JsonDocument document(line, path + ", line " + std::to_string(number));
  return document.read([&](const Json& root) {
    Columns columns;
    for (const JsonMember& member : root.members()) {
      const Json& value = member.value;
      if (value.is_string())
        columns.emplace_back(member.key, value.to_string());
      else if (value.kind() == Json::Kind::integer)
        columns.emplace_back(member.key, std::to_string(value.to_int()));
      else if (value.kind() == Json::Kind::boolean)
        columns.emplace_back(member.key, value.to_bool() ? "1" : "0");
      else if (value.kind() == Json::Kind::floating)
        columns.emplace_back(member.key, Value(value.to_float()).str());
    }
    return text_of_columns(columns, task, path, number);
  });
}

// Fields of CSV: quoted ones may hold commas, line ends and doubled quotes.
class CsvReader {
 public:
  CsvReader(std::string_view content, const std::string& path) : content_(content), path_(path) {}
  bool at_end() const { return at_ >= content_.size(); }
  size_t line() const { return line_; }

  std::vector<std::string> row() {
    std::vector<std::string> out;
    for (;;) {
      out.push_back(field());
      if (at_end()) return out;
      const char c = content_[at_++];
      if (c == ',') continue;
      if (c == '\r' && !at_end() && content_[at_] == '\n') ++at_;
      ++line_;
      return out;
    }
  }

 private:
  std::string field() {
    std::string out;
    if (at_end() || content_[at_] != '"') {
      const size_t end = std::min(content_.find_first_of(",\r\n", at_), content_.size());
      out = content_.substr(at_, end - at_);
      at_ = end;
      return out;
    }
    const size_t opened = line_;
    for (++at_;; ++at_) {
      if (at_end()) refuse(path_, opened, "a quoted field has no end; expected a closing \"");
      const char c = content_[at_];
      if (c == '\n') ++line_;
      if (c != '"') {
        out += c;
        continue;
      }
      if (at_ + 1 < content_.size() && content_[at_ + 1] == '"') {
        out += '"';
        ++at_;
        continue;
      }
      ++at_;
      break;
    }
    if (!at_end() && content_[at_] != ',' && content_[at_] != '\r' && content_[at_] != '\n')
      refuse(path_, line_,
             std::string("expected a comma or the end of the line after a quoted field, found '") + content_[at_] + "'");
    return out;
  }

  std::string_view content_;
  const std::string& path_;
  size_t at_ = 0, line_ = 1;
};

std::vector<TrainText> texts_of_csv(std::string_view content, TrainTask task, const std::string& path) {
  CsvReader reader(content, path);
  std::vector<TrainText> out;
  if (reader.at_end()) return out;
  const std::vector<std::string> header = reader.row();
  while (!reader.at_end()) {
    const size_t line = reader.line();
    std::vector<std::string> row = reader.row();
    if (row.size() == 1 && row[0].empty()) continue;
    if (row.size() != header.size())
      refuse(path, line,
             "expected " + std::to_string(header.size()) + " fields as the header has, found " + std::to_string(row.size()));
    Columns columns;
    for (size_t i = 0; i < row.size(); ++i) columns.emplace_back(header[i], std::move(row[i]));
    out.push_back(text_of_columns(columns, task, path, line));
  }
  return out;
}

}  // namespace

std::vector<TrainText> parse_train_texts(std::string_view content, const std::string& path, TrainTask task) {
  if (content.starts_with("\xEF\xBB\xBF")) content.remove_prefix(3);
  std::vector<TrainText> out;
  if (path.ends_with(".csv")) {
    out = texts_of_csv(content, task, path);
  } else if (path.ends_with(".txt") || path.ends_with(".jsonl")) {
    const bool json = path.ends_with(".jsonl");
    size_t number = 0;
    while (!content.empty()) {
      const size_t end = std::min(content.find('\n'), content.size());
      std::string_view line = content.substr(0, end);
      content.remove_prefix(std::min(end + 1, content.size()));
      ++number;
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (line.find_first_not_of(" \t") == std::string_view::npos) continue;
      out.push_back(json ? text_of_json(line, task, path, number) : text_of_line(line, task, path, number));
    }
  } else {
    throw UserError(path + ": its ending says how it is read; expected .txt (a text a line), .jsonl or .csv");
  }
  if (out.empty()) throw UserError(ErrorKind::bad_file, path + ": there is no text in it");
  return out;
}

std::vector<TrainText> read_train_texts(const std::string& path, TrainTask task) {
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  const std::span<const std::byte> bytes = file->bytes();
  return parse_train_texts({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path, task);
}

}  // namespace calque
