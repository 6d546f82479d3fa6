#include "calque/op/value.h"
#include "support/error_support.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace calque::value_test {
namespace {

using Kind = Value::Kind;

using test::error_of;

TEST(Value, knows_the_kind_of_what_it_was_made_from) {
  EXPECT_EQ(Value().kind(), Kind::none);
  EXPECT_EQ(Value(Tensor()).kind(), Kind::none);
  EXPECT_EQ(Value(true).kind(), Kind::boolean);
  EXPECT_EQ(Value(3).kind(), Kind::integer);
  EXPECT_EQ(Value(size_t{3}).kind(), Kind::integer);
  EXPECT_EQ(Value(3.0).kind(), Kind::floating);
  EXPECT_EQ(Value(std::complex<double>(1, 2)).kind(), Kind::complex);
  EXPECT_EQ(Value("text").kind(), Kind::string);
  EXPECT_EQ(Value(SliceValue{1, None{}, 2}).kind(), Kind::slice);
  EXPECT_EQ(Value(make_tensor({2}, DType::float32)).kind(), Kind::tensor);
  EXPECT_EQ(Value(DType::int8).kind(), Kind::dtype);
  EXPECT_EQ(Value(Device(DeviceType::cpu)).kind(), Kind::device);
  EXPECT_EQ(Value(Layout::strided).kind(), Kind::layout);
  EXPECT_EQ(Value(MemoryFormat::preserve).kind(), Kind::memory_format);
  EXPECT_EQ(Value(static_cast<Generator*>(nullptr)).kind(), Kind::generator);
  EXPECT_EQ(list({1}).kind(), Kind::list);
  EXPECT_EQ(tuple({1}).kind(), Kind::tuple);
  EXPECT_EQ(dict({}).kind(), Kind::dict);
  EXPECT_EQ(Value(StructValue{"a.B", "", {}, {}}).kind(), Kind::structure);
  EXPECT_EQ(Value(Scalar(true)).kind(), Kind::boolean);
  EXPECT_EQ(Value(Scalar(1)).kind(), Kind::integer);
  EXPECT_EQ(Value(Scalar(1.0)).kind(), Kind::floating);
  EXPECT_EQ(Value(Scalar(std::complex<double>(0, 1))).kind(), Kind::complex);
  for (int k = 0; k <= static_cast<int>(Kind::structure); ++k) EXPECT_FALSE(Value::kind_name(static_cast<Kind>(k)).empty());
}

TEST(Value, numbers_convert_as_schema_arguments_do) {
  EXPECT_EQ(Value(true).to_int(), 1);
  EXPECT_EQ(Value(7).to_float(), 7.0);
  EXPECT_EQ(Value(true).to_float(), 1.0);
  EXPECT_EQ(Value(7).to_complex(), std::complex<double>(7, 0));
  EXPECT_EQ(Value(2.5).to_complex(), std::complex<double>(2.5, 0));
  EXPECT_EQ(Value(INT64_MIN).to_int(), INT64_MIN);
  EXPECT_EQ(Value(INT64_MAX).to_int(), INT64_MAX);
  EXPECT_TRUE(Value(2.5).to_scalar().is_floating());
  EXPECT_TRUE(Value(true).to_scalar().is_boolean());
  EXPECT_EQ(Value("cuda:1").to_device(), Device(DeviceType::cuda, 1));
  EXPECT_EQ(Value().to_generator(), nullptr);
  EXPECT_FALSE(Value().to_tensor_or_none().defined());
}

TEST(Value, a_wrong_kind_is_named) {
  EXPECT_EQ(error_of([] { (void)Value(2.5).to_int(); }), "expected an int, found float 2.5");
  EXPECT_EQ(error_of([] { (void)Value(1).to_bool(); }), "expected a bool, found int 1");
  EXPECT_EQ(error_of([] { (void)Value("x").to_float(); }), "expected a float, found str 'x'");
  EXPECT_EQ(error_of([] { (void)Value(std::complex<double>(1, 2)).to_float(); }), "expected a float, found complex (1+2j)");
  EXPECT_EQ(error_of([] { (void)Value().to_tensor(); }), "expected a Tensor, found None");
  EXPECT_EQ(error_of([] { (void)Value(1).to_tensor_or_none(); }), "expected a Tensor or None, found int 1");
  EXPECT_EQ(error_of([] { (void)list({}).to_complex(); }), "expected a complex number, found list");
  EXPECT_EQ(error_of([] { (void)dict({}).to_scalar(); }), "expected a number, found dict");
  EXPECT_EQ(error_of([] { (void)Value(DType::int8).to_string(); }), "expected a str, found dtype");
  EXPECT_EQ(error_of([] { (void)tuple({}).to_slice(); }), "expected a slice, found tuple");
  EXPECT_EQ(error_of([] { (void)Value(1).to_dtype(); }), "expected a dtype, found int 1");
  EXPECT_EQ(error_of([] { (void)Value(1).to_device(); }), "expected a device, found int 1");
  EXPECT_EQ(error_of([] { (void)Value(1).to_layout(); }), "expected a layout, found int 1");
  EXPECT_EQ(error_of([] { (void)Value(1).to_memory_format(); }), "expected a memory_format, found int 1");
  EXPECT_EQ(error_of([] { (void)Value(1).to_generator(); }), "expected a Generator or None, found int 1");
  EXPECT_EQ(error_of([] { (void)Value(1).to_items(); }), "expected a list or tuple, found int 1");
  EXPECT_EQ(error_of([] { (void)Value(1).to_dict(); }), "expected a dict, found int 1");
  EXPECT_EQ(error_of([] { (void)Value(1).to_struct(); }), "expected a struct, found int 1");
  const std::string shown = error_of([] { (void)Value(std::string(500, 'x')).to_int(); });
  EXPECT_LT(shown.size(), 120U);
}

TEST(Value, prints_as_python) {
  EXPECT_EQ(Value().str(), "None");
  EXPECT_EQ(Value(true).str(), "True");
  EXPECT_EQ(Value(-3).str(), "-3");
  EXPECT_EQ(Value(1.0).str(), "1.0");
  EXPECT_EQ(Value(1e16).str(), "1e+16");
  EXPECT_EQ(Value(1e-5).str(), "1e-05");
  EXPECT_EQ(Value(std::complex<double>(1, -2)).str(), "(1-2j)");
  EXPECT_EQ(Value(SliceValue{None{}, 2, None{}}).str(), "slice(None, 2, None)");
  EXPECT_EQ(Value(DType::bool_).str(), "torch.bool");
  EXPECT_EQ(Value(Device(DeviceType::cuda, 0)).str(), "device(type='cuda', index=0)");
  EXPECT_EQ(Value(Device(DeviceType::cpu)).str(), "device(type='cpu')");
  EXPECT_EQ(Value(Layout::strided).str(), "torch.strided");
  EXPECT_EQ(Value(MemoryFormat::channels_last).str(), "torch.channels_last");
  EXPECT_EQ(list({1, "a", None{}}).str(), "[1, 'a', None]");
  EXPECT_EQ(tuple({}).str(), "()");
  EXPECT_EQ(tuple({1}).str(), "(1,)");
  EXPECT_EQ(tuple({1, tuple({2})}).str(), "(1, (2,))");
  EXPECT_EQ(dict({{"a", 1}, {2, list({})}}).str(), "{'a': 1, 2: []}");
  EXPECT_EQ(Value(DictValue{{{"a", 1}}, true}).str(), "OrderedDict([('a', 1)])");
  EXPECT_EQ(Value(DictValue{{}, true}).str(), "OrderedDict()");
  EXPECT_EQ(Value(StructValue{"pkg.mod.Out", "", {"x", "y"}, {1, None{}}}).str(), "Out(x=1, y=None)");
  EXPECT_EQ(list({tensor_of<float>({1.0F}, {1})}).str(), "[tensor([1.])]");
}

TEST(Value, strings_print_with_pythons_quotes_and_escapes) {
  EXPECT_EQ(Value("it's").str(), "\"it's\"");
  EXPECT_EQ(Value("say \"hi\"").str(), "'say \"hi\"'");
  EXPECT_EQ(Value("both ' and \"").str(), "'both \\' and \"'");
  EXPECT_EQ(Value("a\\b\n\t\r").str(), "'a\\\\b\\n\\t\\r'");
  EXPECT_EQ(Value(std::string("\0\x1f\x7f", 3)).str(), "'\\x00\\x1f\\x7f'");
  EXPECT_EQ(Value("caf\xc3\xa9 \xf0\x9f\x98\x80").str(), "'caf\xc3\xa9 \xf0\x9f\x98\x80'");
  EXPECT_EQ(Value("\xc2\xa0\xe2\x80\xa8").str(), "'\\xa0\\u2028'");
  EXPECT_EQ(Value("\xff\xc3").str(), "'\\xff\\xc3'");
}

TEST(Value, equality_compares_kind_structure_and_value) {
  EXPECT_TRUE(Value(1).equals(1));
  EXPECT_FALSE(Value(1).equals(1.0));
  EXPECT_FALSE(Value(1).equals(true));
  EXPECT_TRUE(Value(NAN).equals(std::numeric_limits<double>::quiet_NaN()));
  EXPECT_FALSE(Value(0.0).equals(-0.0));
  EXPECT_TRUE(Value("ab").equals(std::string("ab")));
  EXPECT_FALSE(list({1}).equals(tuple({1})));
  EXPECT_FALSE(list({1}).equals(list({1, 2})));
  EXPECT_TRUE(list({1, tuple({"x"})}).equals(list({1, tuple({"x"})})));
  EXPECT_TRUE(Value(SliceValue{1, 2, 3}).equals(SliceValue{1, 2, 3}));
  EXPECT_FALSE(Value(SliceValue{1, 2, 3}).equals(SliceValue{1, 2, 4}));
  EXPECT_FALSE(Value(DType::int8).equals(DType::int16));
  EXPECT_TRUE(Value(StructValue{"T", "c", {"x"}, {1}}).equals(StructValue{"T", "c", {"x"}, {1}}));
  EXPECT_FALSE(Value(StructValue{"T", "c", {"x"}, {1}}).equals(StructValue{"U", "c", {"x"}, {1}}));
}

TEST(Value, tensors_are_equal_by_identity) {
  const Tensor a = tensor_of<float>({1.0F}, {1});
  const Tensor b = tensor_of<float>({1.0F}, {1});
  EXPECT_TRUE(Value(a).equals(Value(a)));
  EXPECT_FALSE(Value(a).equals(Value(b)));
}

TEST(Value, order_counts_in_ordered_dicts_only) {
  const std::vector<std::pair<Value, Value>> ab = {{"a", 1}, {"b", 2}};
  const std::vector<std::pair<Value, Value>> ba = {{"b", 2}, {"a", 1}};
  EXPECT_TRUE(dict(ab).equals(dict(ba)));
  EXPECT_FALSE(Value(DictValue{ab, true}).equals(DictValue{ba, true}));
  EXPECT_FALSE(dict(ab).equals(Value(DictValue{ab, true})));
  EXPECT_FALSE(dict(ab).equals(dict({{"a", 1}, {"b", 3}})));
  EXPECT_FALSE(dict(ab).equals(dict({{"a", 1}, {"c", 2}})));
}

TEST(Value, a_dict_finds_its_string_keys) {
  const Value d = dict({{1, 10}, {"a", 20}});
  EXPECT_EQ(d.to_dict().find("a")->to_int(), 20);
  EXPECT_EQ(d.to_dict().find("1"), nullptr);
}

TEST(Value, copies_share_their_container) {
  const Value a = list(Values(1000, Value(1)));
  const Value b = a;
  EXPECT_EQ(a.to_items().data(), b.to_items().data());
}

}  // namespace
}  // namespace calque::value_test
