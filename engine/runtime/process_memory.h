#pragma once

#include <cstdint>
#include <filesystem>

namespace quire {

// What the kernel counts for this process.
struct ProcessMemory {
  int64_t resident_bytes = 0;
  int64_t peak_resident_bytes = 0;  // since the process began
  int64_t mapped_bytes = 0;         // address space, used or not
};

// Asks the kernel; what can't be read is 0. Files are read below `root`, which tests replace.
ProcessMemory ReadProcessMemory(const std::filesystem::path& root = "/");

// Makes the C library's allocator fit for a memory promise: few arenas, whatever the number of threads, and freed large
// pieces go back to the kernel at once. Called once, before threads start.
void BoundAllocator();

// Address space that the allocator may reserve beside what is in use, once it is bounded.
int64_t AllocatorAddressSpaceBytes();

}  // namespace quire
