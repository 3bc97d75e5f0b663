#pragma once

#include <string_view>

namespace quire {

// Where a request stands while the scheduler owns it; one that ended is owned by it no more.
// kWaiting -> kRunning <-> kPreempted; README.md has the diagram.
enum class RequestStatus {
  kWaiting,    // never scheduled; owns no block
  kRunning,    // owns blocks for all its computed tokens
  kPreempted,  // waits again, without blocks, to be computed anew
};

constexpr std::string_view ToString(RequestStatus status) {
  switch (status) {
    case RequestStatus::kWaiting: return "waiting";
    case RequestStatus::kRunning: return "running";
    case RequestStatus::kPreempted: return "preempted";
  }
  return "unknown";
}

}  // namespace quire
