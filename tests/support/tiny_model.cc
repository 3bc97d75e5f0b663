#include "tests/support/tiny_model.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "tests/support/gguf_writer.h"

namespace quire::testing {
namespace {

constexpr int32_t kNormalToken = 1;
constexpr int32_t kControlToken = 3;

// Applied in this order; every part is a byte character or an earlier merge. "Ġ" is the byte character of a space.
constexpr std::string_view kMerges[] = {"t h", "i n", "a n",   "e r",     "o n",  "r e",   "h e",  "l l",   "Ġ t",
                                        "Ġ a", "Ġ w", "th e",  "Ġt he",   "an d", "Ġ and", "in g", "he ll", "hell o",
                                        "o r", "l d", "or ld", "Ġw orld", "i s",  "Ġ is",  "Ġ Ġ"};

constexpr const char* kChatTemplate =
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + "
    "'\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

std::string Utf8(uint32_t code_point) {
  if (code_point < 0x80) return std::string(1, static_cast<char>(code_point));
  return {static_cast<char>(0xc0 | (code_point >> 6)), static_cast<char>(0x80 | (code_point & 0x3f))};
}

// The 256 characters that stand for bytes in GPT-2's vocabulary, in its order: first the bytes that are printable
// and stand for themselves, then the others, which stand for 256, 257, ...
std::vector<std::string> ByteCharacters() {
  const auto printable = [](uint32_t byte) {
    return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
  };
  std::vector<std::string> characters;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    if (printable(byte)) characters.push_back(Utf8(byte));
  }
  const auto num_others = static_cast<uint32_t>(256 - characters.size());
  for (uint32_t i = 0; i < num_others; ++i) characters.push_back(Utf8(256 + i));
  return characters;
}

std::string Merged(std::string_view merge) {
  const size_t space = merge.find(' ');
  return std::string(merge.substr(0, space)) + std::string(merge.substr(space + 1));
}

void AddTokenizer(GgufWriter& writer, int64_t vocab_size) {
  std::vector<std::string> tokens = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
  std::vector<int32_t> types(tokens.size(), kControlToken);
  std::vector<std::string> merges;
  for (std::string& character : ByteCharacters()) tokens.push_back(std::move(character));
  for (const std::string_view merge : kMerges) {
    merges.emplace_back(merge);
    tokens.push_back(Merged(merge));
  }
  while (static_cast<int64_t>(tokens.size()) < vocab_size) {
    tokens.push_back("[unused" + std::to_string(tokens.size()) + "]");
  }
  types.resize(tokens.size(), kNormalToken);
  writer.Add("tokenizer.ggml.model", "gpt2");
  writer.Add("tokenizer.ggml.pre", "smollm");
  writer.AddArray("tokenizer.ggml.tokens", tokens);
  writer.AddArray("tokenizer.ggml.token_type", types);
  writer.AddArray("tokenizer.ggml.merges", merges);
  writer.Add("tokenizer.ggml.bos_token_id", static_cast<uint32_t>(kTinyImStart));
  writer.Add("tokenizer.ggml.eos_token_id", static_cast<uint32_t>(kTinyImEnd));
  writer.Add("tokenizer.ggml.unknown_token_id", static_cast<uint32_t>(kTinyEndOfText));
  writer.Add("tokenizer.ggml.padding_token_id", static_cast<uint32_t>(kTinyImEnd));
  writer.Add("tokenizer.ggml.add_bos_token", false);
  writer.Add("tokenizer.ggml.add_space_prefix", false);
  writer.Add("tokenizer.chat_template", kChatTemplate);
}

void AddConfig(GgufWriter& writer, const TinyModelOptions& options) {
  const auto add = [&writer](std::string_view key, int64_t value) { writer.Add(key, static_cast<uint32_t>(value)); };
  writer.Add("general.architecture", "llama");
  writer.Add("general.name", "Tiny Random");
  add("llama.block_count", options.num_layers);
  add("llama.context_length", options.context_length);
  add("llama.embedding_length", options.hidden_size);
  add("llama.feed_forward_length", options.intermediate_size);
  add("llama.attention.head_count", options.num_heads);
  add("llama.attention.head_count_kv", options.num_kv_heads);
  add("llama.attention.key_length", options.head_dim);
  add("llama.attention.value_length", options.head_dim);
  add("llama.rope.dimension_count", options.head_dim);
  writer.Add("llama.rope.freq_base", options.rope_theta);
  writer.Add("llama.attention.layer_norm_rms_epsilon", options.rms_norm_epsilon);
  add("llama.vocab_size", options.vocab_size);
}

// Adds tensors of random values, drawn in the order of the calls.
class RandomTensors {
 public:
  RandomTensors(GgufWriter& writer, const TinyModelOptions& options)
      : writer_(writer), type_(options.storage_type), generator_(options.seed) {}

