#include "client/batch_command.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <ostream>
#include <random>
#include <thread>
#include <vector>

#include "client/answer.h"
#include "client/batch_input.h"
#include "client/batch_output.h"
#include "client/batch_progress.h"
#include "client/failure.h"
#include "client/number_format.h"

namespace quire {
namespace {

// Workers that each take the next line, ask, and write the record, until the input or the patience ends.
class BatchRunner {
 public:
  BatchRunner(const BatchOptions& options, const RequestFlags& flags, CommandContext& context, BatchInput& input,
              BatchOutput& output)
      : options_(options),
        flags_(flags),
        context_(context),
        input_(input),
        output_(output),
        progress_(context.console.err, context.console.err_is_terminal, {.num_total = input.num_lines()}) {}

  ExitCode Run() {
    std::vector<std::thread> workers;
    for (int i = 0; i < options_.concurrency; ++i) {
      workers.emplace_back([this] { Work(); });
    }
    for (std::thread& worker : workers) {
      worker.join();
    }
    progress_.Finish();
    return Report();
  }

 private:
  void Work() {
    std::minstd_rand random(std::random_device{}());
    while (!context_.cancel.IsCancelled() && !stopped_) {
      const std::optional<BatchLine> line = input_.Next();
      if (!line) {
        return;
      }
      if (output_.IsDone(line->id)) {
        progress_.AddSkipped();
      } else {
        AnswerLine(*line, random);
      }
    }
  }

  void AnswerLine(const BatchLine& line, std::minstd_rand& random) {
    v1::GenerateResponse response;
    const grpc::Status status = Ask(line, random, response);
    if (ExitCodeOf(status, context_.cancel) == ExitCode::kInterrupted) {
      return;  // the next run asks again
    }
    Json record = {{"id", line.id}};
    if (status.ok()) {
      record.update(AnswerJson(response));
    } else {
      record["error"] = FailureJson(status);
    }
    if (const grpc::Status written = output_.Append(record); !written.ok()) {
      Stop(written);
      return;
    }
    status.ok() ? progress_.AddAnswered() : progress_.AddFailed();
    if (status.error_code() == grpc::StatusCode::UNAVAILABLE) {
      Stop(status);  // gone for longer than the retries last: the other lines would only fail too
    }
  }

  grpc::Status Ask(const BatchLine& line, std::minstd_rand& random, v1::GenerateResponse& response) {
    v1::GenerateRequest request;
    if (grpc::Status status = ParseBatchRequest(line, flags_, request); !status.ok()) {
      return status;
    }
    std::uniform_real_distribution<double> spread(0.0, 1.0);
    for (int retry = 0;; ++retry) {
      response.Clear();
      grpc::Status status = context_.client.Generate(request, response, context_.cancel);
      const auto delay = options_.retry.DelayBefore(retry, status, spread(random));
      if (!delay) {
        return status;
      }
      if (context_.cancel.WaitFor(*delay)) {
        return grpc::Status::CANCELLED;
      }
    }
  }

  // Ends the batch before its input ends; the first reason is told.
  void Stop(const grpc::Status& reason) {
    const std::lock_guard lock(stop_mutex_);
    if (stop_reason_.ok()) {
      stop_reason_ = reason;
    }
    stopped_ = true;
  }

  ExitCode Report() const {
    const BatchCounts counts = progress_.counts();
    const int64_t num_left = counts.num_total - counts.NumDone();
    if (context_.json) {
      PrintJson({{"total", counts.num_total},
                 {"answered", counts.num_answered},
                 {"skipped", counts.num_skipped},
                 {"failed", counts.num_failed},
                 {"left", num_left}},
                context_);
    } else {
      context_.console.err << FormatCount(counts.num_answered) << " answered, " << FormatCount(counts.num_skipped)
                           << " answered before, " << FormatCount(counts.num_failed) << " failed, "
                           << FormatCount(num_left) << " left"
                           << (num_left + counts.num_failed > 0 ? "; the same command goes on" : "") << std::endl;
    }
    if (!stop_reason_.ok()) {
      ReportFailure(stop_reason_, context_);
      return stop_reason_.error_code() == grpc::StatusCode::UNAVAILABLE ? ExitCode::kCannotConnect : ExitCode::kFailed;
    }
    if (context_.cancel.IsCancelled() && num_left > 0) {
      return ReportFailure(grpc::Status::CANCELLED, context_);
    }
    return counts.num_failed > 0 ? ExitCode::kFailed : ExitCode::kOk;
  }

  const BatchOptions& options_;
  const RequestFlags& flags_;
  CommandContext& context_;
  BatchInput& input_;
  BatchOutput& output_;
  BatchProgress progress_;
  std::atomic<bool> stopped_ = false;
  std::mutex stop_mutex_;
  grpc::Status stop_reason_;
};

}  // namespace

ExitCode RunBatch(const BatchOptions& options, const RequestFlags& flags, CommandContext& context) {
  std::unique_ptr<BatchInput> input;
  if (const grpc::Status status = BatchInput::Open(options.input_path, input); !status.ok()) {
    return ReportUsage(status.error_message(), context);
  }
  std::unique_ptr<BatchOutput> output;
  if (const grpc::Status status = BatchOutput::Open(options.output_path, output); !status.ok()) {
    return ReportUsage(status.error_message(), context);
  }
  if (const ExitCode code = Connect(context); code != ExitCode::kOk) {
    return code;
  }
  return BatchRunner(options, flags, context, *input, *output).Run();
}

}  // namespace quire
