#include "server/grpc_call.h"

#include <algorithm>
#include <optional>
#include <string>

#include "server/request_ids.h"

namespace quire {
namespace {

// A peer is told as "ipv4:127.0.0.1:50000" or "ipv6:%5B::1%5D:50000", or "unix:PATH".
bool IsLoopback(const std::string& peer) {
  for (const char* beginning : {"ipv4:127.", "ipv6:%5B::1%5D:", "ipv6:[::1]:", "ipv6:%5B::ffff:127.", "unix:"}) {
    if (peer.starts_with(beginning)) return true;
  }
  return false;
}

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

void TellRequestId(const std::string& request_id, grpc::CallbackServerContext* context) {
  const bool is_printable = std::ranges::all_of(request_id, [](char c) { return c >= ' ' && c <= '~'; });
  if (is_printable) context->AddInitialMetadata(kRequestIdKey, request_id);
}

}  // namespace quire
