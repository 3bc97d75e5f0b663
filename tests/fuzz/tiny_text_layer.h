#pragma once

#include <memory>

#include "engine/checkpoint/checkpoint.h"
#include "engine/text/chat_template.h"
#include "engine/text/tokenizer.h"
#include "server/generation/prompt_encoder.h"
#include "tests/support/temp_dir.h"

namespace quire::testing {

// The tests' tiny model, as far as requests meet it before they are computed.
class TinyTextLayer {
 public:
  TinyTextLayer();

  const Checkpoint& checkpoint() const { return *checkpoint_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }

  // What a request's prompt goes through. False if it is refused.
  bool Takes(const Prompt& prompt) const;

 private:
  TempDir dir_;
  std::unique_ptr<Checkpoint> checkpoint_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<ChatTemplate> chat_template_;
  std::unique_ptr<PromptEncoder> encoder_;
};

}  // namespace quire::testing
