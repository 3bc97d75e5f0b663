#include "engine/ops/parallel.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <vector>

namespace quire {
namespace {

// Pages of the buffer that take memory.
int64_t CountResidentPages(const Buffer& buffer) {
  std::vector<unsigned char> pages(buffer.size_bytes() / sysconf(_SC_PAGESIZE));
  REQUIRE(mincore(buffer.data(), buffer.size_bytes(), pages.data()) == 0);
  return std::ranges::count_if(pages, [](unsigned char page) { return (page & 1) != 0; });
}

TEST_CASE("touching makes every page resident, on any number of threads, and keeps contents") {
  for (const int64_t num_threads : {1, 2}) {
    ThreadTeam team(num_threads, 64);
    for (const int64_t size_bytes : {int64_t{4} << 12, (int64_t{5} << 20) + 4096}) {
      const Buffer buffer(size_bytes);
      CHECK(CountResidentPages(buffer) == 0);
      buffer.as<float>()[1024] = 3.0F;
      team.Run([&](Worker& worker) { TouchPages(worker, buffer); });
      CHECK(CountResidentPages(buffer) == size_bytes / sysconf(_SC_PAGESIZE));
      CHECK(buffer.as<float>()[1024] == 3.0F);
    }
  }
}

}  // namespace
}  // namespace quire
