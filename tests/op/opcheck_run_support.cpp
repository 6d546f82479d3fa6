// Runs one case and judges it.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "calque/base/error.h"
#include "calque/op/mode.h"
#include "op/opcheck_support.h"

#include <fstream>
#include <limits>
#include <stdexcept>

namespace calque::opcheck {

using Json = nlohmann::json;

namespace {

std::string join(const std::vector<int64_t>& v) { return fmt::format("[{}]", fmt::join(v, ", ")); }

std::vector<int64_t> plain(IntList v) { return {v.begin(), v.end()}; }

}  // namespace

void expect_geometry(const Tensor& t, const Json& expected, const std::string& where) {
  const auto sizes = expected["sizes"].get<std::vector<int64_t>>();
  const auto strides = expected["strides"].get<std::vector<int64_t>>();
  const auto dtype = expected["dtype"].get<std::string>();
  if (name(t.dtype()) != dtype) throw Mismatch{fmt::format("{}: dtype {}, PyTorch {}", where, name(t.dtype()), dtype)};
  if (plain(t.sizes()) != sizes)
    throw Mismatch{fmt::format("{}: sizes {}, PyTorch {}", where, join(plain(t.sizes())), join(sizes))};
  if (plain(t.strides()) != strides)
    throw Mismatch{
        fmt::format("{}: strides {}, PyTorch {} (sizes {})", where, join(plain(t.strides())), join(strides), join(sizes))};
}

Elements elements_of(const Json& geometry, std::string_view bytes) {
  Elements e;
  e.data = bytes.data();
  e.dtype = dtype_from_name(geometry["dtype"].get<std::string>()).value();
  e.sizes = geometry["sizes"].get<std::vector<int64_t>>();
  e.strides = geometry["strides"].get<std::vector<int64_t>>();
  e.offset = geometry["offset"].get<int64_t>();
  return e;
}

Elements elements_of(const Tensor& t) {
  Elements e;
  e.data = static_cast<const char*>(t.storage()->data());
  e.dtype = t.dtype();
  e.sizes = plain(t.sizes());
  e.strides = plain(t.strides());
  e.offset = t.storage_offset();
  return e;
}

namespace {

void flatten_json(const Json& v, std::vector<const Json*>& out) {
  if (v.is_array())
    for (const Json& x : v) flatten_json(x, out);
  else
    out.push_back(&v);
}

bool is_tensor_json(const Json& v) { return v.is_object() && v.contains("sizes"); }

// Scalars that operators return: numbers and booleans.
void expect_scalar(const Value& got, const Json& expected, const std::string& where) {
  bool same = false;
  if (expected.is_null()) {
    same = got.is_none();
  } else if (expected.is_boolean()) {
    same = got.kind() == Value::Kind::boolean && got.to_bool() == expected.get<bool>();
  } else if (expected.is_number_integer()) {
    same = got.kind() == Value::Kind::integer && got.to_int() == expected.get<int64_t>();
  } else if (expected.is_number_float()) {
    same = got.kind() == Value::Kind::floating && got.to_float() == expected.get<double>();
  } else if (expected.is_object() && expected.contains("f")) {
    const double v = got.kind() == Value::Kind::floating ? got.to_float() : 0;
    const auto text = expected["f"].get<std::string>();
    same = text == "nan" ? std::isnan(v) : std::isinf(v) && (v > 0) == (text == "inf");
  } else if (expected.is_object() && expected.contains("c")) {
    same = got.kind() == Value::Kind::complex &&
           got.to_complex() == std::complex<double>(expected["c"][0].get<double>(), expected["c"][1].get<double>());
  }
  if (!same) throw Mismatch{fmt::format("{}: got {}, PyTorch {}", where, got.str(), expected.dump())};
}

// The shape of nested results: a list where PyTorch has one, of the same length.
void expect_structure(const Value& got, const Json& expected, const std::string& where) {
  if (!expected.is_array()) {
    if (got.kind() == Value::Kind::list || got.kind() == Value::Kind::tuple)
      throw Mismatch{fmt::format("{}: got a list, PyTorch a single value", where)};
    return;
  }
  if (got.kind() != Value::Kind::list && got.kind() != Value::Kind::tuple)
    throw Mismatch{fmt::format("{}: got {}, PyTorch a list of {}", where, Value::kind_name(got.kind()), expected.size())};
  const Values& items = got.to_items();
  if (items.size() != expected.size())
    throw Mismatch{fmt::format("{}: {} results, PyTorch {}", where, items.size(), expected.size())};
  for (size_t i = 0; i < items.size(); ++i) expect_structure(items[i], expected[i], fmt::format("{}[{}]", where, i));
}

class CaseRun {
 public:
  CaseRun(const CaseFile& file, const Json& entry, const Operator& op, Report& report)
      : file_(file),
        entry_(entry),
        op_(op),
        report_(report),
        check_(check_from_name(entry.at("check").get<std::string>())) {}

