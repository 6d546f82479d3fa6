// opcheck: runs operator calls whose results PyTorch has written down (tools/opcheck makes the files) and judges
// Calque's answers: values, sizes, strides, dtype, aliasing, writes into inputs, errors, and the guards of symbolic
// sizes. One implementation serves the goldens of ./test and the live sweep of ./test peers.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calque/op/operator.h"
#include "calque/op/value.h"

namespace calque::opcheck {

// One case file: NAME.jsonl and NAME.bin, both held in memory.
class CaseFile {
 public:
  explicit CaseFile(const std::string& jsonl_path);
  ~CaseFile();
  CaseFile(CaseFile&&) noexcept;
  CaseFile& operator=(CaseFile&&) noexcept;

  size_t size() const;
  const nlohmann::json& at(size_t index) const;
  std::string operator_at(size_t index) const;
  std::string_view blob(const nlohmann::json& span) const;  // [offset, bytes]

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// How far float results of one operator and dtype are from float64, on average over the cases.
struct ErrorSum {
  int64_t inputs = 0;
  double calque = 0;  // sum of squared relative errors
  double pytorch = 0;
  double worst = 0;  // largest ratio of a single case's errors, to find it
  std::string worst_id;
};

struct Failure {
  std::string id;
  std::string what;
  std::string call;  // the arguments, for reading
};

struct Report {
  std::string op;
  int64_t cases = 0;
  int64_t passed = 0;
  int64_t missing = 0;  // the operator is not in Calque's table
  int64_t skipped = 0;  // PyTorch's own fake execution refuses, nothing to compare with
  std::vector<Failure> failures;
  std::map<std::string, ErrorSum> errors;  // by dtype

  int64_t failed() const { return static_cast<int64_t>(failures.size()); }
};

struct Options {
  bool rules = true;  // also run each shape rule on data-less tensors of the same geometry
};

// NAME<tab>reason lines; '#' starts a comment: operators that are left out (tests/op/exclusions.tsv).
std::map<std::string, std::string> read_reasons(const std::string& path);
// NAME<tab>SHARE<tab>what differs: operators that do not answer as PyTorch does in every case yet, with the largest share of
// cases that may fail (tests/op/known_gaps.tsv). More failures than that are failures.
struct Gap {
  double share = 0;
  std::string what;
  bool allows(int64_t failed, int64_t cases) const {
    return static_cast<double>(failed) <= std::ceil(share * static_cast<double>(cases));
  }
};
std::map<std::string, Gap> read_gaps(const std::string& path);

// Runs one case into the operator's report.
void run_case(const CaseFile& file, const nlohmann::json& entry, const Options& options, Report& report);
// To be called when all cases of an operator have run: judges the averaged errors.
void finish(Report& report);

nlohmann::json to_json(const Report& report);
Report report_from_json(const nlohmann::json& json);

// ---- the parts, for one another and for their own tests -------------------------------------------------------------

// The arguments of a case as Calque's Values, on fresh storages.
struct Arguments {
  Values positional;
  std::vector<std::pair<std::string, Value>> keyword;
  std::vector<Ref<Storage>> storages;
};

enum class Data { real, fake };
Arguments make_arguments(const CaseFile& file, const nlohmann::json& entry, const Operator& op, Data data);
// An argument that holds no tensor of the case.
Value plain_value(const nlohmann::json& v, bool tensor_wanted);
std::string describe_call(const nlohmann::json& entry);
// The symbolic sizes of a guard case: PyTorch's names on Calque's symbols.
void run_guard_case(const nlohmann::json& entry, const Operator& op, Report& report);
// Gradients, second gradients and, in float64, differences.
void run_gradient_case(const CaseFile& file, const nlohmann::json& entry, const Operator& op, Report& report);

// The tensors and other leaves of a result, in order.
void flatten_into(const Value& value, Values& out);
// The results as the schema returns them; one entry for each return.
Values results_of(const Operator& op, const Value& value);

enum class Check { exact, pointwise, accumulate, meta };
Check check_from_name(std::string_view name);

// Elements in a known geometry: raw bytes plus sizes, strides and offset.
struct Elements {
  const char* data = nullptr;
  DType dtype = DType::float32;
  std::vector<int64_t> sizes, strides;
  int64_t offset = 0;
  int64_t numel() const;
};
Elements elements_of(const nlohmann::json& geometry, std::string_view bytes);
Elements elements_of(const Tensor& t);

// What is thrown where an answer is not PyTorch's.
struct Mismatch {
  std::string what;
};
void expect_geometry(const Tensor& t, const nlohmann::json& expected, const std::string& where);

// Compares element by element; nothing when they agree. `reference` is float64, contiguous, or empty. Float results of
// accumulating operators are not judged one by one but added to `errors` (except when grossly wrong).
std::optional<std::string> compare(const Elements& got, const Elements& expected, std::string_view reference, Check check,
                                   const std::string& id, std::map<std::string, ErrorSum>* errors, bool signed_zeros = true,
                                   int64_t ulps = 2);
// The same numbers in a narrower dtype, contiguous, in `bytes`; nothing when one of them does not fit it exactly.
std::optional<Elements> narrowed(const Elements& e, DType dtype, std::string& bytes);

// The half-ulp of the policy and the gross limit of a single case, relative to the result's magnitude.
double half_ulp(DType dtype);
double gross_limit(DType dtype);

}  // namespace calque::opcheck
