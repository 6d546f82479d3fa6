// media_peer FOLDER: runs the jobs of FOLDER/jobs.json (tests/media/media_jobs_support.h) and writes FOLDER/calque.safetensors, tensors
// "<number of the job>.<name>", and FOLDER/errors.json, what was refused by number. With --time each job runs that often, and times.json has the
// fastest run of each in milliseconds.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "calque/base/error.h"
#include "calque/file/safetensors.h"
#include "media/media_jobs_support.h"

int main(int argc, char** argv) {
  using Clock = std::chrono::steady_clock;
  const std::string folder = argc > 1 ? argv[1] : ".";
  const int runs = argc > 3 ? std::atoi(argv[3]) : 1;
  const nlohmann::json jobs = nlohmann::json::parse(std::ifstream(folder + "/jobs.json"));
  nlohmann::json errors = nlohmann::json::object(), times = nlohmann::json::array();
  std::vector<std::pair<std::string, calque::Tensor>> out;
  for (size_t i = 0; i < jobs.size(); ++i) {
    double best = 0;
    try {
      for (int run = 0; run < runs; ++run) {
        const auto start = Clock::now();
        auto found = calque::test::run_media_job(jobs[i], folder);
        const double took = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
        best = run == 0 ? took : std::min(best, took);
        if (run == 0)
          for (auto& [name, tensor] : found) out.emplace_back(std::to_string(i) + "." + name, tensor);
      }
    } catch (const calque::UserError& error) {
      errors[std::to_string(i)] = error.what();
    }
    times.push_back(best);
  }
  calque::save_safetensors(folder + "/calque.safetensors", out);
  std::ofstream(folder + "/errors.json") << errors;
  std::ofstream(folder + "/times.json") << times;
}