  // [out_features, in_features] from N(0, (gain / sqrt(in_features))^2).
  void AddMatrix(const std::string& name, int64_t out_features, int64_t in_features, double gain) {
    writer_.AddTensor(name, {out_features, in_features}, type_,
                      Draw(out_features * in_features, 0, gain / std::sqrt(static_cast<double>(in_features))));
  }
  // [size] from N(1, 0.1^2).
  void AddNorm(const std::string& name, int64_t size) {
    writer_.AddTensor(name, {size}, StorageType::kF32, Draw(size, 1, 0.1));
  }

 private:
  std::vector<float> Draw(int64_t count, double mean, double deviation) {
    std::normal_distribution<double> normal(mean, deviation);
    std::vector<float> values(static_cast<size_t>(count));
    std::generate(values.begin(), values.end(), [&] { return static_cast<float>(normal(generator_)); });
    return values;
  }

  GgufWriter& writer_;
  StorageType type_;
  std::mt19937_64 generator_;
};

void AddTensors(GgufWriter& writer, const TinyModelOptions& options) {
  constexpr double kGain = 0.5;
  // Larger, so that attention is far from uniform and a wrong mask or position shows.
  constexpr double kQueryKeyGain = 1.5;
  // Larger, so that logits differ clearly and greedy choices have a margin.
  constexpr double kEmbeddingGain = 1.0;
  const int64_t hidden = options.hidden_size;
  const int64_t query_size = options.num_heads * options.head_dim;
  const int64_t kv_size = options.num_kv_heads * options.head_dim;
  RandomTensors tensors(writer, options);
  tensors.AddMatrix("token_embd.weight", options.vocab_size, hidden, kEmbeddingGain);
  for (int64_t layer = 0; layer < options.num_layers; ++layer) {
    const std::string prefix = "blk." + std::to_string(layer) + ".";
    tensors.AddNorm(prefix + "attn_norm.weight", hidden);
    tensors.AddMatrix(prefix + "attn_q.weight", query_size, hidden, kQueryKeyGain);
    tensors.AddMatrix(prefix + "attn_k.weight", kv_size, hidden, kQueryKeyGain);
    tensors.AddMatrix(prefix + "attn_v.weight", kv_size, hidden, kGain);
    tensors.AddMatrix(prefix + "attn_output.weight", hidden, query_size, kGain);
    tensors.AddNorm(prefix + "ffn_norm.weight", hidden);
    tensors.AddMatrix(prefix + "ffn_gate.weight", options.intermediate_size, hidden, kGain);
    tensors.AddMatrix(prefix + "ffn_up.weight", options.intermediate_size, hidden, kGain);
    tensors.AddMatrix(prefix + "ffn_down.weight", hidden, options.intermediate_size, kGain);
  }
  tensors.AddNorm("output_norm.weight", hidden);
  if (!options.tied_embeddings) tensors.AddMatrix("output.weight", options.vocab_size, hidden, kEmbeddingGain);
}

}  // namespace

std::string WriteTinyModel(const TinyModelOptions& options, const std::string& path) {
  if (options.vocab_size < kTinyMinVocabSize) throw std::invalid_argument("WriteTinyModel: vocab_size is too small");
  if (options.num_heads % options.num_kv_heads != 0) {
    throw std::invalid_argument("WriteTinyModel: num_heads is not a multiple of num_kv_heads");
  }
  GgufWriter writer;
  AddConfig(writer, options);
  AddTokenizer(writer, options.vocab_size);
  AddTensors(writer, options);
  WriteFile(path, writer.ToBytes());
  return path;
}

}  // namespace quire::testing
