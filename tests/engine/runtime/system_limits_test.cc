#include "engine/runtime/system_limits.h"

#include <fstream>
#include <string>

#include "catch2/catch_test_macros.hpp"
#include "tests/support/temp_dir.h"

namespace quire {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMiB = int64_t{1} << 20;

// A root with the files that a test writes.
class FakeRoot {
 public:
  const fs::path& path() const { return dir_.path(); }
  void Write(const std::string& file, const std::string& text) const {
    const fs::path path = dir_.path() / file;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text << "\n";
  }

 private:
  testing::TempDir dir_;
};

constexpr const char* kV2Mount = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate";

TEST_CASE("cgroup v2: the least limit of the cgroup and its ancestors") {
  FakeRoot root;
  root.Write("proc/self/cgroup", "0::/kube/pod1/app");
  root.Write("proc/self/mountinfo", kV2Mount);
  CHECK(!ReadCgroupMemoryLimit(root.path()));
  CHECK(!ReadCgroupCpuQuota(root.path()));

  root.Write("sys/fs/cgroup/kube/pod1/app/memory.max", "max");
  root.Write("sys/fs/cgroup/kube/pod1/app/cpu.max", "max 100000");
  CHECK(!ReadCgroupMemoryLimit(root.path()));
  CHECK(!ReadCgroupCpuQuota(root.path()));

  root.Write("sys/fs/cgroup/kube/pod1/memory.max", std::to_string(512 * kMiB));
  root.Write("sys/fs/cgroup/kube/pod1/cpu.max", "150000 100000");
  CHECK(ReadCgroupMemoryLimit(root.path()) == 512 * kMiB);
  CHECK(ReadCgroupCpuQuota(root.path()) == 1.5);

  root.Write("sys/fs/cgroup/kube/memory.max", std::to_string(256 * kMiB));
  root.Write("sys/fs/cgroup/kube/pod1/app/memory.max", std::to_string(300 * kMiB));
  CHECK(ReadCgroupMemoryLimit(root.path()) == 256 * kMiB);
}

TEST_CASE("cgroup v2 in a namespace: the mount point is the cgroup") {
  FakeRoot root;
  root.Write("proc/self/cgroup", "0::/");
  root.Write("proc/self/mountinfo", kV2Mount);
  root.Write("sys/fs/cgroup/memory.max", std::to_string(64 * kMiB));
  CHECK(ReadCgroupMemoryLimit(root.path()) == 64 * kMiB);
}

TEST_CASE("cgroup v1: each controller has its own hierarchy") {
  FakeRoot root;
  root.Write("proc/self/cgroup", "9:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n0::/elsewhere");
  root.Write("proc/self/mountinfo",
             "31 24 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
             "32 24 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct");
  root.Write("sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", std::to_string(100 * kMiB));
  root.Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");  // v1's "no limit"
  root.Write("sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "250000");
  root.Write("sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us", "100000");
  root.Write("sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_quota_us", "-1");
  root.Write("sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_period_us", "100000");
  CHECK(ReadCgroupMemoryLimit(root.path()) == 100 * kMiB);
  CHECK(ReadCgroupCpuQuota(root.path()) == 2.5);
}

TEST_CASE("cgroup v1 in a container: a part of the hierarchy is mounted") {
  FakeRoot root;
  root.Write("proc/self/cgroup", "9:memory:/docker/abc");
  root.Write("proc/self/mountinfo", "31 24 0:27 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory");
  root.Write("sys/fs/cgroup/memory/memory.limit_in_bytes", std::to_string(77 * kMiB));
  CHECK(ReadCgroupMemoryLimit(root.path()) == 77 * kMiB);
}

TEST_CASE("what is missing or not understood is no limit") {
  FakeRoot root;
  CHECK(!ReadCgroupMemoryLimit(root.path()));
  CHECK(!ReadCgroupCpuQuota(root.path()));
  CHECK(ReadAvailableMemory(root.path()) == 0);
  root.Write("proc/self/cgroup", "nonsense\n0::/a");
  root.Write("proc/self/mountinfo", std::string("short line\n") + kV2Mount);
  root.Write("sys/fs/cgroup/a/memory.max", "12 34");
  root.Write("sys/fs/cgroup/a/cpu.max", "0 100000");
  CHECK(!ReadCgroupMemoryLimit(root.path()));
  CHECK(!ReadCgroupCpuQuota(root.path()));
}

TEST_CASE("available memory is the kernel's estimate") {
  FakeRoot root;
  root.Write("proc/meminfo", "MemTotal:       16000000 kB\nMemFree:         1000000 kB\nMemAvailable:    8000000 kB");
  CHECK(ReadAvailableMemory(root.path()) == int64_t{8000000} * 1024);
}

TEST_CASE("hyperthreads of a core count once, and only those that may be used") {
  FakeRoot root;
  for (int cpu = 0; cpu < 4; ++cpu) {
    root.Write("sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list",
               cpu % 2 == 0 ? "0,2" : "1,3");
  }
  CHECK(CountPhysicalCores(root.path(), {0, 1, 2, 3}) == 2);
  CHECK(CountPhysicalCores(root.path(), {0, 2}) == 1);
  CHECK(CountPhysicalCores(root.path(), {0, 1}) == 2);
  CHECK(CountPhysicalCores(root.path(), {8, 9}) == 2);  // no topology there
  CHECK(CountPhysicalCores(root.path(), {}) == 1);
}

TEST_CASE("threads: the least of affinity, whole CPUs of the quota and cores, at least one") {
  const auto choose = [](int64_t affinity, int64_t cores, std::optional<double> quota) {
    SystemLimits limits;
    limits.num_affinity_cpus = affinity;
    limits.num_physical_cores = cores;
    limits.cgroup_cpu_quota = quota;
    return ChooseNumThreads(limits);
  };
  CHECK(choose(2, 2, std::nullopt).num_threads == 2);
  CHECK(choose(2, 2, std::nullopt).reason == "2 physical cores; affinity allows 2, no cgroup quota");
  CHECK(choose(8, 4, std::nullopt).num_threads == 4);
  CHECK(choose(3, 4, std::nullopt).num_threads == 3);
  CHECK(choose(8, 8, 2.9).num_threads == 2);
  CHECK(choose(8, 8, 2.5).reason == "8 physical cores; affinity allows 8, cgroup quota of 2.5");
  CHECK(choose(8, 8, 0.5).num_threads == 1);
  CHECK(choose(1, 1, std::nullopt).reason == "1 physical core; affinity allows 1, no cgroup quota");
}

TEST_CASE("this machine's own limits can be read") {
  const SystemLimits limits = ReadSystemLimits();
  CHECK(limits.num_affinity_cpus >= 1);
  CHECK(limits.num_physical_cores >= 1);
  CHECK(limits.num_physical_cores <= limits.num_affinity_cpus);
  CHECK(limits.available_memory_bytes > 0);
}

}  // namespace
}  // namespace quire
