#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace quire {

// What the machine, the container and the shell let this process use.
struct SystemLimits {
  std::optional<int64_t> cgroup_memory_limit_bytes;  // the least of the cgroup's and its ancestors'; unset: no limit
  std::optional<double> cgroup_cpu_quota;            // CPUs, the same
  std::optional<int64_t> address_space_limit_bytes;  // RLIMIT_AS
  int64_t available_memory_bytes = 0;                // MemAvailable, of the machine
  int64_t num_affinity_cpus = 1;                     // logical CPUs that this process may run on
  int64_t num_physical_cores = 1;                    // cores that those CPUs belong to
};

// Asks the kernel; what can't be read is no limit. Files are read below `root`, which tests replace.
SystemLimits ReadSystemLimits(const std::filesystem::path& root = "/");

// The parts that are read from files. `cpus` are logical CPU numbers.
std::optional<int64_t> ReadCgroupMemoryLimit(const std::filesystem::path& root);
std::optional<double> ReadCgroupCpuQuota(const std::filesystem::path& root);
int64_t ReadAvailableMemory(const std::filesystem::path& root);
int64_t CountPhysicalCores(const std::filesystem::path& root, const std::vector<int>& cpus);

struct ThreadChoice {
  int64_t num_threads = 1;
  std::string reason;  // "2 physical cores; affinity allows 2, no cgroup quota"
};

// Pure: the least of affinity, whole CPUs of the quota, and physical cores; at least 1.
ThreadChoice ChooseNumThreads(const SystemLimits& limits);

}  // namespace quire
