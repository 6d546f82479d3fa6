// The pytree, hand-made cases and those that PyTorch described (golden/tree.jsonl, written by tools/golden/tree.py).
#include "calque/op/tree.h"
#include "support/error_support.h"
#include "support/paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

namespace calque::tree_test {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

const TreeSpec leaf;
constexpr std::string_view leaf_text = R"({"type": null, "context": null, "children_spec": []})";

using test::error_of;

Value key_of(const Json& j) {
  if (j.is_null()) return None{};
  if (j.is_boolean()) return j.get<bool>();
  if (j.is_number_integer()) return j.get<int64_t>();
  if (j.is_number()) return j.get<double>();
  return j.get<std::string>();
}

Value build(const Json& j) {
  const auto kind = j["t"].get<std::string>();
  if (kind == "none") return None{};
  if (kind == "leaf") return 1;
  Values items;
  for (const Json& c : j["c"]) items.push_back(build(c));
  if (kind == "tuple") return tuple(items);
  if (kind == "list") return list(items);
  if (kind == "namedtuple") return namedtuple(j["name"], j["fields"], items);
  if (kind == "output") return StructValue{j["name"], "", j["fields"], items};
  DictValue d;
  d.ordered = kind == "odict";
  for (size_t i = 0; i < items.size(); ++i) d.items.emplace_back(key_of(j["k"][i]), items[i]);
  return d;
}

std::vector<std::string> path_texts(const TreeSpec& spec) {
  std::vector<std::string> out;
  for (const KeyPath& path : spec.paths()) out.push_back(keystr(path));
  return out;
}

TEST(Tree, every_golden_spec_round_trips_byte_for_byte) {
  std::ifstream in(test::source_folder() + "/tests/op/golden/tree.jsonl");
  ASSERT_TRUE(in);
  std::string line;
  int cases = 0;
  int built = 0;
  while (std::getline(in, line)) {
    const Json c = Json::parse(line);
    const auto text = c["dumps"].get<std::string>();
    const NamedTupleFields fields = c["namedtuples"].get<NamedTupleFields>();
    const TreeSpec spec = treespec_loads(text, fields);
    ++cases;
    EXPECT_EQ(treespec_dumps(spec), text);
    EXPECT_EQ(spec.str(), c["repr"].get<std::string>());
    EXPECT_EQ(path_texts(spec), c["paths"].get<std::vector<std::string>>());
    EXPECT_EQ(spec.num_leaves(), c["leaves"].get<size_t>());
    EXPECT_EQ(spec.num_nodes(), c["nodes"].get<size_t>());
    EXPECT_EQ(namedtuple_fields(spec), fields);

    Values leaves;
    for (size_t i = 0; i < spec.num_leaves(); ++i) leaves.emplace_back(i);
    const Value tree = spec.unflatten(leaves);
    const FlatTree again = tree_flatten(tree);
    EXPECT_EQ(again.spec, spec);
    EXPECT_TRUE(list(again.leaves).equals(list(leaves)));
    for (const auto& [path, value] : tree_flatten_with_path(tree).leaves)
      EXPECT_TRUE(key_get(tree, path).equals(value)) << keystr(path);

    if (!c.contains("tree")) continue;
    ++built;
    const TreeSpec native = tree_structure(build(c["tree"]));
    EXPECT_EQ(treespec_dumps(native), text);
    EXPECT_EQ(native, spec);
    EXPECT_EQ(path_texts(native), c["paths"].get<std::vector<std::string>>());
  }
  EXPECT_GE(cases, 150);
  EXPECT_GE(built, 140);
}

TEST(Tree, leaves_come_in_order_and_go_back) {
  const Value tree = tuple({1, list({"a", None{}}), dict({{"k", tuple({2.5})}})});
  const auto [leaves, spec] = tree_flatten(tree);
  EXPECT_EQ(list(leaves).str(), "[1, 'a', None, 2.5]");
  EXPECT_TRUE(spec.unflatten(leaves).equals(tree));
  EXPECT_TRUE(tree_unflatten(leaves, spec).equals(tree));
}

TEST(Tree, slices_none_and_tensors_are_leaves) {
  const Tensor t = make_tensor({2}, DType::float32);
  EXPECT_TRUE(tree_structure(SliceValue{1, 2, 3}).is_leaf());
  EXPECT_TRUE(tree_structure(None{}).is_leaf());
  EXPECT_TRUE(tree_structure(t).is_leaf());
}

TEST(Tree, a_predicate_makes_leaves_of_containers) {
  const auto is_tuple = [](const Value& v) { return v.kind() == Value::Kind::tuple; };
  const auto [leaves, spec] = tree_flatten(list({tuple({1, 2}), 3}), is_tuple);
  EXPECT_EQ(list(leaves).str(), "[(1, 2), 3]");
  EXPECT_EQ(spec, TreeSpec::list({leaf, leaf}));
}

TEST(Tree, equality_minds_kind_keys_order_and_context) {
  EXPECT_EQ(TreeSpec::list({leaf}), TreeSpec::list({leaf}));
  EXPECT_FALSE(TreeSpec::list({leaf}) == TreeSpec::tuple({leaf}));
  EXPECT_FALSE(TreeSpec::list({leaf}) == leaf);
  EXPECT_FALSE(TreeSpec::dict({"a", "b"}, {leaf, leaf}) == TreeSpec::dict({"b", "a"}, {leaf, leaf}));
  EXPECT_FALSE(TreeSpec::dict({"a"}, {leaf}) == TreeSpec::dict({"a"}, {leaf}, true));
  EXPECT_FALSE(TreeSpec::structure("T", "1", {}, {leaf}) == TreeSpec::structure("T", "2", {}, {leaf}));
  EXPECT_EQ(TreeSpec::structure("T", "1", {}, {leaf}), TreeSpec::structure("T", "1", {"x"}, {leaf}));
}

TEST(Tree, map_keeps_the_structure) {
  const auto twice = [](const Value& v) { return Value(v.to_int() * 2); };
  EXPECT_EQ(tree_map(twice, list({1, tuple({2}), dict({{"a", 3}})})).str(), "[2, (4,), {'a': 6}]");
  const auto pair = [](const Value& a, const Value& b) { return tuple({a, b}); };
  EXPECT_EQ(tree_map(pair, list({5, 6}), list({list({7, 9}), 1})).str(), "[(5, [7, 9]), (6, 1)]");
  const auto named = [](const KeyPath& path, const Value&) { return Value(keystr(path)); };
  EXPECT_EQ(tree_map_with_path(named, dict({{"a", list({0, 0})}})).str(), "{'a': [\"['a'][0]\", \"['a'][1]\"]}");
  const Tensor t = make_tensor({2}, DType::float32);
  EXPECT_EQ(tree_map_tensors([](const Tensor& x) { return Value(x.dim()); }, list({t, "x", None{}})).str(),
            "[1, 'x', None]");
}

TEST(Tree, dicts_match_whatever_their_kind_and_order) {
  const TreeSpec spec = tree_structure(dict({{"a", 1}, {"b", 2}}));
  const Value other = DictValue{{{"b", 20}, {"a", list({10})}}, true};
  EXPECT_EQ(list(spec.flatten_up_to(other)).str(), "[[10], 20]");
  const Value factory =
      StructValue{"collections.defaultdict",
                  R"({"default_factory_module": "builtins", "default_factory_name": "int", "dict_context": ["b", "a"]})",
                  {"b", "a"},
                  {20, 10}};
  EXPECT_EQ(list(spec.flatten_up_to(factory)).str(), "[10, 20]");
  EXPECT_EQ(list(tree_structure(factory).flatten_up_to(dict({{"a", 1}, {"b", 2}}))).str(), "[2, 1]");
}

TEST(Tree, a_mismatch_is_named_with_its_place) {
  const TreeSpec spec = tree_structure(list({0, dict({{"a", tuple({1, 2})}})}));
  EXPECT_EQ(error_of([&] { spec.flatten_up_to(list({0})); }),
            "tree: at the root: expected builtins.list of 2 children, found builtins.list of 1 child");
  EXPECT_EQ(error_of([&] {
              spec.flatten_up_to(list({0, dict({{"a", list({1, 2})}})}));
            }),
            "tree: at [1]['a']: expected builtins.tuple of 2 children, found builtins.list of 2 children");
  EXPECT_EQ(error_of([&] {
              spec.flatten_up_to(list({0, dict({{"b", 1}})}));
            }),
            "tree: at [1]: expected builtins.dict of 1 child, found builtins.dict of 1 child; missing keys: 'a'; "
            "extra keys: 'b'");
  EXPECT_EQ(error_of([&] {
              spec.flatten_up_to(list({0, 7}));
            }),
            "tree: at [1]: expected builtins.dict of 1 child, found int");
  EXPECT_EQ(error_of([&] { tree_structure(namedtuple("m.P", {"x"}, {1})).flatten_up_to(namedtuple("m.Q", {"x"}, {1})); }),
            "tree: at the root: expected collections.namedtuple of 1 child, found collections.namedtuple of 1 child; "
            "expected context \"m.P\", found \"m.Q\"");
  EXPECT_THAT(error_of([&] { spec.unflatten({1, 2}); }), HasSubstr("tree_unflatten: expected 3 leaves, found 2"));
}

TEST(Tree, a_deques_length_may_differ) {
  const Value a = StructValue{"collections.deque", quoted_context("3"), {}, {1, 2}};
  const Value b = StructValue{"collections.deque", quoted_context("null"), {}, {5, 6}};
  EXPECT_EQ(list(tree_structure(a).flatten_up_to(b)).str(), "[5, 6]");
}

TEST(Tree, a_prefix_is_broadcast) {
  const TreeSpec spec = tree_structure(list({1, tuple({2, 3}), dict({{"a", 4}})}));
  EXPECT_EQ(list(*broadcast_to_and_flatten(0, spec)).str(), "[0, 0, 0, 0]");
  EXPECT_EQ(list(*broadcast_to_and_flatten(list({7, 8, dict({{"a", 9}})}), spec)).str(), "[7, 8, 8, 9]");
  EXPECT_FALSE(broadcast_to_and_flatten(list({7, 8}), spec).has_value());
  EXPECT_FALSE(broadcast_to_and_flatten(tuple({7, 8, 9}), spec).has_value());
}

TEST(Tree, key_get_names_what_is_missing) {
  const Value tree = list({dict({{"a", 1}})});
  EXPECT_EQ(key_get(tree, {{TreeKey::Kind::index, 0}, {TreeKey::Kind::mapping, "a"}}).to_int(), 1);
  EXPECT_EQ(error_of([&] {
              (void)key_get(tree, {{TreeKey::Kind::index, 0}, {TreeKey::Kind::mapping, "b"}});
            }),
            "tree: [0] is builtins.dict of 1 child and has no ['b']");
  EXPECT_EQ(error_of([&] {
              (void)key_get(tree, {{TreeKey::Kind::index, 3}});
            }),
            "tree: the root is builtins.list of 1 child and has no [3]");
  EXPECT_EQ(error_of([&] { (void)key_get(1, {{TreeKey::Kind::attribute, "x"}}); }), "tree: the root is int and has no .x");
}

TEST(Tree, model_outputs_drop_their_none_fields) {
  const Value out = StructValue{"m.Output", "", {"loss", "logits", "past"}, {None{}, 1, None{}}};
  const auto [leaves, spec] = tree_flatten(out);
  EXPECT_EQ(list(leaves).str(), "[1]");
  EXPECT_EQ(spec.context(), R"("[\"logits\"]")");
  EXPECT_EQ(spec.unflatten(leaves).str(), "Output(logits=1)");
  EXPECT_EQ(key_get(out, spec.paths()[0]).to_int(), 1);
}

TEST(Tree, a_namedtuple_prints_under_its_own_name) {
  EXPECT_EQ(namedtuple("m.Point", {"x", "y"}, {1, 2}).str(), "Point(x=1, y=2)");
  EXPECT_EQ(error_of([] { namedtuple("m.P", {"x"}, {}); }), "namedtuple m.P: 1 fields for 0 items");
}

TEST(Tree, unknown_types_survive_with_any_context) {
  for (const char* context :
       {R"("null")", R"("not json")", R"({"a": [1, 2.5, null, true], "b": "\u00e9"})", "null", "7", R"([["x"], []])",
        R"("{\"k\": 1e-07}")", "18446744073709551615", "[18446744073709551615]", "-1"}) {
    const std::string text = "[1, {\"type\": \"some.Type\", \"context\": " + std::string(context) +
                             ", \"children_spec\": [" + std::string(leaf_text) + "]}]";
    const TreeSpec spec = treespec_loads(text);
    EXPECT_EQ(treespec_dumps(spec), text);
    EXPECT_EQ(treespec_dumps(tree_structure(spec.unflatten({1}))), text);
    EXPECT_FALSE(spec.str().empty());
    EXPECT_EQ(spec.paths().size(), 1U);
  }
}

std::string wrapped(const std::string& body) { return "[1, " + body + "]"; }

TEST(Tree, a_bad_text_is_refused_with_its_position) {
  EXPECT_EQ(error_of([] { treespec_loads(""); }), "tree spec: the text is not valid JSON at byte 1 of 0");
  EXPECT_EQ(error_of([] { treespec_loads("[1, {\"type\": nul}]"); }),
            "tree spec: the text is not valid JSON at byte 17 of 18");
  EXPECT_EQ(error_of([] { treespec_loads("{}"); }), "tree spec: expected [protocol, spec], found object");
  EXPECT_EQ(error_of([] { treespec_loads("[2, {}]"); }), "tree spec: unknown protocol 2; this reads protocol 1");
  EXPECT_EQ(error_of([] { treespec_loads("[1, []]"); }), "tree spec: spec must be an object, found array");
  EXPECT_EQ(error_of([] { treespec_loads("[1, {}]"); }), "tree spec: spec has no \"type\"");
  EXPECT_EQ(error_of([] { treespec_loads(wrapped(R"({"type": null, "context": "x", "children_spec": []})")); }),
            "tree spec: spec has no type but a context or children");
  EXPECT_EQ(error_of([] { treespec_loads(wrapped(R"({"type": 3, "context": null, "children_spec": []})")); }),
            "tree spec: spec.type must be a name or null, found 3");
  EXPECT_EQ(error_of([] { treespec_loads(wrapped(R"({"type": "builtins.list", "context": "null", "children_spec": 3})")); }),
            "tree spec: spec.children_spec must be an array, found number");
  EXPECT_EQ(
      error_of([] { treespec_loads(wrapped(R"({"type": "builtins.list", "context": "null", "children_spec": [1]})")); }),
      "tree spec: spec.children_spec[0] must be an object, found number");
  EXPECT_EQ(error_of([] { treespec_loads(wrapped(R"({"type": "builtins.list", "context": "3", "children_spec": []})")); }),
            "tree spec: spec.context of builtins.list must be \"null\", found \"3\"");
  EXPECT_EQ(
      error_of([] { treespec_loads(wrapped(R"({"type": "builtins.dict", "context": "[\"a\"]", "children_spec": []})")); }),
      "tree spec: spec: builtins.dict has 1 keys for 0 children");
  EXPECT_EQ(error_of([] { treespec_loads(wrapped(R"({"type": "builtins.dict", "context": "[", "children_spec": []})")); }),
            "tree spec: spec.context is not valid JSON at byte 2 of 1");
  EXPECT_EQ(error_of([] { treespec_loads(wrapped(R"({"type": "builtins.dict", "context": "{}", "children_spec": []})")); }),
            "tree spec: spec.context of builtins.dict must hold a list of keys, found {}");
  const std::string list_key =
      wrapped(R"({"type": "builtins.dict", "context": "[[]]", "children_spec": [)" + std::string(leaf_text) + "]}");
  EXPECT_THAT(error_of([&] { treespec_loads(list_key); }), HasSubstr("a dict key must be a string"));
}

TEST(Tree, deep_nesting_is_refused_not_followed) {
  std::string text;
  for (int i = 0; i < 100000; ++i) text += '[';
  EXPECT_THAT(error_of([&] { treespec_loads(text); }), HasSubstr("nested deeper than"));
  std::string open = "[1, ";
  std::string close = "]";
  for (size_t i = 0; i < TreeSpec::max_depth + 1; ++i) {
    open += R"({"type": "builtins.list", "context": "null", "children_spec": [)";
    close = "]}" + close;
  }
  EXPECT_THAT(error_of([&] { treespec_loads(open + std::string(leaf_text) + close); }), HasSubstr("nested deeper than 500"));
  Value v = 1;
  for (size_t i = 0; i < TreeSpec::max_depth; ++i) v = list({v});
  EXPECT_EQ(treespec_loads(treespec_dumps(tree_structure(v))).num_nodes(), TreeSpec::max_depth + 1);
  v = list({v});
  EXPECT_THAT(error_of([&] { tree_structure(v); }), HasSubstr("nested deeper than 500"));
}

// Everything that is done with a spec takes time in proportion to its size; these would not end otherwise.
TEST(Tree, many_leaves_are_read_printed_and_compared) {
  constexpr size_t many = 400'000;
  const Value flat = list(Values(many, Value(1)));
  const TreeSpec spec = tree_structure(flat);
  const std::string text = treespec_dumps(spec);
  const TreeSpec again = treespec_loads(text);
  EXPECT_EQ(again.num_leaves(), many);
  EXPECT_TRUE(again == spec);
  EXPECT_EQ(treespec_dumps(again), text);
  EXPECT_EQ(again.str(), spec.str());
  EXPECT_TRUE(again.unflatten(tree_leaves(flat)).equals(flat));
  EXPECT_EQ(spec.flatten_up_to(flat).size(), many);
  EXPECT_EQ(tree_flatten_with_path(flat).leaves.size(), many);
  EXPECT_EQ(broadcast_to_and_flatten(1, spec)->size(), many);
}

TEST(Tree, many_keys_are_matched_in_any_order) {
  constexpr int many = 200'000;
  std::vector<std::pair<Value, Value>> forward, backward;
  for (int i = 0; i < many; ++i) {
    forward.emplace_back("k" + std::to_string(i), i);
    backward.emplace_back("k" + std::to_string(many - 1 - i), many - 1 - i);
  }
  const TreeSpec spec = tree_structure(dict(forward));
  const Values found = spec.flatten_up_to(dict(backward));
  ASSERT_EQ(found.size(), static_cast<size_t>(many));
  EXPECT_EQ(found[3].to_int(), 3);
  EXPECT_TRUE(treespec_loads(treespec_dumps(spec)) == spec);
  backward[7].first = "other";
  EXPECT_EQ(error_of([&] { spec.flatten_up_to(dict(backward)); }),
            "tree: at the root: expected builtins.dict of 200000 children, found builtins.dict of 200000 children; missing "
            "keys: 'k199992'; extra keys: 'other'");
}

// A key and its text differ, and so do numbers of different kinds.
TEST(Tree, keys_of_different_kinds_are_not_mixed_up) {
  const TreeSpec spec = tree_structure(dict({{1, "int"}, {"1", "text"}, {1.0, "float"}, {true, "bool"}}));
  const Values found = spec.flatten_up_to(dict({{true, "b"}, {1.0, "f"}, {"1", "t"}, {1, "i"}}));
  std::string all;
  for (const Value& v : found) all += v.to_string();
  EXPECT_EQ(all, "itfb");
}

TEST(Tree, many_nodes_deep_down_are_read_in_linear_time) {
  Value v = list(Values(50'000, list({1})));
  for (int i = 0; i < 400; ++i) v = list({v});
  const TreeSpec spec = tree_structure(v);
  EXPECT_TRUE(treespec_loads(treespec_dumps(spec)) == spec);
  EXPECT_EQ(spec.num_leaves(), 50'000u);
}

TEST(Tree, a_context_may_have_many_members) {
  std::string context = "{";
  for (int i = 0; i < 100'000; ++i) context += (i ? ", \"m" : "\"m") + std::to_string(i) + "\": " + std::to_string(i);
  const std::string text = R"([1, {"type": "my.Type", "context": )" + context + R"(}, "children_spec": []}])";
  EXPECT_EQ(treespec_dumps(treespec_loads(text)), text);
}

TEST(Tree, of_members_with_one_name_the_last_counts) {
  std::string context = R"({"a": 1)", expected = R"({"a": 3)";
  for (int i = 0; i < 40; ++i) {
    context += ", \"m" + std::to_string(i) + "\": 0";
    expected += ", \"m" + std::to_string(i) + "\": " + (i == 30 ? "2" : "0");
  }
  const auto whole = [](const std::string& c) {
    return R"([1, {"type": "my.Type", "context": )" + c + R"(}, "children_spec": []}])";
  };
  EXPECT_EQ(treespec_dumps(treespec_loads(whole(context + R"(, "m30": 2, "a": 3)"))), whole(expected));
}

TEST(Tree, messages_about_large_trees_are_short) {
  const Value flat = list(Values(100'000, Value(1)));
  const TreeSpec spec = tree_structure(flat);
  EXPECT_LT(error_of([&] { spec.unflatten(Values(1, Value(1))); }).size(), 1100u);
  const std::string long_type = std::string(1'000'000, '9');
  EXPECT_LT(error_of([&] {
              treespec_loads(R"([1, {"type": ")" + long_type + R"(", "context": null, "children_spec": 3}])");
            }).size(),
            1100u);
}

TEST(Tree, keys_without_a_json_form_are_refused) {
  const TreeSpec spec = tree_structure(dict({{tuple({1}), 2}}));
  EXPECT_EQ(error_of([&] { treespec_dumps(spec); }), "treespec_dumps: a dict key of kind tuple has no JSON form");
  EXPECT_EQ(error_of([&] { treespec_dumps(tree_structure(dict({{"\xff", 2}}))); }), "treespec: a string is not valid UTF-8");
}

TEST(Tree, namedtuple_fields_come_from_the_file) {
  const TreeSpec spec = tree_structure(namedtuple("m.P", {"x", "y"}, {1, 2}));
  const NamedTupleFields fields = namedtuple_fields(spec);
  EXPECT_EQ(fields.at("m.P"), (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(path_texts(treespec_loads(treespec_dumps(spec), fields)), (std::vector<std::string>{".x", ".y"}));
  EXPECT_EQ(path_texts(treespec_loads(treespec_dumps(spec))), (std::vector<std::string>{"[0]", "[1]"}));
  EXPECT_EQ(error_of([&] {
              treespec_loads(treespec_dumps(spec), {{"m.P", {"x"}}});
            }),
            "tree spec: spec: namedtuple m.P has 1 fields, found 2 children");
  const TreeSpec both = TreeSpec::list({spec, tree_structure(namedtuple("m.P", {"a", "b"}, {1, 2}))});
  EXPECT_THAT(error_of([&] { namedtuple_fields(both); }), HasSubstr("different fields are both registered as m.P"));
}

}  // namespace
}  // namespace calque::tree_test
