#include "client/answer.h"

#include <ostream>
#include <vector>

#include "client/number_format.h"
#include "client/terminal_text.h"
#include "client/text_table.h"

namespace quire {
namespace {

using std::chrono::steady_clock;

double SecondsBetween(steady_clock::time_point begin, steady_clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

void AddChunk(const v1::StreamChunk& chunk, Answer& answer) {
  v1::Output& output = *answer.response.mutable_outputs(0);
  output.mutable_text()->append(chunk.text());
  output.mutable_token_ids()->MergeFrom(chunk.token_ids());
  output.mutable_logprobs()->MergeFrom(chunk.logprobs());
  answer.response.mutable_prompt_logprobs()->MergeFrom(chunk.prompt_logprobs());
  if (chunk.token_ids_size() > 0) {
    answer.last_token = steady_clock::now();
    answer.first_token = answer.first_token.value_or(*answer.last_token);
  }
}

void AddEvent(const v1::GenerateStreamResponse& event, Answer& answer) {
  v1::GenerateResponse& response = answer.response;
  switch (event.event_case()) {
    case v1::GenerateStreamResponse::kStarted:
      response.set_request_id(event.started().request_id());
      response.set_model(event.started().model());
      response.mutable_usage()->set_prompt_tokens(event.started().prompt_tokens());
      break;
    case v1::GenerateStreamResponse::kChunk: AddChunk(event.chunk(), answer); break;
    case v1::GenerateStreamResponse::kFinished:
      response.mutable_outputs(0)->set_finish_reason(event.finished().finish_reason());
      *response.mutable_usage() = event.finished().usage();
      *response.mutable_timings() = event.finished().timings();
      break;
    case v1::GenerateStreamResponse::EVENT_NOT_SET: break;
  }
}

Json FinishReasonJson(const v1::Output& output) { return MessageJson(output)["finish_reason"]; }

}  // namespace

grpc::Status StreamAnswer(const v1::GenerateRequest& request, CommandContext& context, Answer& answer) {
  std::ostream& out = context.console.out;
  answer.response.add_outputs();
  answer.start = steady_clock::now();
  grpc::Status status = context.client.GenerateStream(
      request,
      [&](const v1::GenerateStreamResponse& event) {
        AddEvent(event, answer);
        if (!context.json && event.has_chunk()) {
          out << ForOutput(event.chunk().text(), context) << std::flush;
        }
        return out.good();
      },
      context.cancel);
  if (!context.json && !answer.text().empty() && answer.text().back() != '\n') {
    out << std::endl;
  }
  if (!out.good()) {
    return grpc::Status(grpc::StatusCode::DATA_LOSS, "standard output cannot be written");
  }
  if (status.ok() && answer.response.outputs(0).finish_reason() == v1::FINISH_REASON_UNSPECIFIED) {
    return grpc::Status(grpc::StatusCode::INTERNAL, "the stream ended without a finish reason");
  }
  return status;
}

Json AnswerJson(const v1::GenerateResponse& response) {
  const v1::Output& output = response.outputs_size() > 0 ? response.outputs(0) : v1::Output::default_instance();
  Json json = {{"request_id", response.request_id()},
               {"model", response.model()},
               {"text", output.text()},
               {"token_ids", output.token_ids()},
               {"finish_reason", FinishReasonJson(output)},
               {"usage", MessageJson(response.usage())},
               {"timings", MessageJson(response.timings())}};
  if (output.logprobs_size() > 0) {
    json["logprobs"] = MessageJson(output)["logprobs"];
  }
  if (response.prompt_logprobs_size() > 0) {
    json["prompt_logprobs"] = MessageJson(response)["prompt_logprobs"];
  }
  return json;
}

std::string AnswerStats(const Answer& answer) {
  const v1::Usage& usage = answer.response.usage();
  std::string line = FormatCount(usage.prompt_tokens()) + " prompt tokens (" +
                     FormatCount(usage.cached_prompt_tokens()) + " cached), " + FormatCount(usage.completion_tokens()) +
                     " output tokens";
  if (answer.first_token) {
    line += ", time to first token " + FormatDecimal(SecondsBetween(answer.start, *answer.first_token), 3) + " s";
    const double decode_seconds = SecondsBetween(*answer.first_token, *answer.last_token);
    if (usage.completion_tokens() > 1 && decode_seconds > 0) {
      // The first token belongs to the prompt's time.
      line +=
          ", " + FormatDecimal(static_cast<double>(usage.completion_tokens() - 1) / decode_seconds, 1) + " tokens/s";
    }
  }
  return line + ", ended by " + FinishReasonJson(answer.response.outputs(0)).get<std::string>() + "\n";
}

std::string LogprobsTable(const v1::GenerateResponse& response) {
  const auto cell = [](const v1::TokenLogprob& token) {
    return "\"" + EscapeToOneLine(token.text()) + "\" " + FormatDecimal(token.logprob(), 4);
  };
  std::vector<std::vector<std::string>> rows;
  for (const auto& position : response.outputs(0).logprobs()) {
    std::vector<std::string> row = {cell(position.chosen())};
    for (const auto& token : position.top()) {
      row.push_back(cell(token));
    }
    rows.push_back(std::move(row));
  }
  return RenderTable(rows, /*all_left=*/true);
}

}  // namespace quire
