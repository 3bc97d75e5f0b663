#include "engine/runtime/system_limits.h"

#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>
#include <string_view>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "engine/base/strings.h"

namespace quire {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> ReadLines(const fs::path& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> ReadWords(const fs::path& path) {
  std::ifstream file(path);
  std::vector<std::string> words;
  for (std::string word; file >> word;) words.push_back(word);
  return words;
}

std::optional<int64_t> ParseInt(const std::string& text) {
  int64_t value = 0;
  if (!absl::SimpleAtoi(text, &value)) return std::nullopt;
  return value;
}

bool Contains(const std::string& comma_list, std::string_view word) {
  const std::vector<std::string> words = absl::StrSplit(comma_list, ',');
  return std::ranges::find(words, word) != words.end();
}

// A cgroup hierarchy that governs a controller for this process.
struct CgroupFolder {
  bool is_v2 = false;
  fs::path mount_point;  // as the process sees it
  fs::path own;          // the process's cgroup, mount_point or below
};

// The path that /proc/self/cgroup gives for the controller; v2's line is "0::/path".
std::optional<std::string> CgroupPath(const fs::path& root, bool is_v2, std::string_view controller) {
  for (const std::string& line : ReadLines(root / "proc/self/cgroup")) {
    const std::vector<std::string> fields = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3) continue;
    if (is_v2 ? fields[0] == "0" && fields[1].empty() : Contains(fields[1], controller)) return fields[2];
  }
  return std::nullopt;
}

// Every hierarchy mounted for the controller: v1's own, and v2's, which has the controller or has no limit files.
// A line of mountinfo: id parent major:minor root mount_point options [tags] - fstype source super_options.
std::vector<CgroupFolder> FindCgroupFolders(const fs::path& root, std::string_view controller) {
  std::vector<CgroupFolder> folders;
  for (const std::string& line : ReadLines(root / "proc/self/mountinfo")) {
    const std::vector<std::string> fields = absl::StrSplit(line, ' ', absl::SkipEmpty());
    const auto dash = std::ranges::find(fields, "-");
    if (fields.size() < 7 || fields.end() - dash < 4) continue;
    const bool is_v2 = dash[1] == "cgroup2";
    if (!is_v2 && !(dash[1] == "cgroup" && Contains(dash[3], controller))) continue;
    const auto path = CgroupPath(root, is_v2, controller);
    if (!path) continue;
    // A container may see only its part of the hierarchy: the mount's root is then a prefix of the path, or, where
    // the path is hidden by a namespace, the mount point itself is the cgroup.
    const std::string& mount_root = fields[3];
    std::string below = *path;
    if (mount_root != "/") {
      const bool inside = below == mount_root || below.starts_with(mount_root + "/");
      below = inside ? below.substr(mount_root.size()) : "";
    }
    if (below.find("..") != std::string::npos) below.clear();
    CgroupFolder folder{.is_v2 = is_v2, .mount_point = fs::path(fields[4]), .own = {}};
    folder.own = (folder.mount_point / fs::path(below).relative_path()).lexically_normal();
    folders.push_back(std::move(folder));
  }
  return folders;
}

// The least of `read` over the process's cgroup and its ancestors, over all hierarchies.
template <typename T>
std::optional<T> LeastLimit(const fs::path& root, std::string_view controller,
                            const std::function<std::optional<T>(const fs::path&, bool is_v2)>& read) {
  std::optional<T> least;
  for (const CgroupFolder& folder : FindCgroupFolders(root, controller)) {
    fs::path at = folder.own;
    while (true) {
      const auto limit = read(root / at.relative_path(), folder.is_v2);
      if (limit && (!least || *limit < *least)) least = limit;
      if (at == folder.mount_point || !at.has_relative_path()) break;
      at = at.parent_path();
    }
  }
  return least;
}

std::optional<int64_t> ReadMemoryLimit(const fs::path& folder, bool is_v2) {
  const std::vector<std::string> words = ReadWords(folder / (is_v2 ? "memory.max" : "memory.limit_in_bytes"));
  if (words.size() != 1) return std::nullopt;
  // "max" is no number; v1 writes no limit as a number of pages that no machine has.
  constexpr int64_t kNoLimit = int64_t{1} << 60;
  const auto bytes = ParseInt(words[0]);
  return bytes && *bytes < kNoLimit ? bytes : std::nullopt;
}

std::optional<double> ReadCpuQuota(const fs::path& folder, bool is_v2) {
  std::vector<std::string> words;
  if (is_v2) {
    words = ReadWords(folder / "cpu.max");  // "quota period", or "max period"
  } else {
    words = ReadWords(folder / "cpu.cfs_quota_us");  // -1: no quota
    const std::vector<std::string> period = ReadWords(folder / "cpu.cfs_period_us");
    words.insert(words.end(), period.begin(), period.end());
  }
  if (words.size() != 2) return std::nullopt;
  const auto quota = ParseInt(words[0]);
  const auto period = ParseInt(words[1]);
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

std::vector<int> AffinityCpus() {
  // More CPUs than any kernel is built for: a smaller set would make the call fail on large machines.
  constexpr int kMaxCpus = 8192;
  cpu_set_t* set = CPU_ALLOC(kMaxCpus);
  const size_t set_bytes = CPU_ALLOC_SIZE(kMaxCpus);
  std::vector<int> cpus;
  if (sched_getaffinity(0, set_bytes, set) == 0) {
    for (int cpu = 0; cpu < kMaxCpus; ++cpu) {
      if (CPU_ISSET_S(cpu, set_bytes, set)) cpus.push_back(cpu);
    }
  }
  CPU_FREE(set);
  return cpus;
}

std::optional<int64_t> AddressSpaceLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return static_cast<int64_t>(limit.rlim_cur);
}

}  // namespace

