#include "engine/ops/parallel.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <thread>
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

TEST_CASE("every item is done once, on no more threads than asked for") {
  for (const int64_t num_threads : {1, 2, 3}) {
    ThreadTeam team(num_threads, 64);
    for (const int64_t max_threads : {1, 2, 5}) {
      for (const int64_t count : {0, 1, 2, 100}) {
        INFO(count << " items on " << max_threads << " of " << num_threads << " threads");
        std::vector<std::atomic<int>> times_done(count);
        std::atomic<int64_t> highest_thread = 0;
        team.ForEach(count, max_threads, [&](int64_t item, int64_t thread) {
          ++times_done[item];
          if (thread > highest_thread) highest_thread = thread;
        });
        CHECK(std::ranges::all_of(times_done, [](const auto& times) { return times == 1; }));
        CHECK(highest_thread < std::min(num_threads, max_threads));
      }
    }
  }
}

TEST_CASE("a thread that waits does not hold back the other's items") {
  ThreadTeam team(2, 64);
  std::atomic<int64_t> num_others_done = 0;
  team.ForEach(10, 2, [&](int64_t item, int64_t) {
    if (item == 0) {
      while (num_others_done < 9) std::this_thread::yield();
    } else {
      ++num_others_done;
    }
  });
  CHECK(num_others_done == 9);
}

TEST_CASE("a parallel loop visits each item once and ends together, one loop after another") {
  constexpr int64_t kMostItems = 1000;
  for (const int64_t num_threads : {1, 2, 3}) {
    ThreadTeam team(num_threads, 64);
    std::vector<std::atomic<int>> visits(kMostItems);
    std::atomic<bool> all_as_expected{true};
    team.Run([&](Worker& worker) {
      std::vector<int> expected(kMostItems);
      // Odd and even numbers of barriers, and fewer chunks than threads.
      for (int round = 0; round < 60; ++round) {
        const int64_t num_items = std::vector<int64_t>{kMostItems, 1, 0, 50, 2}[round % 5];
        worker.ForChunks(num_items, 7, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) ++visits[i];
        });
        for (int64_t i = 0; i < num_items; ++i) ++expected[i];
        if (!std::equal(visits.begin(), visits.end(), expected.begin())) all_as_expected = false;
        worker.Barrier();
        if (round % 3 == 0) worker.Barrier();
      }
    });
    CHECK(all_as_expected);
  }
}

TEST_CASE("a thread begins with the same items in every loop, and others do what it can't") {
  ThreadTeam team(2, 64);
  std::vector<int64_t> first_items[2];
  for (int round = 0; round < 20; ++round) {
    std::atomic<bool> first_thread_began = false;
    std::atomic<int64_t> num_done = 0;
    team.Run([&](Worker& worker) {
      bool is_first = true;
      worker.ForChunks(10, 1, [&](int64_t item, int64_t) {
        if (is_first) {
          is_first = false;
          first_items[worker.index()].push_back(item);
          if (worker.index() == 0) {
            first_thread_began = true;
            while (num_done < 9) std::this_thread::yield();  // until the other has done all but this
          } else {
            while (!first_thread_began) std::this_thread::yield();
          }
        }
        ++num_done;
      });
    });
  }
  CHECK(first_items[0] == std::vector<int64_t>(20, 0));
  CHECK(first_items[1] == std::vector<int64_t>(20, 5));
}

}  // namespace
}  // namespace quire
