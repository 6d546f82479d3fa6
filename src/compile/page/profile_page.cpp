// The page of a profile: what page.js draws, as JSON.
#include <nlohmann/json.hpp>

#include "calque/base/thread.h"
#include "calque/compile/plan_profile.h"
#include "compile/page/page.h"
#include "graph/draw/labels.h"
#include "graph/draw/page.h"

namespace calque {

std::string profile_html(const PlanProfile& profile, const std::string& name) {
  using Json = nlohmann::ordered_json;
  constexpr size_t most = 300;  // characters of a name
  const std::string title = draw::readable(name, most);
  Json steps = Json::array();
  for (size_t i = 0; !profile.runs.empty() && i < profile.runs[0].size(); ++i) {
    const ProfiledStep& step = profile.runs[0][i];
    steps.push_back({{"name", draw::readable(step.name, most)},
                     {"op", draw::readable(step.op, most)},
                     {"module", draw::readable(step.module, most)},
                     {"ms", profile.median_step_ms(i)},
                     {"bytes", step.bytes},
                     {"memory", step.memory}});
  }
  const Json data = {{"title", title},
                     {"runs", profile.runs.size()},
                     {"run_ms", profile.median_run_ms()},
                     {"threads", num_threads()},
                     {"steps", std::move(steps)}};
  return draw::html_page(title, profile::page_style, profile::page_script,
                         data.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace calque
