#pragma once

#include <grpcpp/support/sync_stream.h>

#include <catch2/catch_test_macros.hpp>

#include "quire/v1/generation.pb.h"

namespace quire::testing {

// Reads until the first text has come. The first message of a stream says that its request is accepted; it may wait.
inline void ReadFirstChunk(grpc::ClientReader<v1::GenerateStreamResponse>& reader) {
  v1::GenerateStreamResponse response;
  do {
    REQUIRE(reader.Read(&response));
  } while (!response.has_chunk());
}

}  // namespace quire::testing
