// Chat templates against what transformers made of the same ones (golden/chat_templates.jsonl, written by
// tools/golden/chat_template_golden.py), what a folder may hold, and what a template may not do.
#include "calque/text/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "calque/base/error.h"
#include "support/error_support.h"
#include "support/folder_support.h"
#include "support/paths.h"

namespace calque::chat_template_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using Nlohmann = nlohmann::ordered_json;
using test::error_of;

const std::vector<ChatMessage> hello = {{"user", "Hello"}};

std::string rendered(const std::string& text, const std::string& variables = "") {
  ChatOptions options;
  options.messages = hello;
  options.variables_json = variables;
  return ChatTemplate::from_text(text).render(options);
}
std::string refused(const std::string& text, const std::string& variables = "") {
  return error_of([&] { rendered(text, variables); });
}

std::string member(const Nlohmann& row, const char* key) {
  return row.contains(key) && !row[key].is_null() ? row[key].dump() : "";
}

// What a row of the goldens is rendered with.
ChatOptions options_of(const Nlohmann& row, const std::string& shared_variables) {
  ChatOptions options;
  options.messages_json = member(row, "messages");
  options.variables_json = member(row, "variables");
  if (options.messages_json.empty()) {
    options.messages = hello;
    options.variables_json = shared_variables;
  } else {
    options.special_tokens = {{"bos_token", "<s>"}, {"eos_token", "</s>"}, {"unk_token", "<unk>"}, {"pad_token", "<pad>"}};
  }
  options.tools_json = member(row, "tools");
  options.documents_json = member(row, "documents");
  options.add_generation_prompt = row.value("add_generation_prompt", false);
  options.continue_final_message = row.value("continue_final_message", false);
  return options;
}

TEST(ChatTemplate, gives_the_text_of_transformers) {
  std::ifstream golden(test::source_folder() + "/tests/text/golden/chat_templates.jsonl");
  std::string shared, line;
  std::getline(golden, shared);
  int texts = 0, errors = 0;
  while (std::getline(golden, line)) {
    const Nlohmann row = Nlohmann::parse(line);
    const std::string what = row.value("name", row["template"].get<std::string>());
    std::string found;
    const std::string error = error_of(
        [&] { found = ChatTemplate::from_text(row["template"].get<std::string>()).render(options_of(row, shared)); });
    if (row.contains("text")) {
      EXPECT_EQ(error, "") << what;
      EXPECT_EQ(found, row["text"].get<std::string>()) << what;
      ++texts;
    } else {
      EXPECT_NE(error, "") << what << " gave " << found << ", not " << row["error"];
      ++errors;
    }
  }
  EXPECT_GT(texts, 650);
  EXPECT_GT(errors, 100);
}

TEST(ChatTemplate, a_refusal_has_the_words_of_the_template) {
  EXPECT_EQ(refused("{{ raise_exception('Roles must alternate!') }}"), "chat template: Roles must alternate!");
}

TEST(ChatTemplate, an_error_names_the_line) {
  EXPECT_EQ(refused("a\n{{ messages.x.y }}"), "chat template: line 2: 'list object' has no attribute 'x'");
  EXPECT_EQ(refused("\n\n{% if %}"), "chat template: line 3: Expected an expression, got 'end of statement block'");
}

