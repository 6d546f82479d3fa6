// Files of torch.save (tools/golden/pt2.py makes the golden ones), and pickles that ask for what they may not have.
#include "calque/file/pickle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "calque/base/error.h"
#include "calque/file/zip.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/ternary.h"
#include "calque/op/aten/zeros.h"
#include "file/file_support.h"
#include "support/error_support.h"
#include "support/paths.h"

namespace calque::pickle_test {
namespace {

using namespace std::string_literals;

using test::TemporaryFolder;

std::string golden(const std::string& name) { return test::source_folder() + "/tests/file/golden/" + name; }

std::string zipped(const std::string& pickle, const std::vector<std::pair<std::string, std::string>>& more = {}) {
  std::string out;
  ZipWriter zip([&](std::span<const std::byte> b) { out.append(reinterpret_cast<const char*>(b.data()), b.size()); },
                "archive");
  zip.add("data.pkl", pickle);
  for (const auto& [name, content] : more) zip.add(name, content);
  zip.finish();
  return out;
}
Value read(const std::string& bytes, bool keep_objects = false) {
  const auto owner = std::make_shared<const std::string>(bytes);
  PickleOptions options;
  options.keep_objects = keep_objects;
  return read_pickle(std::as_bytes(std::span(*owner)), owner, "test.pt", options);
}
std::string error_of(const std::string& bytes, bool keep_objects = false) {
  return test::error_of([&] { read(bytes, keep_objects); }, ErrorKind::bad_file);
}
Value pickled(const std::string& pickle, bool keep_objects = false) { return read(zipped(pickle), keep_objects); }

void expect_checkpoint(const NamedTensors& tensors) {
  ASSERT_EQ(tensors.size(), 8U);
  const auto get = [&](const std::string& name) {
    for (const auto& [key, t] : tensors)
      if (key == name) return t;
    throw UserError("no " + name);
  };
  EXPECT_TRUE(equal(get("weight"), arange(12.0).view({3, 4})));
  EXPECT_TRUE(equal(get("row"), arange(4.0, 8.0)));
  EXPECT_EQ(get("row").storage().get(), get("weight").storage().get());
  EXPECT_EQ(str(get("turned").strides()), "[1, 4]");
  EXPECT_EQ(get("half").dtype(), DType::bfloat16);
  EXPECT_EQ(str(get("empty").sizes()), "[0, 2]");
  EXPECT_EQ(get("flags").dtype(), DType::bool_);
  EXPECT_TRUE(get("parameter").requires_grad());
  EXPECT_FALSE(get("weight").requires_grad());
  EXPECT_EQ(get("scalar").item_as<int64_t>(), 7);
}

TEST(Pickle, a_checkpoint_is_read_without_a_copy) {
  const NamedTensors tensors = load_pickle_tensors(golden("checkpoint.pt"));
  expect_checkpoint(tensors);
  EXPECT_TRUE(tensors[0].second.storage()->is_borrowed());
}

TEST(Pickle, the_older_form_without_a_zip_is_read) {
  expect_checkpoint(load_pickle_tensors(golden("checkpoint_legacy.pt")));
}

// tools/golden/big_endian.py
TEST(Pickle, big_endian_files_give_the_tensors_of_little_endian_ones) {
  const NamedTensors big = load_pickle_tensors(golden("big_endian.pt"));
  const NamedTensors little = load_pickle_tensors(golden("little_endian.pt"));
  ASSERT_EQ(big.size(), little.size());
  for (size_t i = 0; i < big.size(); ++i) {
    const Tensor &a = big[i].second, &b = little[i].second;
    ASSERT_EQ(a.dtype(), b.dtype()) << big[i].first;
    ASSERT_EQ(str(a.strides()), str(b.strides())) << big[i].first;
    EXPECT_EQ(a.requires_grad(), b.requires_grad()) << big[i].first;
    ASSERT_EQ(a.storage()->nbytes(), b.storage()->nbytes());
    if (a.numel() == 0) continue;
    EXPECT_EQ(std::memcmp(a.storage()->data(), b.storage()->data(), a.storage()->nbytes()), 0) << big[i].first;
  }
  const auto get = [&](const std::string& name) {
    return std::find_if(big.begin(), big.end(), [&](const auto& one) { return one.first == name; })->second;
  };
  EXPECT_EQ(get("row").storage().get(), get("whole").storage().get()) << "what shares memory shares it";
  EXPECT_TRUE(equal(get("turned"), arange(12.0).view({3, 4}).t()));
  EXPECT_EQ(get("scalar").item_as<float>(), 7.5F);
}

TEST(Pickle, an_unknown_byte_order_is_named) {
  EXPECT_EQ(error_of(zipped("\x80\x02K\x01."s, {{"byteorder", "middle"}})),
            "test.pt: unknown byte order 'middle', expected 'little' or 'big'");
  EXPECT_EQ(error_of(zipped("\x80\x02K\x01."s, {{"byteorder", ""}})),
            "test.pt: unknown byte order '', expected 'little' or 'big'");
  EXPECT_EQ(read(zipped("\x80\x02K\x01."s, {{"byteorder", "big"}})).to_int(), 1);
}

// Which bytes belong together is not known of such a storage.
TEST(Pickle, a_big_endian_storage_of_two_widths_is_refused) {
  const auto tensor = [](const std::string& type, const std::string& count) {
    return "ctorch._utils\n_rebuild_tensor_v2\n((X\7\0\0\0storagectorch\n"s + type + "\nX\1\0\0\0"s + "0X\3\0\0\0cpuK"s +
           count + "tQK\0K\1\x85K\1\x85\x89}tR"s;
  };
  const std::string pickle = "\x80\x02]("s + tensor("FloatStorage", "\2"s) + tensor("DoubleStorage", "\1"s) + "e."s;
  const std::string data("\x3f\x80\0\0\x40\0\0\0", 8);
  EXPECT_EQ(read(zipped(pickle, {{"data/0", data}, {"byteorder", "little"}})).to_items().size(), 2U);
  EXPECT_EQ(
      error_of(zipped(pickle, {{"data/0", data}, {"byteorder", "big"}})),
      "test.pt: storage 0 of a big-endian file is used with numbers of 4 and of 8 bytes; which bytes to swap is not known");
}

TEST(Pickle, plain_content_is_read) {
  const Value content = load_pickle(golden("nested.pt"));
  const DictValue& d = content.to_dict();
  EXPECT_EQ(d.find("list")->str(), "[1, -2, 1099511627776, 2.5, None, True, 'é']");
  EXPECT_EQ(d.find("tuple")->to_items().at(2).to_dict().find("k")->to_tensor().sizes().size(), 1U);
  EXPECT_EQ(d.find("dtype")->to_dtype(), DType::float16);
  EXPECT_EQ(d.find("size")->str(), "(2, 3)");
  EXPECT_EQ(d.find("device")->to_device(), Device("cpu"));
  EXPECT_EQ(d.find("complex")->to_complex(), (std::complex<double>(1, 2)));
  EXPECT_EQ(d.find("uint16")->to_tensor().dtype(), DType::uint16);
}

TEST(Pickle, what_stands_in_several_places_is_written_once) {
  Value v = list({1});
  for (int i = 0; i < 20; ++i) v = i % 3 == 0 ? list({v, v}) : i % 3 == 1 ? tuple({v, v}) : dict({{"a", v}, {"b", v}});
  const std::string written = write_pickle(v);
  EXPECT_LT(written.size(), 5000U);  // a million lists otherwise
  EXPECT_EQ(write_pickle(read(written)), written);
}

TEST(Pickle, what_is_written_is_read_again) {
  const Tensor base = arange(6.0).view({2, 3});
  const Value value = tuple({base, base.t(), list({1, -1, int64_t{1} << 40, 2.5, Value(), true, "é"}),
                             dict({{"a", base.to(DType::bfloat16)}, {3, DType::int8}}), tuple({}),
                             std::complex<double>(1, -2), full({2}, 3, DType::uint32), zeros({0, 2})});
  const Value again = read(write_pickle(value));
  const Values& items = again.to_items();
  EXPECT_TRUE(equal(items.at(0).to_tensor(), base));
  EXPECT_EQ(str(items.at(1).to_tensor().strides()), "[1, 3]");
  EXPECT_EQ(items.at(0).to_tensor().storage().get(), items.at(1).to_tensor().storage().get());
  EXPECT_EQ(items.at(2).str(), value.to_items().at(2).str());
  EXPECT_EQ(items.at(3).to_dict().items.at(1).second.to_dtype(), DType::int8);
  EXPECT_EQ(items.at(4).str(), "()");
  EXPECT_EQ(items.at(5).to_complex(), (std::complex<double>(1, -2)));
  EXPECT_EQ(items.at(6).to_tensor().dtype(), DType::uint32);
  EXPECT_EQ(str(items.at(7).to_tensor().sizes()), "[0, 2]");
  EXPECT_EQ(write_pickle(value), write_pickle(value));
  EXPECT_THROW(write_pickle(Value(Layout::strided)), UserError);
}

TEST(Pickle, code_is_refused_and_not_run) {
  EXPECT_NE(error_of(zipped("cos\nsystem\n(X\4\0\0\0truetR."s)), "");
  const std::string system =
      "\x80\x02"
      "cos\nsystem\nX\4\0\0\0true\x85R."s;
  EXPECT_NE(error_of(zipped(system))
                .find("the pickle calls os.system, which is not among the functions that rebuild tensors and plain "
                      "containers; it was not called"),
            std::string::npos)
      << error_of(zipped(system));
  EXPECT_NE(error_of(zipped(system), true).find("os.system"), std::string::npos);
  for (const char* name :
       {"builtins\neval", "builtins\nexec", "posix\nsystem", "subprocess\nPopen", "torch\nload", "torch.hub\nload",
        "numpy.core.multiarray\n_reconstruct", "builtins\ngetattr", "operator\nattrgetter"})
    for (const bool keep : {false, true})
      EXPECT_NE(error_of(zipped("\x80\x02"
                                "c" +
                                std::string(name) + "\n)R."),
                         keep),
                "")
          << name;
  EXPECT_NE(error_of(zipped("\x80\x02"
                            "cbuiltins\neval\n.")),
            "");  // only named
  // INST, OBJ, extension codes, buffers: opcodes that plain data does not need.
  for (const char opcode : {'i', 'o', '\x82', '\x83', '\x84', '\x92', '\x97', 'P'})
    EXPECT_NE(error_of(zipped(std::string("\x80\x02(") + opcode + "os\nsystem\n."))
                  .find("is not among those that make plain data"),
              std::string::npos);
}

TEST(Pickle, objects_are_kept_as_structures_where_asked) {
  const std::string object =
      "\x80\x02"
      "csome.package\nThing\n)\x81}X\1\0\0\0aK\5sb."s;
  EXPECT_NE(error_of(zipped(object)).find("some.package.Thing"), std::string::npos) << error_of(zipped(object));
  const Value v = pickled(object, true);
  EXPECT_EQ(v.to_struct().type, "some.package.Thing");
  EXPECT_EQ(v.to_struct().fields, (std::vector<std::string>{"a"}));
  EXPECT_EQ(v.to_struct().items.at(0).to_int(), 5);
}

TEST(Pickle, cut_off_anywhere_is_refused) {
  const std::string whole = test::read_file(golden("checkpoint_legacy.pt"));
  for (size_t length = 0; length + 1 < whole.size(); length += 7) EXPECT_NE(error_of(whole.substr(0, length)), "") << length;
  const std::string zip = test::read_file(golden("nested.pt"));
  for (size_t length = 0; length + 1 < zip.size(); length += 13) EXPECT_NE(error_of(zip.substr(0, length)), "") << length;
}

std::string tensor_pickle(const std::string& sizes, const std::string& strides, const std::string& offset,
                          const std::string& numel) {
  return "\x80\x02"
         "ctorch._utils\n_rebuild_tensor_v2\n((Vstorage\nctorch\nFloatStorage\nV0\nVcpu\nI" +
         numel + "\ntQI" + offset + "\n" + sizes + strides +
         "\x89"
         "ccollections\nOrderedDict\n)RtR.";
}

TEST(Pickle, tensors_stay_inside_their_storage) {
  const std::vector<std::pair<std::string, std::string>> storage = {{"data/0", std::string(16, '\0')}};
  EXPECT_EQ(error_of(zipped(tensor_pickle("(I4\nt", "(I1\nt", "0", "4"), storage)), "");
  EXPECT_NE(error_of(zipped(tensor_pickle("(I5\nt", "(I1\nt", "0", "4"), storage)), "");
  EXPECT_NE(error_of(zipped(tensor_pickle("(I4\nt", "(I1\nt", "1", "4"), storage)), "");
  EXPECT_NE(error_of(zipped(tensor_pickle("(I4\nt", "(I1\nt", "-1", "4"), storage)), "");
  EXPECT_NE(error_of(zipped(tensor_pickle("(I4\nt", "(I-1\nt", "3", "4"), storage)), "");
  EXPECT_NE(error_of(zipped(tensor_pickle("(I4\nt", "(I1\nt", "4611686018427387904", "4"), storage)), "");
  EXPECT_NE(error_of(zipped(tensor_pickle("(I4294967296\nI4294967296\nt", "(I0\nI0\nt", "0", "4"), storage)), "");
  EXPECT_NE(error_of(zipped(tensor_pickle("(I2\nt", "(I9223372036854775807\nt", "0", "4"), storage)), "");
  EXPECT_NE(error_of(zipped(tensor_pickle("(I4\nt", "(I1\nt", "0", "5"), storage)), "");
  EXPECT_NE(error_of(zipped(tensor_pickle("(I4\nt", "(I1\nt", "0", "4"))), "");  // no storage at all
}

TEST(Pickle, small_files_that_stand_for_huge_ones_are_refused) {
  // A list of two lists of two lists ... : 2 to the 60th leaves.
  std::string laughs = "\x80\x02]K\1a";
  for (int i = 0; i < 60; ++i) {
    laughs += "q\1";  // kept as object 1
    laughs += "0](h\1h\1e";
  }
  EXPECT_NE(error_of(zipped(laughs + ".")).find("parts"), std::string::npos) << error_of(zipped(laughs + "."));
  std::string deep = "\x80\x02)";
  for (int i = 0; i < 400'000; ++i) deep += '\x85';
  EXPECT_NE(error_of(zipped(deep + ".")).find("nested deeper"), std::string::npos);
  std::string itself = "\x80\x02]q\1h\1a."s;
  EXPECT_NE(error_of(zipped(itself)).find("contains itself"), std::string::npos) << error_of(zipped(itself));
  EXPECT_NE(error_of(zipped("\x80\x02" + std::string(3'000'000, ']') + ".")).find("objects"), std::string::npos);
  EXPECT_NE(error_of(zipped(std::string("\x80\x02X\xff\xff\xff\x7f", 7) + "abc")), "");
}

TEST(Pickle, a_long_text_is_kept_once_however_often_it_is_referred_to) {
  const std::string text = std::string("\x80\x02X\x00\x00\x10\x00", 7) + std::string(1 << 20, 'x') + "q\x01" + "0";
  std::string items;
  for (int i = 0; i < 300; ++i) items += "h\1";
  const Value texts = pickled(text + "](" + items + "e.");
  ASSERT_EQ(texts.to_items().size(), 300U);
  EXPECT_EQ(&texts.to_items()[0].to_string(), &texts.to_items()[299].to_string());
  const std::string written = write_pickle(texts);
  EXPECT_LT(written.size(), size_t{2} << 20);
  EXPECT_TRUE(read(written).equals(texts));

  const std::string encode = "c_codecs\nencode\n(h\1U\6latin1tR";
  const Value bytes = pickled(text + "](" + encode + encode + "e.");
  EXPECT_EQ(&bytes.to_items()[0].to_string(), &bytes.to_items()[1].to_string());

  EXPECT_NE(error_of(zipped(text + "h\1h\1\x93.")).find("a name of more than 1000"), std::string::npos);
  EXPECT_NE(error_of(zipped(text + "capp\nThing\n)\x81}h\1Nsb."), true).find("of more than 1000"), std::string::npos);
}

TEST(Pickle, one_byte_objects_are_made_once) {
  // More than a pickle may have of others (500,000 and one for 4 bytes).
  EXPECT_EQ(pickled("\x80\x02(" + std::string(2'000'000, 'N') + "l.").to_items().size(), 2'000'000U);
}

TEST(Pickle, other_files_are_named) {
  const TemporaryFolder folder;
  EXPECT_NE(error_of("no file of PyTorch's").find("expected a checkpoint of torch.save, found a text file"),
            std::string::npos);
  EXPECT_THROW(load_pickle(folder.path("absent.pt")), UserError);
  EXPECT_THROW(load_pickle_tensors(golden("nested.pt")), UserError);
}

}  // namespace
}  // namespace calque::pickle_test
