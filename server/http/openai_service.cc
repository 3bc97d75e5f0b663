#include "server/http/openai_service.h"

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <utility>

#include "engine/base/status.h"
#include "server/generation/trace_context.h"
#include "server/http/http_error.h"
#include "server/http/json_text.h"
#include "server/messages/field_names.h"
#include "server/messages/json_fields.h"
#include "server/messages/request_translation.h"
#include "server/messages/response_translation.h"

namespace quire {
namespace {

using Json = nlohmann::json;

constexpr int64_t kOtherJsonValues = 4096;  // all but token ids

int64_t UnixSeconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// The first that fits counts.
constexpr FieldName kFieldNames[] = {
    {"chat.messages", "messages"}, {"chat", "messages"},
    {"token_ids", "prompt"},       {"text", "prompt"},
    {"stop_strings", "stop"},      {"sampling.stop_strings", "stop"},
};

// An error that names a field by OpenAI's name.
absl::Status Renamed(const absl::Status& status) { return WithFieldNames(status, kFieldNames); }

// A server-sent event: https://html.spec.whatwg.org/multipage/server-sent-events.html.
std::string EventOf(const Json& json) { return "data: " + ToText(json) + "\n\n"; }

// Joins the chunks of each choice. The status of the first that did not end well.
absl::StatusOr<std::vector<OpenAiChoice>> Collect(HttpAnswer& answer, size_t num_choices) {
  std::vector<OpenAiChoice> choices(num_choices);
  size_t num_ended = 0;
  while (std::optional<AnswerEvent> event = answer.Next()) {
    OpenAiChoice& choice = choices[event->choice];
    if (event->end) {
      QUIRE_RETURN_IF_ERROR(event->end->status);
      choice.result = *std::move(event->end);
      ++num_ended;
      continue;
    }
    Join(event->chunk, &choice.output);
  }
  if (num_ended < num_choices) return absl::CancelledError("the client is gone");
  return choices;
}

}  // namespace

// An answer under way: each call of WriteNext writes what one event says.
class OpenAiService::StreamedAnswer {
 public:
  StreamedAnswer(std::unique_ptr<HttpAnswer> answer, OpenAiKind kind, OpenAiResponse response,
                 const OpenAiRequest& request)
      : answer_(std::move(answer)),
        response_(std::move(response)),
        choices_per_prompt_(request.choices_per_prompt),
        with_usage_(request.include_usage),
        choices_(static_cast<size_t>(request.num_choices())),
        text_offsets_(choices_.size(), 0) {
    if (kind != OpenAiKind::kChat) return;
    for (size_t choice = 0; choice < choices_.size(); ++choice) beginning_ += EventOf(response_.BeginPiece(choice));
  }

  // False if the client is gone.
  bool WriteNext(httplib::DataSink& sink) {
    if (!beginning_.empty()) return Write(sink, std::exchange(beginning_, ""));
    const std::optional<AnswerEvent> event = answer_->Next();
    if (!event) return false;
    if (event->end) return WriteEnd(event->choice, *event->end, sink);
    const int64_t offset = text_offsets_[event->choice];
    text_offsets_[event->choice] += static_cast<int64_t>(event->chunk.text().size());
    // A token without text, half a character, has its log-probabilities all the same.
    if (event->chunk.text().empty() && event->chunk.logprobs().empty()) return true;
    return Write(sink, EventOf(response_.Piece(event->choice, event->chunk, offset)));
  }

 private:
  bool WriteEnd(size_t choice, const GenerationResult& result, httplib::DataSink& sink) {
    if (!result.status.ok()) {
      // The code was sent long ago; clients of OpenAI's look for this object.
      const bool is_written = Write(sink, EventOf(ErrorObject(result.status)));
      if (is_written) sink.done();
      return is_written;
    }
    choices_[choice].result = result;
    std::string events = EventOf(response_.EndPiece(choice, result.finish_reason));
    const bool is_last = ++num_ended_ == choices_.size();
    if (is_last && with_usage_) events += EventOf(response_.UsagePiece(choices_, choices_per_prompt_));
    if (is_last) events += "data: [DONE]\n\n";
    const bool is_written = Write(sink, events);
    if (is_written && is_last) sink.done();
    return is_written;
  }

  static bool Write(httplib::DataSink& sink, const std::string& events) {
    return sink.write(events.data(), events.size());
  }

