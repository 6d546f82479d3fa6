// The options of the text commands on the command line.
#pragma once

namespace CLI {
class App;
}

namespace calque::cli {

void add_task_commands(CLI::App& app);  // tokenize, embed, classify, fill, answer, summarize, translate, chat

}  // namespace calque::cli
