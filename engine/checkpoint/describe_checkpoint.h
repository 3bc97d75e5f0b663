#pragma once

#include <string>

#include "engine/checkpoint/checkpoint.h"

namespace quire {

// What `quire-server inspect PATH` prints: format and size, bytes and parameters by storage type, metadata with
// long values shortened, and a table of all tensors. Several lines, the last one ended too.
std::string DescribeCheckpoint(const Checkpoint& checkpoint);

}  // namespace quire
