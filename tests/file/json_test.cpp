#include "calque/file/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "calque/base/error.h"
#include "support/error_support.h"

namespace calque::json_test {
namespace {

std::string error_of(const std::string& text) {
  return test::error_of([&] { const JsonDocument document(text, "test.json"); }, ErrorKind::bad_file);
}

TEST(JsonReader, reads_every_kind_of_value) {
  const std::string text =
      R"( {"a": [1, -2, 9223372036854775807, 0.5, -1e-3, true, false, null], "b": {"c": "text"}, "d": [], "e": {}, "f": "Infinity", "g": NaN} )";
  const JsonDocument document(text, "test");
  const Json& root = document.root();
  const auto a = root.at("a").items();
  ASSERT_EQ(a.size(), 8U);
  EXPECT_EQ(a[0].to_int(), 1);
  EXPECT_EQ(a[1].to_int(), -2);
  EXPECT_EQ(a[2].to_int(), INT64_MAX);
  EXPECT_EQ(a[3].to_float(), 0.5);
  EXPECT_EQ(a[4].to_float(), -1e-3);
  EXPECT_TRUE(a[5].to_bool());
  EXPECT_FALSE(a[6].to_bool());
  EXPECT_TRUE(a[7].is_null());
  EXPECT_EQ(root.at("b").only().key, "c");
  EXPECT_EQ(root.at("b").at("c").to_string(), "text");
  EXPECT_TRUE(root.at("d").items().empty());
  EXPECT_TRUE(root.at("e").members().empty());
  EXPECT_EQ(root.at("f").to_float(), INFINITY);
  EXPECT_TRUE(std::isnan(root.at("g").to_float()));
  EXPECT_EQ(root.find("absent"), nullptr);
}

TEST(JsonReader, of_equal_keys_the_last_counts) {
  const JsonDocument document(R"({"a": 1, "a": 2})", "test");
  EXPECT_EQ(document.root().at("a").to_int(), 2);
}

TEST(JsonReader, decodes_escapes) {
  const JsonDocument document(R"(["a\"\\\/\b\f\n\r\tb", "\u00e9\u6570\ud83d\ude00", "é", "\ud800x"])", "test");
  const auto items = document.root().items();
  EXPECT_EQ(items[0].to_string(), "a\"\\/\b\f\n\r\tb");
  EXPECT_EQ(items[1].to_string(), "é数😀");
  EXPECT_EQ(items[2].to_string(), "é");
  EXPECT_EQ(items[3].to_string(), "\xED\xA0\x80x");  // a surrogate alone, which Python allows
}

TEST(JsonReader, numbers_beyond64_bits_are_floats) {
  const JsonDocument document("[9223372036854775808, 1e400, -1e-400]", "test");
  EXPECT_EQ(document.root().items()[0].to_float(), 9223372036854775808.0);
  EXPECT_EQ(document.root().items()[1].to_float(), INFINITY);
  EXPECT_EQ(document.root().items()[2].to_float(), 0);
}

TEST(JsonReader, wrong_text_says_where) {
  EXPECT_EQ(error_of("[1, 2"), "test.json: not valid JSON at byte 5: the text ends in a list");
  EXPECT_EQ(error_of("[1 2]"), "test.json: not valid JSON at byte 3: expected ']' in a list");
  EXPECT_EQ(error_of("{\"a\" 1}"), "test.json: not valid JSON at byte 5: expected ':' after a key");
  EXPECT_EQ(error_of(""), "test.json: not valid JSON at byte 0: the text ends where a value is expected");
  EXPECT_EQ(error_of("1 2"), "test.json: not valid JSON at byte 2: something follows the end of the document");
  EXPECT_EQ(error_of("\"a"), "test.json: not valid JSON at byte 0: a string without an end");
  for (const char* text : {"01", "-", "1.", "1e", "tru", "nul", "[,]", "{,}", "{1:2}", "\"\\x\"", "\"\\u12\"", "\"\n\"",
                           "[1,]", "{\"a\":1,}", "\xff", "\"\xff\"", "\"\xc3\\n\""})
    EXPECT_NE(error_of(text), "") << text;
}

// Forms longer than they need be, and what lies past the last character.
TEST(JsonReader, bytes_that_are_no_characters_are_refused) {
  for (const char* text : {"\"\xE0\x81\x85\"", "\"\xC1\x85\"", "\"\xF0\x80\x81\x85\"", "\"\xF4\x90\x80\x80\"", "\"\xE9\"",
                           "\"\\n\xE0\x81\x85\""})
    EXPECT_NE(error_of(text).find("not UTF-8"), std::string::npos) << text;
  EXPECT_EQ(error_of("\"\xE0\xA0\x80\xF0\x90\x80\x80\xF4\x8F\xBF\xBF\""), "");
}

TEST(JsonReader, deep_nesting_is_refused) {
  EXPECT_EQ(error_of(std::string(100, '[') + std::string(100, ']')), "");
  EXPECT_NE(error_of(std::string(1'000'000, '[')).find("nested deeper than"), std::string::npos);
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_NE(error_of(objects).find("nested deeper than"), std::string::npos);
}

TEST(JsonReader, a_value_of_another_kind_is_named) {
  const JsonDocument document(R"({"a": "x"})", "test");
  EXPECT_EQ(test::error_of([&] { document.root().at("a").to_int(); }), "at byte 6: expected an integer, found a string");
  EXPECT_EQ(test::error_of([&] { document.root().at("b"); }), "at byte 0: an object without 'b'");
  EXPECT_EQ(test::error_of([&] { document.root().items(); }), "at byte 0: expected a list, found an object");
}

TEST(JsonWriter, bytes_that_are_no_characters_are_replaced) {
  EXPECT_EQ(json_quoted("a\xE9z \xE0\x81\x85 \xF4\x90\x80\x80"),
            R"("a\ufffdz \ufffd\ufffd\ufffd \ufffd\ufffd\ufffd\ufffd")");
  EXPECT_EQ(json_quoted("\xE9\x80\x80\xF0\x9F\x98\x80\xED\xA0\x80"), R"("\u9000\ud83d\ude00\ud800")");
}

TEST(JsonWriter, writes_as_python_does) {
  JsonWriter out;
  out.begin_object();
  out.member("a", 1);
  out.key("b");
  out.begin_array();
  out.value(0.1);
  out.value(1e-5);
  out.value(-3.0);
  out.value(true);
  out.null();
  out.value("q\"\\\n\x7f é😀");
  out.value(INFINITY);
  out.value(-INFINITY);
  out.value(NAN);
  out.end_array();
  out.key("c");
  out.begin_object();
  out.end_object();
  out.end_object();
  EXPECT_EQ(out.text(),
            "{\"a\": 1, \"b\": [0.1, 1e-05, -3.0, true, null, \"q\\\"\\\\\\n\x7f \\u00e9\\ud83d\\ude00\", \"Infinity\", "
            "\"-Infinity\", \"NaN\"], \"c\": {}}");
}

TEST(Json, what_is_read_through_the_document_names_it_once) {
  const JsonDocument document(R"({"a": 1})", "folder/x.json");
  EXPECT_EQ(document.read([](const Json& root) { return root.at("a").to_int(); }), 1);
  try {
    document.read([](const Json& root) { (void)root.at("a").to_string(); });
    FAIL();
  } catch (const UserError& e) {
    EXPECT_STREQ(e.what(), "folder/x.json: at byte 6: expected a string, found an integer");
  }
}

}  // namespace
}  // namespace calque::json_test
