// chat_template_peer CASES OUT: renders each line of CASES, a JSON object with a template (or a folder) and what it is given, and
// writes one JSON object a line: the text, or the error.
#include <chrono>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "calque/base/error.h"
#include "calque/text/chat_template.h"

namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found == json.end() || found->is_null() ? "" : found->dump();
}

std::string rendered(const Json& given) {
  const auto chat = given.contains("folder") ? calque::ChatTemplate::from_folder(given["folder"].get<std::string>())
                                             : calque::ChatTemplate::from_text(given["template"].get<std::string>());
  calque::ChatOptions options;
  options.messages_json = text_of(given, "messages");
  options.tools_json = text_of(given, "tools");
  options.documents_json = text_of(given, "documents");
  options.variables_json = text_of(given, "variables");
  options.add_generation_prompt = given.value("add_generation_prompt", false);
  options.continue_final_message = given.value("continue_final_message", false);
  options.now = std::chrono::system_clock::time_point(std::chrono::seconds(given.value("now", int64_t{0})));
  return chat.render(options);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: chat_template_peer CASES OUT\n";
    return 2;
  }
  std::ifstream in(argv[1]);
  std::ofstream out(argv[2]);
  for (std::string line; std::getline(in, line);) {
    Json result;
    try {
      result["text"] = rendered(Json::parse(line));
    } catch (const calque::UserError& error) {
      result["error"] = error.what();
    } catch (const std::exception& error) {
      std::cerr << "chat_template_peer: " << error.what() << '\n';
      return 1;
    }
    out << result.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
  }
  return 0;
}