std::optional<int64_t> ReadCgroupMemoryLimit(const fs::path& root) {
  return LeastLimit<int64_t>(root, "memory", ReadMemoryLimit);
}

std::optional<double> ReadCgroupCpuQuota(const fs::path& root) { return LeastLimit<double>(root, "cpu", ReadCpuQuota); }

int64_t ReadAvailableMemory(const fs::path& root) {
  for (const std::string& line : ReadLines(root / "proc/meminfo")) {
    const std::vector<std::string> fields = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (fields.size() < 2 || fields[0] != "MemAvailable:") continue;
    return ParseInt(fields[1]).value_or(0) * 1024;  // given in KiB
  }
  return 0;
}

int64_t CountPhysicalCores(const fs::path& root, const std::vector<int>& cpus) {
  std::set<std::string> cores;
  for (const int cpu : cpus) {
    const fs::path topology = root / "sys/devices/system/cpu" / StrCat("cpu", cpu) / "topology";
    const std::vector<std::string> siblings = ReadWords(topology / "thread_siblings_list");
    // A CPU whose topology is hidden counts as a core.
    cores.insert(siblings.size() == 1 ? siblings[0] : StrCat("cpu", cpu));
  }
  return std::max<int64_t>(1, static_cast<int64_t>(cores.size()));
}

SystemLimits ReadSystemLimits(const fs::path& root) {
  const std::vector<int> cpus = AffinityCpus();
  SystemLimits limits;
  limits.cgroup_memory_limit_bytes = ReadCgroupMemoryLimit(root);
  limits.cgroup_cpu_quota = ReadCgroupCpuQuota(root);
  limits.address_space_limit_bytes = AddressSpaceLimit();
  limits.available_memory_bytes = ReadAvailableMemory(root);
  limits.num_affinity_cpus = std::max<int64_t>(1, static_cast<int64_t>(cpus.size()));
  limits.num_physical_cores = CountPhysicalCores(root, cpus);
  return limits;
}

ThreadChoice ChooseNumThreads(const SystemLimits& limits) {
  ThreadChoice choice;
  choice.num_threads = std::min(limits.num_affinity_cpus, limits.num_physical_cores);
  if (limits.cgroup_cpu_quota) {
    choice.num_threads = std::min(choice.num_threads, static_cast<int64_t>(std::floor(*limits.cgroup_cpu_quota)));
  }
  choice.num_threads = std::max<int64_t>(1, choice.num_threads);
  const char* cores = limits.num_physical_cores == 1 ? " physical core" : " physical cores";
  const std::string quota =
      limits.cgroup_cpu_quota ? StrCat("cgroup quota of ", *limits.cgroup_cpu_quota) : "no cgroup quota";
  choice.reason = StrCat(limits.num_physical_cores, cores, "; affinity allows ", limits.num_affinity_cpus, ", ", quota);
  return choice;
}

}  // namespace quire
