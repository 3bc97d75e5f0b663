#include "server/grpc/grpc_call.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <string>
#include <utility>

#include "engine/base/status.h"
#include "server/generation/trace_context.h"
#include "server/messages/request_translation.h"
#include "server/security/loopback.h"

namespace quire {
namespace {

// A peer is told as "ipv4:127.0.0.1:50000" or "ipv6:%5B::1%5D:50000", or "unix:PATH".
bool IsLoopbackPeer(const std::string& peer) {
  constexpr std::string_view kV4 = "ipv4:";
  constexpr std::string_view kV6 = "ipv6:";
  constexpr std::string_view kBracketBegin = "%5B";
  constexpr std::string_view kBracketEnd = "%5D";
  if (peer.starts_with(kV4)) return IsLoopbackIp(HostOf(peer.substr(kV4.size())));
  if (!peer.starts_with(kV6)) return peer.starts_with("unix:");
  const size_t begin = peer.find(kBracketBegin);
  const size_t end = peer.find(kBracketEnd);
  if (begin == std::string::npos || end == std::string::npos) return IsLoopbackIp(HostOf(peer.substr(kV6.size())));
  return IsLoopbackIp(peer.substr(begin + kBracketBegin.size(), end - begin - kBracketBegin.size()));
}

bool IsPrintable(char c) { return c >= ' ' && c <= '~'; }

}  // namespace

CallOrigin OriginOf(const grpc::CallbackServerContext& context) {
  return {.metadata = [&context](std::string_view key) -> std::optional<std::string> {
            const auto [begin, end] = context.client_metadata().equal_range(grpc::string_ref(key.data(), key.size()));
            if (begin == end) return std::nullopt;
            std::string value(begin->second.data(), begin->second.size());
            for (auto next = std::next(begin); next != end; ++next) {
              value += StrCat(", ", std::string_view(next->second.data(), next->second.size()));
            }
            return value;
          },
          .is_loopback = IsLoopbackPeer(context.peer())};
}

absl::StatusOr<GenerationInput> InputOf(const grpc::CallbackServerContext& context, Authenticator* authenticator,
                                        TimePoint now) {
  const CallOrigin origin = OriginOf(context);
  QUIRE_ASSIGN_OR_RETURN(Caller caller, authenticator->Authenticate(origin));
  GenerationInput input;
  input.arrival_time = now;
  input.tenant = std::move(caller.tenant);
  input.trace_id = TraceIdIn(origin.metadata(kTraceParentKey).value_or(""));
  return input;
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
