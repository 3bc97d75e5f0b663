#include "server/messages/chunk_outbox.h"

#include <catch2/catch_test_macros.hpp>
#include <string>

namespace quire {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

v1::StreamChunk Chunk(const std::string& text, int token_id) {
  v1::StreamChunk chunk;
  chunk.set_text(text);
  chunk.add_token_ids(token_id);
  return chunk;
}

TEST_CASE("chunks that wait join in order") {
  StreamMemory memory(1000, kMiB);
  ChunkOutbox outbox(&memory);
  REQUIRE(outbox.Add(Chunk("ab", 1)).ok());
  REQUIRE(outbox.Add(Chunk("", 2)).ok());
  REQUIRE(outbox.Add(Chunk("c", 3)).ok());
  const v1::StreamChunk joined = outbox.Take();
  CHECK(joined.text() == "abc");
  REQUIRE(joined.token_ids_size() == 3);
  CHECK(joined.token_ids(2) == 3);
  CHECK(outbox.empty());
  CHECK(outbox.num_bytes() == 0);
}

TEST_CASE("messages stay far below what a client receives by default") {
  StreamMemory memory(8 * kMiB, 8 * kMiB);
  ChunkOutbox outbox(&memory);
  const std::string text(1000, 'x');
  for (int i = 0; i < 5000; ++i) REQUIRE(outbox.Add(Chunk(text, i)).ok());
  int64_t num_tokens = 0;
  while (!outbox.empty()) {
    const v1::StreamChunk message = outbox.Take();
    CHECK(message.ByteSizeLong() <= 256 << 10);
    CHECK(message.token_ids(0) == num_tokens);
    num_tokens += message.token_ids_size();
  }
  CHECK(num_tokens == 5000);
}

TEST_CASE("past the bound everything is dropped, for good") {
  StreamMemory memory(100, kMiB);
  ChunkOutbox outbox(&memory);
  REQUIRE(outbox.Add(Chunk(std::string(90, 'x'), 1)).ok());
  const absl::Status refused = outbox.Add(Chunk(std::string(20, 'x'), 2));
  CHECK(refused.code() == absl::StatusCode::kResourceExhausted);
  CHECK(std::string(refused.message()).find("at most 100 may (max_stream_buffer_bytes)") != std::string::npos);
  CHECK(outbox.empty());
  CHECK(outbox.num_bytes() == 0);
  CHECK_FALSE(outbox.Add(Chunk("x", 3)).ok());
}

TEST_CASE("when all answers fill their memory, those that lie behind most are dropped, and late ones are not") {
  StreamMemory memory(2 * kMiB, kMiB);
  const std::string text(100 << 10, 'x');
  ChunkOutbox late(&memory);
  REQUIRE(late.Add(Chunk("x", 1)).ok());
  {
    ChunkOutbox idle(&memory);
    ChunkOutbox slow(&memory);
    for (int i = 0; i < 6; ++i) {
      REQUIRE(idle.Add(Chunk(text, i)).ok());
      if (i < 5) REQUIRE(slow.Add(Chunk(text, i)).ok());
    }
    REQUIRE(memory.full());
    const absl::Status refused = slow.Add(Chunk("x", 6));
    CHECK(refused.code() == absl::StatusCode::kResourceExhausted);
    CHECK(std::string(refused.message()).find("all answers that wait fill the server's 1048576 bytes") !=
          std::string::npos);
    CHECK_FALSE(memory.full());
    CHECK(late.Add(Chunk("x", 2)).ok());
    REQUIRE(idle.Add(Chunk(std::string(450 << 10, 'x'), 7)).ok());
    REQUIRE(memory.full());
    CHECK(late.Add(Chunk("x", 3)).ok());
  }
  // Whoever is gone takes nothing any more.
  CHECK_FALSE(memory.full());
  for (int i = 0; i < 9; ++i) REQUIRE(late.Add(Chunk(text, i)).ok());
}

}  // namespace
}  // namespace quire
