#pragma once

#include <cstdint>
#include <span>

#include "engine/base/ids.h"

namespace quire {

// What a grammar allows next: implemented by the text layer, applied by the runtime before sampling.
class TokenConstraint {
 public:
  virtual ~TokenConstraint() = default;

  // Sets bit t of `mask` (word t / 32, bit t % 32) exactly for tokens t that may follow.
  virtual void FillMask(std::span<uint32_t> mask) = 0;  // [ceil(vocab_size / 32)]

  virtual void Accept(TokenId token_id) = 0;
};

}  // namespace quire