  void run() {
    Arguments args = make_arguments(file_, entry_, op_, Data::real);
    const std::vector<Ref<Storage>> storages = args.storages;
    const Json& expect = entry_.at("expect");
    Value out;
    try {
      out = call(op_, std::move(args.positional), std::move(args.keyword));
    } catch (const UserError& e) {
      if (!expect.contains("error")) throw Mismatch{fmt::format("error: {}", e.what())};
      if (const std::string lack = lacks(e); !lack.empty())
        throw Mismatch{fmt::format("the error does not {}: {}", lack, e.what())};
      return;
    }
    if (expect.contains("error")) throw Mismatch{"accepted, PyTorch says: " + expect["error"].get<std::string>()};
    compare_outputs(results_of(op_, out), expect.at("outputs"), storages);
    compare_inputs(storages);
  }

  // The shape rule alone, on tensors of the same geometry without data.
  void run_rule() {
    const Json& expect = entry_.at("expect");
    if (expect.contains("error") || op_.has_tag(Tag::data_dependent) || op_.has_tag(Tag::in_place) || op_.has_tag(Tag::out))
      return;
    if (op_.schema().returns.empty()) return;
    Arguments args = make_arguments(file_, entry_, op_, Data::fake);
    bool any_tensor = false;
    for (const Json& v : entry_.at("args")) any_tensor = any_tensor || has_tensor(v);
    if (!any_tensor) return;
    Value out;
    try {
      out = call(op_, std::move(args.positional), std::move(args.keyword));
    } catch (const UserError& e) {
      if (e.kind() == ErrorKind::data_dependent) return;
      throw Mismatch{fmt::format("shape rule: error: {}", e.what())};
    }
    const Values outs = results_of(op_, out);
    Values flat;
    for (const Value& v : outs) flatten_into(v, flat);
    std::vector<const Json*> expected;
    flatten_json(expect.at("outputs"), expected);
    if (flat.size() != expected.size())
      throw Mismatch{fmt::format("shape rule: {} results, PyTorch {}", flat.size(), expected.size())};
    for (size_t i = 0; i < flat.size(); ++i)
      if (is_tensor_json(*expected[i]) && flat[i].is_tensor())
        expect_geometry(flat[i].to_tensor(), *expected[i], fmt::format("shape rule: result {}", i));
  }

 private:
  // What an error's text fails to say. It has a reason, names the operator, and shows every argument of the call by name,
  // tensors with dtype and sizes; or, when the arguments do not fit the schema, the one that does not.
  std::string lacks(const UserError& e) const {
    if (op_.has_tag(Tag::side_effect)) return "";
    const std::string_view text = e.what();
    std::string_view name = op_.schema().name;
    while (name.starts_with('_')) name.remove_prefix(1);
    while (name.ends_with('_')) name.remove_suffix(1);
    if (e.reason().find(name) == std::string_view::npos) return "name the operator";
    if (e.reason().size() < name.size() + 10) return "give a reason";
    const auto& arguments = op_.schema().arguments;
    const size_t call = text.find("\n  in " + op_.name() + "(");
    if (call == std::string_view::npos) {
      for (const auto& a : arguments)
        if (e.reason().find("'" + a.name + "'") != std::string_view::npos &&
            e.reason().find("found") != std::string_view::npos)
          return "";
      return "show the call, nor the argument that does not fit the schema";
    }
    for (const auto& a : arguments)
      if (text.find(a.name + ": ", call) == std::string_view::npos) return "show the argument '" + a.name + "'";
    return "";
  }
  static bool has_tensor(const Json& v) {
    if (v.is_array()) return std::any_of(v.begin(), v.end(), has_tensor);
    return v.is_object() && v.contains("t");
  }

