#include "engine/runtime/process_memory.h"

#include <malloc.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace quire {
namespace {

// glibc gives each thread an arena of its own, up to eight for each processor; each keeps what was once freed in it.
constexpr int kMaxArenas = 2;
constexpr int64_t kArenaBytes = int64_t{64} << 20;  // of address space; twice as much while one is made
constexpr int kLargePieceBytes = 256 << 10;         // fixed: by itself the threshold grows to 32 MiB

}  // namespace

ProcessMemory ReadProcessMemory(const std::filesystem::path& root) {
  std::ifstream status(root / "proc/self/status");
  ProcessMemory memory;
  for (std::string line; std::getline(status, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string name = line.substr(0, colon);
    int64_t* const bytes = name == "VmRSS"    ? &memory.resident_bytes
                           : name == "VmHWM"  ? &memory.peak_resident_bytes
                           : name == "VmSize" ? &memory.mapped_bytes
                                              : nullptr;
    if (bytes != nullptr) *bytes = std::atoll(line.c_str() + colon + 1) * 1024;  // given in kB, which are KiB
  }
  return memory;
}

void BoundAllocator() {
  mallopt(M_ARENA_MAX, kMaxArenas);
  mallopt(M_MMAP_THRESHOLD, kLargePieceBytes);
  mallopt(M_TRIM_THRESHOLD, kLargePieceBytes);
}

int64_t AllocatorAddressSpaceBytes() { return kMaxArenas * kArenaBytes; }

}  // namespace quire
