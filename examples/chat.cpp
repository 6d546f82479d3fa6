// A conversation:  chat FOLDER SYSTEM MESSAGE...
// The folder's chat template writes it for the model; what the model has read already is not read again.
#include <calque/calque.h>
#include <calque/task/chat.h>

#include <iostream>

using namespace calque;

int main(int argc, char** argv) try {
  if (argc < 4) throw UserError("usage: chat FOLDER SYSTEM MESSAGE...");
  Chat chat = Chat::from_folder(argv[1]);
  chat.system(argv[2]);
  chat.settings.max_new_tokens = 16;
  chat.settings.do_sample = false;
  for (int i = 3; i < argc; ++i) {
    std::cout << "you: " << argv[i] << "\nmodel: ";
    const ChatTurn turn = chat.say(argv[i], [](std::string_view text) { std::cout << text << std::flush; });
    std::cout << "\n(" << turn.prompt_tokens << " tokens read, " << turn.ids.size() << " written)\n";
  }
  std::cout << chat.history().size() << " messages\n";
} catch (const Error& error) {
  std::cerr << error.what() << "\n";
  return 2;
}