  void compare_outputs(const Values& outs, const Json& expected, const std::vector<Ref<Storage>>& storages) {
    if (outs.size() != expected.size()) throw Mismatch{fmt::format("{} results, PyTorch {}", outs.size(), expected.size())};
    Values flat;
    std::vector<const Json*> wanted;
    for (size_t i = 0; i < outs.size(); ++i) {
      expect_structure(outs[i], expected[i], fmt::format("result {}", i));
      flatten_into(outs[i], flat);
      flatten_json(expected[i], wanted);
    }
    std::map<size_t, const Storage*> fresh;  // PyTorch's output storages to Calque's
    for (size_t i = 0; i < flat.size(); ++i) {
      const std::string where = fmt::format("result {}", i);
      const Json& e = *wanted[i];
      if (!is_tensor_json(e)) {
        expect_scalar(flat[i], e, where);
        continue;
      }
      if (!flat[i].is_tensor()) throw Mismatch{where + ": got no tensor"};
      const Tensor& t = flat[i].to_tensor();
      expect_geometry(t, e, where);
      expect_aliasing(t, e, storages, fresh, where);
      const Json* ref = reference(i);
      Elements got = elements_of(t), wants = elements_of(e, expected_bytes(e));
      std::string narrow[2];
      if (const auto computed = computed_dtype(i)) {
        const auto a = narrowed(got, *computed, narrow[0]), b = narrowed(wants, *computed, narrow[1]);
        if (!a || !b)
          throw Mismatch{fmt::format("{}: got numbers that are no {}, in which PyTorch computes", where, name(*computed))};
        got = *a, wants = *b;
      }
      const auto wrong = compare(got, wants, ref ? file_.blob(*ref) : std::string_view(), check_,
                                 entry_["id"].get<std::string>(), &report_.errors, !entry_.contains("zero_sign"));
      if (wrong) throw Mismatch{where + ": " + *wrong};
    }
  }

  std::optional<DType> computed_dtype(size_t i) const {
    const auto at = entry_.find("computed");
    if (at == entry_.end() || i >= at->size() || (*at)[i].is_null()) return std::nullopt;
    return dtype_from_name((*at)[i].get<std::string>());
  }

  const Json* reference(size_t i) const {
    const auto at = entry_.find("ref");
    if (at == entry_.end() || i >= at->size() || (*at)[i].is_null()) return nullptr;
    return &(*at)[i];
  }

  std::string_view expected_bytes(const Json& e) const {
    if (e.contains("t")) return file_.blob(entry_.at("out_storages").at(e["t"].get<size_t>()));
    return storage_after(e["alias"].get<size_t>());
  }

  std::string_view storage_after(size_t k) const {
    if (const auto after = entry_.find("storages_after"); after != entry_.end())
      if (const auto at = after->find(std::to_string(k)); at != after->end()) return file_.blob(*at);
    return file_.blob(entry_.at("storages").at(k));
  }

  static void expect_aliasing(const Tensor& t, const Json& e, const std::vector<Ref<Storage>>& storages,
                              std::map<size_t, const Storage*>& fresh, const std::string& where) {
    const Storage* s = t.storage().get();
    if (e.contains("alias")) {
      const auto k = e["alias"].get<size_t>();
      if (storages.at(k).get() != s) throw Mismatch{fmt::format("{}: should alias input storage {} and does not", where, k)};
      if (t.storage_offset() != e["offset"].get<int64_t>())
        throw Mismatch{fmt::format("{}: storage offset {}, PyTorch {}", where, t.storage_offset(), e["offset"].dump())};
      return;
    }
    for (size_t k = 0; k < storages.size(); ++k)
      if (storages[k].get() == s) throw Mismatch{fmt::format("{}: aliases input storage {}, PyTorch's does not", where, k)};
    const auto [at, is_new] = fresh.try_emplace(e["t"].get<size_t>(), s);
    if (!is_new && at->second != s)
      throw Mismatch{where + ": does not share the storage of the result it shares in PyTorch"};
    if (is_new)
      for (const auto& [k, other] : fresh)
        if (k != at->first && other == s && t.numel() > 0) throw Mismatch{where + ": shares a storage with another result"};
  }

