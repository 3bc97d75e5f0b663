#include "server/grpc_call.h"

#include <algorithm>
#include <chrono>
#include <string>

#include "engine/base/status.h"
#include "server/request_translation.h"

namespace quire {
namespace {

// A peer is told as "ipv4:127.0.0.1:50000" or "ipv6:%5B::1%5D:50000", or "unix:PATH".
bool IsLoopback(const std::string& peer) {
  for (const char* beginning : {"ipv4:127.", "ipv6:%5B::1%5D:", "ipv6:[::1]:", "ipv6:%5B::ffff:127.", "unix:"}) {
    if (peer.starts_with(beginning)) return true;
  }
  return false;
}

bool IsPrintable(char c) { return c >= ' ' && c <= '~'; }

}  // namespace

CallOrigin OriginOf(const grpc::CallbackServerContext& context) {
  return {.metadata = [&context](std::string_view key) -> std::optional<std::string> {
            const auto& metadata = context.client_metadata();
            const auto found = metadata.find(grpc::string_ref(key.data(), key.size()));
            if (found == metadata.end()) return std::nullopt;
            return std::string(found->second.data(), found->second.size());
          },
          .is_loopback = IsLoopback(context.peer())};
}

absl::StatusOr<std::string> RequestIdOf(const std::string& asked, std::string_view prefix, RequestIds* request_ids,
                                        grpc::CallbackServerContext* context) {
  std::string id = asked.empty() ? OriginOf(*context).metadata(kRequestIdKey).value_or("") : asked;
  QUIRE_RETURN_IF_ERROR(CheckRequestId(id));
  if (id.empty()) id = request_ids->Make(prefix);
  if (std::ranges::all_of(id, IsPrintable)) context->AddInitialMetadata(kRequestIdKey, id);
  return id;
}

// gRPC's deadlines are points of wall-clock time; the engine's are monotonic.
std::optional<TimePoint> DeadlineOf(const grpc::CallbackServerContext& context, TimePoint now) {
  const auto deadline = context.deadline();
  if (deadline == std::chrono::system_clock::time_point::max()) return std::nullopt;
  return now + std::chrono::duration_cast<Duration>(deadline - std::chrono::system_clock::now());
}

}  // namespace quire
