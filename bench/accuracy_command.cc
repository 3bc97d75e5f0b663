#include "bench/accuracy_command.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "bench/divergence.h"
#include "bench/model_flags.h"
#include "bench/text_scorer.h"
#include "engine/base/log.h"
#include "engine/base/status.h"
#include "engine/text/tokenizer.h"

namespace quire {
namespace {

struct AccuracyOptions {
  ModelFlags flags;
  std::string text_path;
  WindowPlan windows;
  int64_t max_windows = 0;  // 0: all
};

absl::StatusOr<std::string> ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) return absl::NotFoundError(StrCat("text: can't read '", path, "'"));
  return text.str();
}

absl::StatusOr<std::vector<TokenId>> TokenizeText(const Checkpoint& checkpoint, const AccuracyOptions& options) {
  QUIRE_ASSIGN_OR_RETURN(const std::string text, ReadText(options.text_path));
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer, Tokenizer::Create(checkpoint));
  QUIRE_ASSIGN_OR_RETURN(std::vector<TokenId> ids, tokenizer->Encode(text, /*parse_special=*/false, /*add_bos=*/false));
  if (static_cast<int64_t>(ids.size()) < options.windows.window_tokens) {
    return InvalidArgument("text", StrCat(ids.size(), " tokens in '", options.text_path, "'"),
                           StrCat("at least one window of ", options.windows.window_tokens, " tokens"));
  }
  return ids;
}

EngineConfig ReferenceConfig(const EngineConfig& tested) {
  EngineConfig reference = tested;
  reference.weight_type = "f32";
  reference.compute_type = "f32";
  reference.kv_cache_dtype = "f32";
  return reference;
}

void ShowProgress(int64_t window, int64_t num_windows, const DivergenceFigures& figures) {
  const bool on_terminal = isatty(STDERR_FILENO) != 0;
  std::fprintf(stderr, "%swindow %lld of %lld: mean KL %.6f, same top-1 %.2f %%%s", on_terminal ? "\r" : "",
               static_cast<long long>(window), static_cast<long long>(num_windows), figures.mean_kl,
               100 * figures.same_top1, on_terminal && window < num_windows ? "" : "\n");
}

// Adds one window's rows. The reference's logits are kept for one window at a time.
void CompareWindow(std::span<const TokenId> window, const WindowPlan& plan, TextScorer& reference, TextScorer& tested,
                   std::vector<float>* reference_logits, Divergence* divergence) {
  const int64_t vocab_size = reference.vocab_size();
  reference_logits->resize(plan.num_scored() * vocab_size);
  reference.Score(window, [&](int64_t first_row, MatrixView<float> logits) {
    for (int64_t row = 0; row < logits.rows; ++row) {
      std::ranges::copy(logits.row(row), reference_logits->begin() + (first_row + row) * vocab_size);
    }
  });
  tested.Score(window, [&](int64_t first_row, MatrixView<float> logits) {
    for (int64_t row = 0; row < logits.rows; ++row) {
      const int64_t scored_row = first_row + row;
      const std::span<const float> reference_row(reference_logits->data() + scored_row * vocab_size, vocab_size);
      divergence->AddRow(reference_row, logits.row(row), window[plan.first_scored() + scored_row + 1]);
    }
  });
}

