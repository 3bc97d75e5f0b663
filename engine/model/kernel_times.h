#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace quire {

// Measured seconds of kernels, by what was measured. They may be kept in a file between starts: then every start on
// such a machine chooses the same kernels, and gives the same tokens, without measuring.
class KernelTimes {
 public:
  // Nothing is kept.
  KernelTimes() = default;

  // What the file at `path` holds, if `machine` measured it; nothing if there is no such file, or another one, of which
  // the log tells. `machine` names everything outside a measurement that its result depends on. An empty path is none.
  static KernelTimes Open(std::string path, std::string machine);

  // The `count` seconds that are known under `name`, or those that `measure` gives: none if that can't be run here.
  // What a file holds another number of is measured again.
  const std::vector<double>& Get(const std::string& name, size_t count,
                                 const std::function<std::vector<double>()>& measure);

  // Writes the file, whole or not at all, if there is one and it lacks anything. UNAVAILABLE if it can't be written.
  absl::Status Save() const;

 private:
  std::string path_;
  std::string machine_;
  std::map<std::string, std::vector<double>> seconds_;
  bool has_new_ = false;
};

}  // namespace quire
