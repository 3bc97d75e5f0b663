#include "client/request_flags.h"

namespace quire {

RequestFlags::RequestFlags(CLI::App& app, bool for_chat) {
  app.add_option("--model", model_, "Name of the model; default: the only one")->type_name("NAME");
  if (!for_chat) {
    app.add_flag("--chat", chat_, "Send the prompt as a user's message, rendered with the model's chat template");
  }
  app.add_option("--system", system_, for_chat ? "System prompt" : "System prompt; implies --chat")->type_name("TEXT");
  app.add_option("--max-tokens", max_tokens_, "Most output tokens, >= 1; default: what fits")->type_name("N");
  app.add_option("--temperature", temperature_, ">= 0; 0 is greedy; default 1")->type_name("T");
  app.add_option("--top-k", top_k_, "Keep the K most probable tokens; 0, the default, keeps all")->type_name("K");
  app.add_option("--top-p", top_p_, "Keep the most probable tokens up to this sum, in (0, 1]; default 1")
      ->type_name("P");
  app.add_option("--min-p", min_p_, "Drop tokens below P times the best one's probability, in [0, 1]; default 0")
      ->type_name("P");
  app.add_option("--repetition-penalty", repetition_penalty_, "> 0; default 1: none")->type_name("R");
  app.add_option("--seed", seed_, "The same seed gives the same text; default: drawn anew")->type_name("N");
  // One value for each --stop, so that a prompt behind it stays a prompt.
  app.add_option("--stop", stop_, "End before this text; may be repeated")->type_name("TEXT")->allow_extra_args(false);
  app.add_option("--stop-token-id", stop_token_ids_, "End with this token; may be repeated")
      ->type_name("ID")
      ->allow_extra_args(false);
  app.add_flag("--ignore-eos", ignore_eos_, "Go on past the model's own end");
  app.add_flag("--special", special_tokens_, "Show special tokens in the text");
  app.add_option("--priority", priority_, "Lower runs first among a tenant's requests, in [-100, 100]; default 0")->type_name("N");
  app.add_option("--cache-salt", cache_salt_, "Share cached prefixes only with requests of the same salt")
      ->type_name("TEXT");
  app.add_flag("--skip-prefix-cache", skip_prefix_cache_, "Compute the whole prompt, whatever is cached");
  if (!for_chat) {
    app.add_option("--logprobs", logprobs_, "Log-probabilities of output tokens, with N alternatives, in [0, 20]")
        ->type_name("N");
    app.add_option("--prompt-logprobs", prompt_logprobs_, "The same for prompt tokens; shown with --json")
        ->type_name("N");
  }
}

v1::GenerateRequest RequestFlags::BaseRequest() const {
  v1::GenerateRequest request;
  request.set_model(model_);
  request.set_priority(priority_);
  request.set_cache_salt(cache_salt_);
  request.set_skip_reading_prefix_cache(skip_prefix_cache_);
  v1::SamplingParams& sampling = *request.mutable_sampling();
  if (temperature_) sampling.set_temperature(*temperature_);
  if (top_k_) sampling.set_top_k(*top_k_);
  if (top_p_) sampling.set_top_p(*top_p_);
  if (min_p_) sampling.set_min_p(*min_p_);
  if (repetition_penalty_) sampling.set_repetition_penalty(*repetition_penalty_);
  if (seed_) sampling.set_seed(*seed_);
  if (max_tokens_) sampling.set_max_tokens(*max_tokens_);
  if (ignore_eos_) sampling.set_ignore_eos(true);
  if (special_tokens_) sampling.set_include_special_tokens(true);
  if (logprobs_) sampling.set_logprobs(*logprobs_);
  if (prompt_logprobs_) sampling.set_prompt_logprobs(*prompt_logprobs_);
  sampling.mutable_stop_strings()->Assign(stop_.begin(), stop_.end());
  sampling.mutable_stop_token_ids()->Assign(stop_token_ids_.begin(), stop_token_ids_.end());
  return request;
}

v1::GenerateRequest RequestFlags::RequestFor(const std::string& prompt) const {
  v1::GenerateRequest request = BaseRequest();
  if (!chat_ && !system_) {
    request.set_text(prompt);
    return request;
  }
  if (system_) {
    AddChatMessage(request, "system", *system_);
  }
  AddChatMessage(request, "user", prompt);
  return request;
}

void AddChatMessage(v1::GenerateRequest& request, const std::string& role, const std::string& content) {
  v1::ChatMessage& message = *request.mutable_chat()->add_messages();
  message.set_role(role);
  message.set_content(content);
}

}  // namespace quire