  // What the call did to its inputs: elements that PyTorch wrote within the policy, everything else untouched.
  void compare_inputs(const std::vector<Ref<Storage>>& storages) {
    std::vector<const Json*> inputs;
    flatten_json(entry_.at("args"), inputs);
    for (const auto& [key, v] : entry_.at("kwargs").items()) flatten_json(v, inputs);
    for (size_t k = 0; k < storages.size(); ++k) {
      const std::string_view before = file_.blob(entry_.at("storages").at(k));
      const std::string_view after = storage_after(k);
      const std::string_view got(static_cast<const char*>(storages[k]->data()), storages[k]->nbytes());
      // A resized out= tensor: its elements were compared as a result.
      if (after.size() != before.size() || got == after) continue;
      if (got.size() != after.size())
        throw Mismatch{fmt::format("input storage {}: {} bytes, PyTorch {}", k, got.size(), after.size())};
      std::set<size_t> covered;
      for (const Json* v : inputs)
        if (v->is_object() && v->contains("t") && (*v)["t"].get<size_t>() == k)
          judge_written(*v, got, before, after, covered, k);
      // The elements of a result were judged there, even where its geometry changed in the call.
      std::vector<const Json*> outs;
      flatten_json(entry_.at("expect").at("outputs"), outs);
      for (const Json* o : outs)
        if (o->is_object() && o->contains("alias") && (*o)["alias"].get<size_t>() == k)
          cover(elements_of(*o, after), covered);
      for (size_t b = 0; b < got.size(); ++b)
        if (got[b] != after[b] && !covered.contains(b))
          throw Mismatch{fmt::format("input storage {}: byte {} outside the tensor is changed", k, b)};
    }
  }

  void judge_written(const Json& geometry, std::string_view got, std::string_view before, std::string_view after,
                     std::set<size_t>& covered, size_t k) {
    const Elements g = elements_of(geometry, got), e = elements_of(geometry, after);
    // What is drawn at random may happen to be what was there.
    const bool drawn = check_ == Check::meta && holds_result(k);
    if (before == after && !drawn && !is_result(geometry, k))
      throw Mismatch{fmt::format("input storage {}: changed, PyTorch leaves it alone", k)};
    // What is also a result was judged there, with its reference.
    if (is_resized(geometry, k)) return;  // only its result may differ
    if (!is_result(geometry, k)) judge_values(g, e, k);
    cover(g, covered);
  }

  static void cover(const Elements& g, std::set<size_t>& covered) {
    const size_t item = item_size(g.dtype);
    for (int64_t n = g.numel(), i = 0; i < n; ++i) {
      int64_t rest = i, at = g.offset;
      for (size_t d = g.sizes.size(); d-- > 0;) {
        at += rest % g.sizes[d] * g.strides[d];
        rest /= g.sizes[d];
      }
      for (size_t b = 0; b < item; ++b) covered.insert(static_cast<size_t>(at) * item + b);
    }
  }

  bool holds_result(size_t k) const {
    std::vector<const Json*> outs;
    flatten_json(entry_.at("expect").at("outputs"), outs);
    for (const Json* o : outs)
      if (o->is_object() && o->contains("alias") && (*o)["alias"].get<size_t>() == k) return true;
    return false;
  }

  // An out= argument that came back with other sizes or strides.
  bool is_resized(const Json& geometry, size_t k) const {
    std::vector<const Json*> outs;
    flatten_json(entry_.at("expect").at("outputs"), outs);
    return std::any_of(outs.begin(), outs.end(), [&](const Json* o) {
      return o->is_object() && o->contains("alias") && (*o)["alias"].get<size_t>() == k &&
             (*o)["offset"] == geometry["offset"] &&
             ((*o)["sizes"] != geometry["sizes"] || (*o)["strides"] != geometry["strides"]);
    });
  }

  bool is_result(const Json& geometry, size_t k) const {
    std::vector<const Json*> outs;
    flatten_json(entry_.at("expect").at("outputs"), outs);
    for (const Json* o : outs)
      if (o->is_object() && o->contains("alias") && (*o)["alias"].get<size_t>() == k && (*o)["dtype"] == geometry["dtype"] &&
          (*o)["sizes"] == geometry["sizes"] && (*o)["strides"] == geometry["strides"] &&
          (*o)["offset"] == geometry["offset"])
        return true;
    return false;
  }

  void judge_values(const Elements& g, const Elements& e, size_t k) const {
    // Without a reference of their own, sums are held to the same closeness as single roundings of their magnitude.
    const auto wrong = compare(g, e, {}, check_ == Check::pointwise ? Check::accumulate : check_, "", nullptr);
    if (wrong) throw Mismatch{fmt::format("input storage {}: {}", k, *wrong)};
  }