absl::StatusOr<nlohmann::json> MeasureAccuracy(const AccuracyOptions& options) {
  const WindowPlan& plan = options.windows;
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<Checkpoint> checkpoint, OpenCheckpoint(options.flags.model));
  QUIRE_ASSIGN_OR_RETURN(const std::vector<TokenId> ids, TokenizeText(*checkpoint, options));
  QUIRE_ASSIGN_OR_RETURN(TextScorer tested, TextScorer::Load(*checkpoint, options.flags.engine, plan));
  QUIRE_ASSIGN_OR_RETURN(TextScorer reference,
                         TextScorer::Load(*checkpoint, ReferenceConfig(options.flags.engine), plan));
  int64_t num_windows = static_cast<int64_t>(ids.size()) / plan.window_tokens;
  if (options.max_windows > 0) num_windows = std::min(num_windows, options.max_windows);
  Divergence divergence;
  std::vector<float> reference_logits;
  for (int64_t window = 0; window < num_windows; ++window) {
    const auto tokens = std::span(ids).subspan(window * plan.window_tokens, plan.window_tokens);
    CompareWindow(tokens, plan, reference, tested, &reference_logits, &divergence);
    ShowProgress(window + 1, num_windows, divergence.Figures());
  }
  const DivergenceFigures figures = divergence.Figures();
  return nlohmann::json{{"model", options.flags.model},
                        {"text", options.text_path},
                        {"tested", tested.types()},
                        {"reference", reference.types()},
                        {"windows", num_windows},
                        {"window_tokens", plan.window_tokens},
                        {"scored_tokens", figures.num_rows},
                        {"mean_kl", figures.mean_kl},
                        {"p99_kl", figures.p99_kl},
                        {"max_kl", figures.max_kl},
                        {"same_top1", figures.same_top1},
                        {"perplexity_reference", figures.reference_perplexity},
                        {"perplexity_tested", figures.tested_perplexity},
                        {"perplexity_ratio", figures.perplexity_ratio()}};
}

void PrintTable(const nlohmann::json& report) {
  std::printf("tested:    %s\n", report["tested"].get<std::string>().c_str());
  std::printf("reference: %s\n", report["reference"].get<std::string>().c_str());
  std::printf("%lld tokens scored, in %lld windows of %lld\n", report["scored_tokens"].get<long long>(),
              report["windows"].get<long long>(), report["window_tokens"].get<long long>());
  std::printf("%-26s %10s %10s %10s\n", "KL(reference || tested)", "mean", "99 %", "max");
  std::printf("%-26s %10.6f %10.6f %10.6f\n", "", report["mean_kl"].get<double>(), report["p99_kl"].get<double>(),
              report["max_kl"].get<double>());
  std::printf("%-26s %10.3f %%\n", "same top-1", 100 * report["same_top1"].get<double>());
  std::printf("%-26s %10.4f reference, %.4f tested, ratio %.5f\n", "perplexity",
              report["perplexity_reference"].get<double>(), report["perplexity_tested"].get<double>(),
              report["perplexity_ratio"].get<double>());
}

void AddFlags(CLI::App& app, AccuracyOptions& options) {
  AddModelFlags(app, options.flags);
  app.add_option("--text", options.text_path, "UTF-8 text file")->required();
  app.add_option("--window", options.windows.window_tokens, "Tokens of a window")
      ->check(CLI::Range(4, 1 << 20))
      ->capture_default_str();
  app.add_option("--step-tokens", options.windows.step_tokens,
                 "Tokens computed at once: 1 measures the kernels that decode, many those of prefill")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  app.add_option("--max-windows", options.max_windows, "Of the text (default: all that are whole)")
      ->check(CLI::PositiveNumber);
}

}  // namespace

int RunAccuracyCommand(int argc, char** argv) {
  CLI::App app(
      "Measures what weight, compute and KV types cost: the next-token distributions over a text against those of f32 "
      "weights, f32 arithmetic and an f32 KV cache from the same file. The text is tokenized without BOS and cut into "
      "windows; the second half of each is scored.");
  AccuracyOptions options;
  AddFlags(app, options);
  CLI11_PARSE(app, argc, argv);
  if (const absl::Status status = log::Configure("error"); !status.ok()) return ReportFailure(status);
  const auto report = MeasureAccuracy(options);
  if (!report.ok()) return ReportFailure(report.status());
  if (options.flags.json) {
    std::printf("%s\n", report->dump(2).c_str());
  } else {
    PrintTable(*report);
  }
  return 0;
}

}  // namespace quire
