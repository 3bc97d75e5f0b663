#include "engine/scheduler/waiting_queue.h"

#include <catch2/catch_test_macros.hpp>
#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/fake_clock.h"

namespace quire {
namespace {

using std::chrono::seconds;

constexpr double kAgingSeconds = 10;

class Queue {
 public:
  Request* Push(uint64_t id, const std::string& tenant, int32_t priority = 0) {
    auto request = std::make_unique<Request>();
    request->id = RequestId{id};
    request->tenant = tenant;
    request->priority = priority;
    request->arrival_time = clock.Now();
    request->token_ids = {1, 2, 3};
    ledger.Arrive(tenant);
    queue.Push(request.get());
    requests_.push_back(std::move(request));
    return requests_.back().get();
  }

  uint64_t Next(const std::function<bool(const Request&)>& may_start = [](const Request&) { return true; }) {
    const Request* next = queue.Next(clock.Now(), kAgingSeconds, ledger, may_start);
    return next != nullptr ? static_cast<uint64_t>(next->id) : 0;
  }

  testing::FakeClock clock;
  TenantLedger ledger{{}};
  WaitingQueue queue;

 private:
  std::vector<std::unique_ptr<Request>> requests_;
};

TEST_CASE("One tenant's requests leave in order of arrival, and one that comes back stands where it stood") {
  Queue f;
  CHECK(f.Next() == 0);
  Request* first = f.Push(1, "a");
  f.Push(2, "a");
  CHECK(f.Next() == 1);
  f.queue.Remove(first);
  CHECK(f.Next() == 2);
  CHECK(f.queue.size() == 1);
  CHECK(f.queue.num_tokens() == 3);
  first->token_ids.push_back(4);
  f.queue.Push(first);
  CHECK(f.Next() == 1);
  CHECK(f.queue.num_tokens() == 7);
}

TEST_CASE("Of a tenant's requests a lower priority value goes first") {
  Queue f;
  f.Push(1, "a", 5);
  f.Push(2, "a", -1);
  f.Push(3, "a", 0);
  CHECK(f.Next() == 2);
}

TEST_CASE("Tenants served alike take turns by their oldest request") {
  Queue f;
  Request* oldest = f.Push(1, "b");
  f.Push(2, "a", -5);
  CHECK(f.Next() == 1);
  f.queue.Remove(oldest);
  f.Push(3, "b", -9);
  CHECK(f.Next() == 2);
}

TEST_CASE("Over random operations the next is always the least served tenant's") {
  Queue f;
  std::mt19937 random(5);
  std::map<uint64_t, Request*> waiting;
  for (uint64_t id = 1; id < 4000; ++id) {
    const std::string tenant(1, static_cast<char>('a' + random() % 12));
    if (waiting.empty() || random() % 2 == 0) waiting[id] = f.Push(id, tenant);
    if (f.ledger.accounts().contains(tenant)) f.ledger.Serve(tenant, static_cast<double>(random() % 50));
    const uint64_t next = f.Next();
    REQUIRE(next != 0);
    const auto served = [&](const auto& entry) {
      return std::pair(f.ledger.virtual_tokens(entry.second->tenant), entry.first);
    };
    const auto expected = std::ranges::min_element(waiting, {}, served);
    REQUIRE(next == expected->first);
    if (random() % 3 == 0) {
      const auto removed = std::next(waiting.begin(), static_cast<int64_t>(random() % waiting.size()));
      f.queue.Remove(removed->second);
      f.ledger.Leave(removed->second->tenant);
      waiting.erase(removed);
    }
  }
}

TEST_CASE("Among equal priorities the tenant that was served least goes first") {
  Queue f;
  f.Push(1, "a");
  f.Push(2, "b");
  f.ledger.Serve("a", 10);
  CHECK(f.Next() == 2);
  f.ledger.Serve("b", 20);
  CHECK(f.Next() == 1);
}

TEST_CASE("Waiting makes up for priority within a tenant") {
  Queue f;
  f.Push(1, "a", 2);
  f.clock.Advance(seconds(19));
  Request* urgent = f.Push(2, "a", 0);
  CHECK(f.Next() == 2);
  // Two levels of age: as urgent now, and it came first.
  f.clock.Advance(seconds(1));
  CHECK(f.Next() == 1);
  f.queue.Remove(urgent);
  f.Push(3, "a", -1);
  CHECK(f.Next() == 3);
}

TEST_CASE("Neither urgency nor age takes another tenant's share") {
  Queue f;
  f.Push(1, "a", -100);
  f.clock.Advance(seconds(1000));
  f.Push(2, "b", 0);
  f.ledger.Serve("a", 1);
  CHECK(f.Next() == 2);
}

TEST_CASE("Who may not start holds up nobody else") {
  Queue f;
  f.Push(1, "a");
  f.Push(2, "b");
  CHECK(f.Next([](const Request& request) { return request.tenant != "a"; }) == 2);
  CHECK(f.Next([](const Request&) { return false; }) == 0);
}

}  // namespace
}  // namespace quire