  const CaseFile& file_;
  const Json& entry_;
  const Operator& op_;
  Report& report_;
  Check check_;
};

}  // namespace

void run_case(const CaseFile& file, const Json& entry, const Options& options, Report& report) {
  ++report.cases;
  const Operator* op = find_operator(entry.at("op").get<std::string>());
  if (op == nullptr) {
    ++report.missing;
    return;
  }
  try {
    if (entry.contains("wants")) {
      run_gradient_case(file, entry, *op, report);
      ++report.passed;
      return;
    }
    if (entry.contains("sym")) {
      const int64_t skipped = report.skipped;
      run_guard_case(entry, *op, report);
      if (report.skipped == skipped) ++report.passed;
      return;
    }
    CaseRun run(file, entry, *op, report);
    run.run();
    if (options.rules) run.run_rule();
    ++report.passed;
  } catch (const Mismatch& m) {
    report.failures.push_back({entry["id"].get<std::string>(), m.what, describe_call(entry)});
  } catch (const std::exception& e) {
    report.failures.push_back({entry["id"].get<std::string>(), std::string("exception: ") + e.what(), describe_call(entry)});
  }
}

void finish(Report& report) {
  for (const auto& [dtype, sum] : report.errors) {
    if (sum.inputs < 100) continue;
    const auto n = static_cast<double>(sum.inputs);
    const double ours = std::sqrt(sum.calque / n), theirs = std::sqrt(sum.pytorch / n);
    const double limit = 1.5 * theirs + half_ulp(dtype_from_name(dtype).value());
    if (ours <= limit) continue;
    report.failures.push_back({report.op + "/rms/" + dtype,
                               fmt::format("RMS error {:.3g} over {} inputs, PyTorch's {:.3g}, limit {:.3g}; worst in {}",
                                           ours, sum.inputs, theirs, limit, sum.worst_id),
                               report.op});
  }
}

Json to_json(const Report& report) {
  Json failures = Json::array(), errors = Json::object();
  for (const Failure& f : report.failures) failures.push_back({{"id", f.id}, {"what", f.what}, {"call", f.call}});
  for (const auto& [dtype, s] : report.errors)
    errors[dtype] = {
        {"inputs", s.inputs}, {"calque", s.calque}, {"pytorch", s.pytorch}, {"worst", s.worst}, {"worst_id", s.worst_id}};
  return {{"op", report.op},           {"cases", report.cases}, {"passed", report.passed}, {"missing", report.missing},
          {"skipped", report.skipped}, {"failures", failures},  {"errors", errors}};
}

Report report_from_json(const Json& json) {
  Report r;
  r.op = json.at("op").get<std::string>();
  r.cases = json.at("cases").get<int64_t>();
  r.passed = json.at("passed").get<int64_t>();
  r.missing = json.at("missing").get<int64_t>();
  r.skipped = json.at("skipped").get<int64_t>();
  for (const Json& f : json.at("failures"))
    r.failures.push_back({f["id"].get<std::string>(), f["what"].get<std::string>(), f["call"].get<std::string>()});
  // JSON writes what is not finite as null.
  const auto number = [](const Json& x) { return x.is_null() ? std::numeric_limits<double>::infinity() : x.get<double>(); };
  for (const auto& [dtype, s] : json.at("errors").items())
    r.errors[dtype] = {s["inputs"].get<int64_t>(), number(s["calque"]), number(s["pytorch"]), number(s["worst"]),
                       s["worst_id"].get<std::string>()};
  return r;
}

std::map<std::string, std::string> read_reasons(const std::string& path) {
  std::map<std::string, std::string> out;
  std::ifstream in(path);
  if (!path.empty() && !in) throw std::runtime_error("cannot read " + path);
  std::string line;
  while (std::getline(in, line)) {
    const size_t tab = line.find('\t');
    if (line.empty() || line[0] == '#' || tab == std::string::npos) continue;
    out[line.substr(0, tab)] = line.substr(tab + 1);
  }
  return out;
}

std::map<std::string, Gap> read_gaps(const std::string& path) {
  std::map<std::string, Gap> out;
  for (const auto& [op, rest] : read_reasons(path)) {
    size_t end = 0;
    const double share = std::stod(rest, &end);
    if (end >= rest.size() || rest[end] != '\t' || share <= 0 || share > 1)
      throw std::runtime_error(path + ": " + op +
                               ": expected a share above 0 and at most 1, a tab and what differs, found '" + rest + "'");
    out[op] = {share, rest.substr(end + 1)};
  }
  return out;
}

}  // namespace calque::opcheck
