#pragma once

#include <grpcpp/grpcpp.h>

#include <thread>

#include "quire/v1/generation.pb.h"

namespace quire::testing {

// Reads a stream to its end, so that a server does not end it for its reader's slowness; the end of the object's life
// waits for that.
class StreamDrain {
 public:
  explicit StreamDrain(grpc::ClientReader<v1::GenerateStreamResponse>* stream)
      : thread_([stream] {
          v1::GenerateStreamResponse message;
          while (stream->Read(&message)) continue;
        }) {}
  ~StreamDrain() { thread_.join(); }
  StreamDrain(const StreamDrain&) = delete;
  StreamDrain& operator=(const StreamDrain&) = delete;

 private:
  std::thread thread_;
};

}  // namespace quire::testing
