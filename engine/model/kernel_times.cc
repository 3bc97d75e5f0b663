#include "engine/model/kernel_times.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <utility>

#include "engine/base/log.h"
#include "engine/base/status.h"

namespace quire {
namespace {

using Json = nlohmann::json;
using SecondsByName = std::map<std::string, std::vector<double>>;

bool IsTime(const Json& value) { return value.is_number() && std::isfinite(value.get<double>()) && value > 0; }

bool IsTimes(const Json& value) { return value.is_array() && std::ranges::all_of(value, IsTime); }

// Nothing unless the text is what Save writes.
std::optional<SecondsByName> Parse(const Json& json) {
  const auto found = json.is_object() ? json.find("seconds") : json.end();
  if (found == json.end() || !found->is_object() || !std::ranges::all_of(*found, IsTimes)) return std::nullopt;
  return found->get<SecondsByName>();
}

absl::Status CannotWrite(const std::string& path) {
  return absl::UnavailableError(StrCat("kernel_times_file: \"", path, "\" can't be written: ", std::strerror(errno)));
}

}  // namespace

KernelTimes KernelTimes::Open(std::string path, std::string machine) {
  KernelTimes times;
  times.path_ = std::move(path);
  times.machine_ = std::move(machine);
  std::ifstream file(times.path_);
  if (times.path_.empty() || !file) return times;
  std::ostringstream text;
  text << file.rdbuf();  // nothing, if it can't be read: a folder
  const Json json = Json::parse(text.str(), nullptr, /*allow_exceptions=*/false);
  std::optional<SecondsByName> seconds = Parse(json);
  if (!seconds) {
    log::Warning("kernels: \"{}\" holds no kernel times: measuring again", times.path_);
  } else if (json.value("machine", Json()) != times.machine_) {
    log::Info("kernels: the times in \"{}\" are of another machine or version: measuring again", times.path_);
  } else {
    times.seconds_ = *std::move(seconds);
  }
  return times;
}

const std::vector<double>& KernelTimes::Get(const std::string& name, size_t count,
                                            const std::function<std::vector<double>()>& measure) {
  const auto known = seconds_.find(name);
  if (known != seconds_.end() && (known->second.empty() || known->second.size() == count)) return known->second;
  has_new_ = true;
  return seconds_[name] = measure();
}

absl::Status KernelTimes::Save() const {
  if (path_.empty() || !has_new_) return absl::OkStatus();
  const std::string new_path = StrCat(path_, ".", getpid());  // several servers may start at once
  std::ofstream file(new_path);
  file << Json{{"machine", machine_}, {"seconds", seconds_}}.dump(2) << "\n";
  file.close();
  if (!file || std::rename(new_path.c_str(), path_.c_str()) != 0) {
    absl::Status status = CannotWrite(path_);
    std::remove(new_path.c_str());
    return status;
  }
  return absl::OkStatus();
}

}  // namespace quire
