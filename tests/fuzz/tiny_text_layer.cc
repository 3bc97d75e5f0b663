#include "tests/fuzz/tiny_text_layer.h"

#include "engine/base/check.h"
#include "tests/support/tiny_model.h"

namespace quire::testing {

constexpr int64_t kMaxModelLen = 4096;

TinyTextLayer::TinyTextLayer()
    : checkpoint_(OpenCheckpoint(WriteTinyModel({}, dir_.File("tiny.gguf"))).value()),
      tokenizer_(Tokenizer::Create(*checkpoint_).value()),
      chat_template_(ChatTemplate::Create(checkpoint_->GetString("tokenizer.chat_template").value(),
                                          tokenizer_->bos_text(), tokenizer_->eos_text())
                         .value()),
      encoder_(std::make_unique<PromptEncoder>(tokenizer_.get(), chat_template_.get(), tokenizer_->vocab_size(),
                                               kMaxModelLen)) {}

bool TinyTextLayer::Takes(const Prompt& prompt) const {
  if (!encoder_->Check(prompt).ok()) return false;
  const absl::StatusOr<std::vector<TokenId>> ids = encoder_->Encode(prompt);
  // Of a prompt that has passed Check, nothing is wrong that is the server's fault.
  QUIRE_CHECK(ids.ok() || ids.status().code() == absl::StatusCode::kInvalidArgument);
  if (ids.ok()) QUIRE_CHECK(CheckTokenIds("ids", *ids, tokenizer_->vocab_size()).ok());
  return ids.ok();
}

}  // namespace quire::testing
