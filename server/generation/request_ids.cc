#include "server/generation/request_ids.h"

#include <format>
#include <random>

namespace quire {

RequestIds::RequestIds() : process_id_(std::random_device()()) {}

std::string RequestIds::Make(std::string_view prefix) {
  return std::format("{}-{:08x}-{}", prefix, process_id_, num_made_++);
}

}  // namespace quire
