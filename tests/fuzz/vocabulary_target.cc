// Vocabularies that are well-formed GGUF and nothing else. Lines: tokenizer.ggml.model; tokenizer.ggml.pre; the tokens,
// a digit for the type before each; an empty line; the merges; an empty line. What follows is a text to encode.
#include <memory>
#include <string>
#include <vector>

#include "engine/base/check.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/text/special_text_guard.h"
#include "engine/text/text_memory.h"
#include "engine/text/tokenizer.h"
#include "server/memory_file.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/tokenizer_check.h"
#include "tests/support/gguf_writer.h"

namespace quire::testing {
namespace {

constexpr std::string_view kStages[] = {"made", "encoded"};
constexpr std::string_view kWords[] = {"\n",
                                       "\n\n",
                                       "\n1",
                                       "\n3",
                                       "\n4",
                                       "\n6<0x41>",
                                       "\n3</s>",
                                       "\n2<unk>",
                                       "\n1\xE2\x96\x81",
                                       "\nllama\n",
                                       "\ngpt2\n",
                                       "\nqwen2\n",
                                       "\nllama-bpe\n",
                                       "a b",
                                       "\xC4\xA0",
                                       "\xE2\x96\x81",
                                       "\xEF\xB7\x90",
                                       "\xC3",
                                       "<0x0G>",
                                       "\n\n\n"};

// Takes the lines before the next empty one off the front of `text`.
std::vector<std::string> TakeLines(std::string_view& text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    if (line.empty()) break;
    lines.emplace_back(line);
  }
  return lines;
}

std::string ToGguf(std::vector<std::string> lines, const std::vector<std::string>& merges) {
  lines.resize(std::max<size_t>(lines.size(), 2));
  std::vector<std::string> tokens;
  std::vector<int32_t> types;
  std::vector<float> scores;
  for (size_t i = 2; i < lines.size(); ++i) {
    tokens.push_back(lines[i].substr(1));
    types.push_back(lines[i].front() - '0');
    scores.push_back(-static_cast<float>(i % 1000));
  }
  GgufWriter writer;
  writer.Add("tokenizer.ggml.model", lines[0]);
  writer.Add("tokenizer.ggml.pre", lines[1]);
  writer.AddArray("tokenizer.ggml.tokens", tokens);
  writer.AddArray("tokenizer.ggml.token_type", types);
  writer.AddArray("tokenizer.ggml.scores", scores);
  writer.AddArray("tokenizer.ggml.merges", merges);
  return writer.ToBytes();
}

class Vocabularies final : public FuzzTarget {
 public:
  size_t Run(std::string_view input) override {
    const std::vector<std::string> lines = TakeLines(input);
    QUIRE_CHECK(file_->Write(ToGguf(lines, TakeLines(input))).ok());
    const auto checkpoint = OpenCheckpoint(file_->path()).value();
    EstimateTextLayerBytes(*checkpoint);
    LongestTokenBytes(*checkpoint);
    const auto tokenizer = Tokenizer::Create(*checkpoint);
    if (!tokenizer.ok()) return 0;
    CheckEncoding(**tokenizer, SpecialTextGuard(**tokenizer).Guard(input));
    return CheckEncoding(**tokenizer, input) ? 2 : 1;
  }

 private:
  const std::unique_ptr<MemoryFile> file_ = MemoryFile::Create().value();
};

}  // namespace

FuzzTargetKind VocabularyTarget() {
  return {"vocabulary", kStages, kWords, [] { return std::make_unique<Vocabularies>(); }};
}

}  // namespace quire::testing