  const std::unique_ptr<HttpAnswer> answer_;
  const OpenAiResponse response_;
  const int64_t choices_per_prompt_;
  const bool with_usage_;
  std::string beginning_;              // not yet written
  std::vector<OpenAiChoice> choices_;  // their results only
  std::vector<int64_t> text_offsets_;  // bytes of each choice's text so far
  size_t num_ended_ = 0;
};

OpenAiService::OpenAiService(const GenerationPipeline& pipeline, v1::ModelInfo model, StreamMemory* stream_memory,
                             RequestIds* request_ids)
    : pipeline_(pipeline),
      model_(std::move(model)),
      created_seconds_(UnixSeconds()),
      stream_memory_(stream_memory),
      request_ids_(request_ids) {}

void OpenAiService::Complete(OpenAiKind kind, const httplib::Request& request, const Caller& caller, const Json& body,
                             httplib::Response& response) {
  const auto refuse = [&](const absl::Status& status) {
    pipeline_.metrics->CountRefusal(status);
    SetError(Renamed(status), response);
  };
  std::string request_id = request.get_header_value(kRequestIdKey);
  if (const absl::Status status = CheckRequestId(request_id); !status.ok()) return refuse(status);
  if (request_id.empty()) request_id = request_ids_->Make(kind == OpenAiKind::kChat ? "chatcmpl" : "cmpl");
  response.set_header(kRequestIdKey, request_id);
  const absl::StatusOr<OpenAiRequest> parsed = Parse(kind, body);
  if (!parsed.ok()) return refuse(parsed.status());
  absl::StatusOr<std::vector<GenerationInput>> inputs =
      ToInputs(*parsed, caller, request_id, TraceIdIn(request.get_header_value(std::string(kTraceParentKey))));
  if (!inputs.ok()) return refuse(inputs.status());
  if (const absl::Status status = pipeline_.rate_limiter->Admit(caller.tenant, parsed->num_choices()); !status.ok()) {
    return refuse(status);
  }

  auto answer =
      std::make_unique<HttpAnswer>(pipeline_, stream_memory_, *std::move(inputs), request.is_connection_closed);
  if (const absl::Status status = answer->WaitForStart(); !status.ok()) return SetError(Renamed(status), response);
  const OpenAiResponse format(kind, request_id, model_.name(), UnixSeconds(), parsed->sampling.num_logprobs.has_value(),
                              pipeline_.tokenizer);
  if (parsed->stream) {
    auto streamed = std::make_shared<StreamedAnswer>(std::move(answer), kind, format, *parsed);
    response.set_header("Cache-Control", "no-cache");
    return response.set_chunked_content_provider(
        "text/event-stream", [streamed](size_t, httplib::DataSink& sink) { return streamed->WriteNext(sink); });
  }
  const auto choices = Collect(*answer, static_cast<size_t>(parsed->num_choices()));
  if (!choices.ok()) return SetError(choices.status(), response);
  response.set_content(ToText(format.Whole(*choices, parsed->choices_per_prompt)), "application/json");
}

Json OpenAiService::ListModels() const {
  const Json model = {{"id", model_.name()},
                      {"object", "model"},
                      {"created", created_seconds_},
                      {"owned_by", "quire"},
                      {"max_model_len", model_.max_model_len()}};
  return {{"object", "list"}, {"data", Json::array({model})}};
}

absl::StatusOr<Json> OpenAiService::GetModel(const std::string& name) const {
  QUIRE_RETURN_IF_ERROR(CheckModelName(name, model_.name()));
  return ListModels()["data"][0];
}

absl::StatusOr<Json> OpenAiService::Tokenize(const Json& body) const {
  std::string model;
  JsonFields fields(body);
  fields.Read("model", &model);
  TextPrompt text;
  fields.Read("parse_special", &text.parse_special);
  const Json* prompt_text = fields.Find("prompt");
  const Json* messages = fields.Find("messages");
  fields.Read("prompt", &text.text);
  fields.Expect("add_special_tokens", false);
  QUIRE_RETURN_IF_ERROR(fields.Finish());
  QUIRE_RETURN_IF_ERROR(CheckModelName(model, model_.name()));
  if ((prompt_text == nullptr) == (messages == nullptr)) {
    return InvalidArgument("prompt", std::string_view(messages == nullptr ? "nothing" : "messages too"),
                           "exactly one of prompt and messages");
  }
  Prompt prompt = std::move(text);
  if (messages != nullptr) {
    QUIRE_ASSIGN_OR_RETURN(prompt, ParseMessages(*messages));
  }
  const absl::StatusOr<std::vector<TokenId>> ids = EncodeOnTextThread(std::move(prompt));
  if (!ids.ok()) return Renamed(ids.status());
  return Json{{"tokens", *ids}, {"count", ids->size()}, {"max_model_len", model_.max_model_len()}};
}

absl::StatusOr<Json> OpenAiService::Detokenize(const Json& body) const {
  std::string model;
  JsonFields fields(body);
  fields.Read("model", &model);
  const Json* tokens = fields.Find("tokens");
  QUIRE_RETURN_IF_ERROR(fields.Finish());
  QUIRE_RETURN_IF_ERROR(CheckModelName(model, model_.name()));
  QUIRE_ASSIGN_OR_RETURN(const std::vector<TokenId> ids, ReadTokenIds("tokens", tokens != nullptr ? *tokens : Json()));
  QUIRE_RETURN_IF_ERROR(CheckTokenIds("tokens", ids, pipeline_.tokenizer->vocab_size()));
  QUIRE_ASSIGN_OR_RETURN(std::string text, pipeline_.tokenizer->Decode(ids, /*with_special=*/true));
  return Json{{"prompt", std::move(text)}};
}

int64_t OpenAiService::max_json_values() const { return kOtherJsonValues + 2 * model_.max_model_len(); }

absl::StatusOr<OpenAiRequest> OpenAiService::Parse(OpenAiKind kind, const Json& body) const {
  QUIRE_ASSIGN_OR_RETURN(OpenAiRequest parsed,
                         kind == OpenAiKind::kChat ? ParseChatRequest(body) : ParseCompletionRequest(body));
  QUIRE_RETURN_IF_ERROR(CheckModelName(parsed.model, model_.name()));
  for (const Prompt& prompt : parsed.prompts) QUIRE_RETURN_IF_ERROR(pipeline_.prompt_encoder->Check(prompt));
  return parsed;
}

absl::StatusOr<std::vector<GenerationInput>> OpenAiService::ToInputs(const OpenAiRequest& parsed, const Caller& caller,
                                                                     const std::string& request_id,
                                                                     const std::string& trace_id) const {
  GenerationInput input;
  input.arrival_time = pipeline_.clock->Now();
  input.tenant = caller.tenant;
  input.trace_id = trace_id;
  QUIRE_ASSIGN_OR_RETURN(input.deadline, ToDeadline(parsed.timeout_seconds, input.arrival_time, std::nullopt));
  input.priority = parsed.priority;
  input.cache_salt = parsed.cache_salt;
  input.sampling = parsed.sampling;
  input.include_special_tokens = parsed.include_special_tokens;
  std::vector<GenerationInput> inputs(static_cast<size_t>(parsed.num_choices()), input);
  for (size_t i = 0; i < inputs.size(); ++i) {
    inputs[i].request_id = inputs.size() == 1 ? request_id : StrCat(request_id, "-", i);
    inputs[i].prompt = parsed.prompts[i / static_cast<size_t>(parsed.choices_per_prompt)];
    // The same seed would give the same choice again.
    if (parsed.sampling.seed) inputs[i].sampling.seed = *parsed.sampling.seed + i;
  }
  return inputs;
}

absl::StatusOr<std::vector<TokenId>> OpenAiService::EncodeOnTextThread(Prompt prompt) const {
  QUIRE_RETURN_IF_ERROR(pipeline_.prompt_encoder->Check(prompt));
  const int64_t num_bytes = BytesOf(prompt);
  auto encode = std::make_shared<std::packaged_task<absl::StatusOr<std::vector<TokenId>>()>>(
      [encoder = pipeline_.prompt_encoder, prompt = std::move(prompt)] { return encoder->Encode(prompt); });
  std::future<absl::StatusOr<std::vector<TokenId>>> ids = encode->get_future();
  QUIRE_RETURN_IF_ERROR(pipeline_.text_executor->PostEncode(num_bytes, [encode] { (*encode)(); }));
  return ids.get();
}

}  // namespace quire
