#include "server/chunk_outbox.h"

#include <catch2/catch_test_macros.hpp>
#include <string>

namespace quire {
namespace {

v1::StreamChunk Chunk(const std::string& text, int token_id) {
  v1::StreamChunk chunk;
  chunk.set_text(text);
  chunk.add_token_ids(token_id);
  return chunk;
}

TEST_CASE("chunks that wait join in order") {
  ChunkOutbox outbox(1000);
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
  ChunkOutbox outbox(int64_t{8} << 20);
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
  ChunkOutbox outbox(100);
  REQUIRE(outbox.Add(Chunk(std::string(90, 'x'), 1)).ok());
  const absl::Status refused = outbox.Add(Chunk(std::string(20, 'x'), 2));
  CHECK(refused.code() == absl::StatusCode::kResourceExhausted);
  CHECK(std::string(refused.message()).find("at most 100 may (max_stream_buffer_bytes)") != std::string::npos);
  CHECK(outbox.empty());
  CHECK(outbox.num_bytes() == 0);
  CHECK_FALSE(outbox.Add(Chunk("x", 3)).ok());
}

}  // namespace
}  // namespace quire
