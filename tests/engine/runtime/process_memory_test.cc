#include "engine/runtime/process_memory.h"

#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <fstream>

#include "tests/support/temp_dir.h"

namespace quire {
namespace {

TEST_CASE("what the kernel counts is read from the process's status") {
  const testing::TempDir dir;
  std::filesystem::create_directories(dir.path() / "proc/self");
  std::ofstream(dir.path() / "proc/self/status") << "Name:\tquire\nVmPeak:\t   900 kB\nVmSize:\t   800 kB\n"
                                                    "VmHWM:\t   300 kB\nVmRSS:\t   200 kB\nThreads:\t7\n";
  const ProcessMemory memory = ReadProcessMemory(dir.path());
  CHECK(memory.mapped_bytes == 800 * 1024);
  CHECK(memory.peak_resident_bytes == 300 * 1024);
  CHECK(memory.resident_bytes == 200 * 1024);
}

TEST_CASE("what can't be read is 0") {
  const testing::TempDir dir;
  const ProcessMemory memory = ReadProcessMemory(dir.path());
  CHECK(memory.resident_bytes == 0);
  CHECK(memory.peak_resident_bytes == 0);
  CHECK(memory.mapped_bytes == 0);
}

TEST_CASE("this process holds memory, and its peak is no less") {
  const ProcessMemory memory = ReadProcessMemory();
  CHECK(memory.resident_bytes > 0);
  CHECK(memory.peak_resident_bytes >= memory.resident_bytes);
  CHECK(memory.mapped_bytes > memory.resident_bytes);
}

}  // namespace
}  // namespace quire