TEST(ChatTemplate, the_clock_can_be_set) {
  setenv("TZ", "UTC", 1);
  tzset();
  ChatOptions options;
  options.messages = hello;
  options.now = std::chrono::system_clock::time_point(std::chrono::seconds(1'700'000'000));
  const auto chat = ChatTemplate::from_text("{{ strftime_now('%d %b %Y %H:%M:%S.%f %-d %%') }}");
  EXPECT_EQ(chat.render(options), "14 Nov 2023 22:13:20.000000 14 %");
}

TEST(ChatTemplate, special_tokens_and_template_come_from_the_folder) {
  const test::TemporaryFolder folder;
  folder.write(
      "tokenizer_config.json",
      R"({"chat_template": "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}", "bos_token": {"content": "<s>"}})");
  folder.write("special_tokens_map.json", R"({"bos_token": "<other>", "eos_token": "</s>"})");
  EXPECT_TRUE(ChatTemplate::exists_in(folder.path()));
  const auto chat = ChatTemplate::from_folder(folder.path());
  EXPECT_EQ(chat.render(hello, false), "<s>Hello</s>");
  EXPECT_EQ(chat.special_token("eos_token"), "</s>");
  EXPECT_EQ(chat.special_token("pad_token"), std::nullopt);
  ChatOptions options;
  options.messages = hello;
  options.special_tokens = {{"bos_token", "<b>"}};
  EXPECT_EQ(chat.render(options), "<b>Hello</s>");
}

TEST(ChatTemplate, files_come_before_the_configuration) {
  const test::TemporaryFolder folder;
  folder.write("tokenizer_config.json", R"({"chat_template": "config"})");
  folder.write("chat_template.json", R"({"chat_template": "processor"})");
  folder.write("chat_template.jinja", "file");
  EXPECT_EQ(ChatTemplate::from_folder(folder.path()).render(hello, false), "file");
  std::filesystem::remove(folder.path() / "chat_template.jinja");
  EXPECT_EQ(ChatTemplate::from_folder(folder.path()).render(hello, false), "config");
  std::filesystem::remove(folder.path() / "tokenizer_config.json");
  EXPECT_EQ(ChatTemplate::from_folder(folder.path()).render(hello, false), "processor");
}

TEST(ChatTemplate, tools_choose_the_template_for_tools) {
  const test::TemporaryFolder folder;
  folder.write("chat_template.jinja", "default");
  folder.write("additional_chat_templates/tool_use.jinja", "tools");
  folder.write("additional_chat_templates/rag.jinja", "rag");
  const auto chat = ChatTemplate::from_folder(folder.path());
  EXPECT_THAT(chat.names(), ElementsAre("default", "rag", "tool_use"));
  ChatOptions options;
  options.messages = hello;
  EXPECT_EQ(chat.render(options), "default");
  options.tools_json = R"([{"type": "function"}])";
  EXPECT_EQ(chat.render(options), "tools");
  options.template_name = "rag";
  EXPECT_EQ(chat.render(options), "rag");
  EXPECT_EQ(ChatTemplate::from_folder(folder.path(), "rag").render(hello, false), "rag");
  options.template_name = "none";
  EXPECT_THAT(error_of([&] { chat.render(options); }),
              HasSubstr("no chat template is named \"none\"; there is \"default\""));
}

TEST(ChatTemplate, several_templates_may_stand_in_the_configuration) {
  const test::TemporaryFolder folder;
  folder.write("tokenizer_config.json",
               R"({"chat_template": [{"name": "default", "template": "a"}, {"name": "broken", "template": "{% if"}]})");
  const auto chat = ChatTemplate::from_folder(folder.path());
  EXPECT_EQ(chat.render(hello, false), "a");
  EXPECT_THAT(error_of([&] { ChatTemplate::from_folder(folder.path(), "broken"); }, ErrorKind::bad_file),
              HasSubstr("(\"broken\")"));
}

TEST(ChatTemplate, a_folder_without_one_says_what_to_do) {
  const test::TemporaryFolder folder;
  EXPECT_FALSE(ChatTemplate::exists_in(folder.path()));
  EXPECT_THAT(error_of([&] { ChatTemplate::from_folder(folder.path()); }, ErrorKind::bad_file),
              AllOf(HasSubstr("the model has no chat template"), HasSubstr("put a template of your own in")));
  EXPECT_THAT(error_of([&] { ChatTemplate::from_folder(folder.path() / "absent"); }), HasSubstr("there is no such folder"));
}

TEST(ChatTemplate, messages_must_be_messages) {
  const auto chat = ChatTemplate::from_text("x");
  const auto refused_messages = [&](const std::string& json) {
    ChatOptions options;
    options.messages_json = json;
    return error_of([&] { chat.render(options); });
  };
  EXPECT_THAT(refused_messages("[]"), HasSubstr("Provide at least one message"));
  EXPECT_THAT(refused_messages("{}"), HasSubstr("messages: expected a JSON array of objects, found dict"));
  EXPECT_THAT(refused_messages("[1]"), HasSubstr("found int"));
  EXPECT_THAT(refused_messages("[1"), HasSubstr("messages: not valid JSON"));
}

TEST(ChatTemplate, to_continue_and_to_begin_exclude_each_other) {
  ChatOptions options;
  options.messages = hello;
  options.add_generation_prompt = options.continue_final_message = true;
  EXPECT_THAT(error_of([&] { ChatTemplate::from_text("x").render(options); }), HasSubstr("are not compatible"));
}

TEST(ChatTemplate, reaches_nothing_but_its_values) {
  for (const char* text : {"{{ ''.__class__.__mro__ }}", "{{ messages.append(1) }}", "{{ messages[0].update({}) }}",
                           "{{ messages[0].pop('role') }}", "{{ range.__globals__.x }}", "{{ namespace(__init__=1) }}",
                           "{% include '/etc/passwd' %}", "{% import 'os' as os %}", "{{ '{0.__class__.x}'.format(1) }}"})
    EXPECT_NE(refused(text), "") << text;
}

// Each would take all time or memory there is.
TEST(ChatTemplate, a_template_without_end_is_stopped) {
  ChatOptions options;
  options.messages = hello;
  options.limits = {.steps = 1'000'000, .memory = size_t{16} << 20, .output = size_t{4} << 20};
  for (const char* text :
       {"{% for i in range(10**9) %}x{% endfor %}",
        "{{ 'a' * 10**9 }}",
        "{{ [1] * 10**9 }}",
        "{{ 'a' * 10**18 }}",
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{% for a in range(99999) %}{{ 'a' * 1000 }}{% endfor %}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{% set ns = namespace(x='a') %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
        "{% set ns = namespace(x=[]) %}{% for i in range(99999) %}{% set ns.x = [ns.x] %}{% endfor %}",
        "{% set ns = namespace(x=[]) %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x + [i] %}{% endfor %}",
        "{% set ns = namespace(x=[1]) %}{% for i in range(99999) %}{% set ns.x = ns.x | map('string') %}{% endfor %}",
        "{% set ns = namespace(x='a') %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}",
        "{% set ns = namespace(x='a') %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x == [ns.x, "
        "1] }}{{ ns.x | tojson }}",
        "{{ ('a' * 99999) | replace('a', 'b' * 99999) }}",
        "{{ 'x'.center(10**12) }}",
        "{{ '%999999999d' % 1 }}",
        "{{ '{:999999999}'.format(1) }}",
        "{{ ('a' * 9999 ~ '\\n') | indent(10**9) }}",
        "{{ [1] | batch(10**9, 0) | list }}",
        "{{ [1] | slice(10**9) | list }}",
        "{{ messages | tojson(indent=10**9) ~ 'x' * 10**8 }}",
        "{{ 9**9**9 }}",
        "{% set ns = namespace(x=1) %}{% for i in range(60) %}{% set ns.x = (ns.x, ns.x) %}{% endfor %}{{ {ns.x: 1} }}",
        "{% set ns = namespace(x=[1]) %}{% for i in range(9999) %}{% set ns.x = [1] | map('default', ns.x) %}{% endfor %}",
        "{% set ns = namespace(x=1) %}{% for i in range(9999) %}{% set ns.x = cycler(ns.x).next %}{% endfor %}",
        "{% set ns = namespace(x=1) %}{% for i in range(9999) %}{% for j in [ns.x] %}{% set ns.x = loop %}{% endfor %}{% "
        "endfor %}",
        "{% for i in [1] recursive %}{{ loop([1]) }}{% endfor %}"})
    EXPECT_NE(error_of([&] { ChatTemplate::from_text(text).render(options); }), "") << text;
}

// What would hold itself for ever is let go when the text is done.
TEST(ChatTemplate, values_may_hold_themselves) {
  EXPECT_EQ(
      rendered("{% set ns = namespace() %}{% set ns.a = ns %}{% macro m() %}{{ ns.a.b }}{% endmacro %}{% set ns.b = m %}"
               "{% for i in [1, 2] %}{{ loop.changed(loop) }}{% set ns.c = loop %}{% endfor %}"),
      "TrueFalse");
  EXPECT_EQ(rendered("{% set ns = namespace(x=1) %}{% for i in range(9999) %}{% for j in [1] %}{% if loop.changed(ns.x) %}"
                     "{% set ns.x = loop %}{% endif %}{% endfor %}{% endfor %}x"),
            "x");
}

TEST(ChatTemplate, deep_nesting_is_refused) {
  const auto repeated = [](const std::string& part) {
    std::string out;
    for (int i = 0; i < 20'000; ++i) out += part;
    return out;
  };
  EXPECT_THAT(refused("{{ " + repeated("(") + "1" + repeated(")") + " }}"), HasSubstr("nested deeper"));
  EXPECT_THAT(refused("{{ " + repeated("[") + repeated("]") + " }}"), HasSubstr("nested deeper"));
  EXPECT_THAT(refused("{{ 1" + repeated("+1") + " }}"), HasSubstr("nested deeper"));
  EXPECT_THAT(refused("{{ x" + repeated(".x") + " }}"), HasSubstr("nested deeper"));
  EXPECT_THAT(refused("{{ " + repeated("not ") + "1 }}"), HasSubstr("nested deeper"));
  EXPECT_THAT(refused("{{ " + repeated("-") + "1 }}"), HasSubstr("nested deeper"));
  EXPECT_THAT(refused(repeated("{% if 1 %}")), HasSubstr("nested deeper"));
  EXPECT_EQ(refused("{{ 1" + repeated("~1") + " }}"), "");
  EXPECT_EQ(refused("{% if 0 %}" + repeated("{% elif 0 %}") + "{% endif %}"), "");
}

TEST(ChatTemplate, threads_share_one) {
  const auto chat = ChatTemplate::from_text("{% for m in messages %}{{ m.role | upper }}: {{ m.content }};{% endfor %}");
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int j = 0; j < 200; ++j) EXPECT_EQ(chat.render(hello, false), "USER: Hello;");
    });
  for (std::thread& t : threads) t.join();
}

TEST(ChatTemplate, bytes_that_are_no_text_are_replaced) {
  const std::vector<ChatMessage> broken = {{"user", "a\xFF"}};
  EXPECT_EQ(ChatTemplate::from_text("{{ messages[0].content | length }}").render(broken, false), "2");
  EXPECT_THAT(error_of([] { ChatTemplate::from_text("\xFF"); }, ErrorKind::bad_file), HasSubstr("not UTF-8"));
}

}  // namespace
}  // namespace calque::chat_template_test
