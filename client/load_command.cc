#include "client/load_command.h"

#include <algorithm>
#include <ostream>
#include <utility>

#include "client/failure.h"
#include "client/load_grpc.h"
#include "client/load_http.h"
#include "client/load_runner.h"

namespace quire {
namespace {

constexpr int64_t kMaxLength = 1 << 20;

// Empty, or what is wrong with NAME=SHARE: CLI11's convention.
std::string ParseShare(const std::string& text, TenantShare* tenant) {
  const size_t equals = text.rfind('=');
  tenant->name = text.substr(0, equals);
  const bool is_number =
      equals != std::string::npos && CLI::detail::lexical_cast(text.substr(equals + 1), tenant->share);
  const bool good = is_number && !tenant->name.empty() && tenant->share > 0 && tenant->share <= 1e6;
  return good ? "" : "got " + text + ", expected NAME=SHARE with a share in (0, 1000000]";
}

std::string CheckShare(const std::string& text) {
  TenantShare tenant;
  return ParseShare(text, &tenant);
}

std::string CheckUrl(const std::string& url) {
  return ParseHttpEndpoint(url) ? "" : "got " + url + ", expected http://HOST:PORT or https://HOST:PORT";
}

std::string CheckObject(const std::string& text) {
  return Json::parse(text, nullptr, /*allow_exceptions=*/false).is_object()
             ? ""
             : "got " + text + ", expected a JSON object";
}

void AddLength(CLI::App& app, const std::string& what, LengthDistribution* length) {
  app.add_option("--" + what + "-tokens", length->median, "Median length of " + what + "s")
      ->check(CLI::Range(int64_t{1}, kMaxLength))
      ->capture_default_str();
  app.add_option("--" + what + "-sigma", length->sigma,
                 "Spread of the lengths: log-normal with this deviation of the logarithm; 0: all alike")
      ->check(CLI::Range(0.0, 3.0))
      ->capture_default_str();
  app.add_option("--max-" + what + "-tokens", length->max, "No " + what + " is longer")
      ->check(CLI::Range(int64_t{1}, kMaxLength))
      ->capture_default_str();
}

}  // namespace

LoadCommand::LoadCommand(CLI::App& app) : Command(&app) {
  app.add_option("--requests", options_.num_requests, "How many")
      ->check(CLI::Range(int64_t{1}, int64_t{10'000'000}))
      ->capture_default_str();
  auto* rate = app.add_option("--rate", options_.requests_per_second,
                              "Open loop: requests per second, arriving at random (Poisson), whatever is open")
                   ->check(CLI::Range(0.001, 100'000.0));
  app.add_option("--concurrency", options_.concurrency, "Closed loop: requests in flight")
      ->check(CLI::Range(int64_t{1}, int64_t{100'000}))
      ->capture_default_str()
      ->excludes(rate);
  AddLength(app, "prompt", &options_.prompt);
  AddLength(app, "output", &options_.output);
  app.add_option("--shared-prefix-tokens", options_.shared_prefix_tokens, "With which every prompt begins")
      ->check(CLI::Range(int64_t{0}, kMaxLength))
      ->capture_default_str();
  app.add_option("--tenant-share", tenant_shares_, "A tenant and its share of the requests; may be repeated")
      ->type_name("NAME=SHARE")
      ->check(CheckShare);
  app.add_option("--cancel-ratio", options_.cancel_ratio, "Share of the requests that are cancelled somewhere")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--ttft-limit", limits_.first_token_seconds, "A good request's first token comes within SECONDS")
      ->type_name("SECONDS")
      ->check(CLI::PositiveNumber);
  app.add_option("--tpot-limit", limits_.seconds_per_output_token, "and each later one takes SECONDS in the mean")
      ->type_name("SECONDS")
      ->check(CLI::PositiveNumber);
  app.add_option("--seed", options_.seed, "The same seed makes the same load")->capture_default_str();
  auto* http = app.add_option("--http", http_url_, "Drive the OpenAI-compatible server there (/v1/completions) instead")
                   ->type_name("URL")
                   ->check(CheckUrl);
  app.add_option("--http-vocab-size", http_vocab_size_, "Token ids of prompts are below; default: what the server says")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30))
      ->needs(http);
  app.add_option("--http-body", http_body_, "Fields that every request's body has beside its own")
      ->type_name("JSON")
      ->check(CheckObject)
      ->needs(http);
}

ExitCode LoadCommand::FindTarget(CommandContext& context, Target* target) {
  return http_url_ ? FindHttpTarget(context, target) : FindGrpcTarget(context, target);
}

ExitCode LoadCommand::FindGrpcTarget(CommandContext& context, Target* target) {
  if (const ExitCode code = Connect(context); code != ExitCode::kOk) {
    return code;
  }
  v1::ListModelsResponse models;
  if (const grpc::Status status = context.client.ListModels(models, context.cancel); !status.ok()) {
    return ReportFailure(status, context);
  }
  if (models.models_size() == 0 || models.models(0).vocab_size() < 1) {
    return ReportFailure({grpc::StatusCode::FAILED_PRECONDITION, "the server names no model with a vocabulary"},
                         context);
  }
  target->vocab_size = models.models(0).vocab_size();
  target->transport = std::make_unique<GrpcLoadTransport>(context.client);
  return ExitCode::kOk;
}

ExitCode LoadCommand::FindHttpTarget(CommandContext& context, Target* target) {
  HttpLoadOptions options = {.endpoint = *ParseHttpEndpoint(*http_url_),
                             .api_key = context.client.api_key(),
                             .timeout_seconds = context.client.timeout_seconds(),
                             .body = Json::parse(http_body_)};
  HttpModel model;
  if (const grpc::Status status = DescribeHttpModel(options.endpoint, options.api_key, &model); !status.ok()) {
    const ExitCode code = ReportFailure(status, context);
    return status.error_code() == grpc::StatusCode::UNAVAILABLE ? ExitCode::kCannotConnect : code;
  }
  if (!http_vocab_size_ && !model.vocab_size) {
    return ReportUsage("the server does not say how large its vocabulary is: --http-vocab-size has to", context);
  }
  options.body.emplace("model", model.name);
  target->vocab_size = http_vocab_size_ ? *http_vocab_size_ : *model.vocab_size;
  target->transport = std::make_unique<HttpLoadTransport>(std::move(options));
  return ExitCode::kOk;
}

ExitCode LoadCommand::Run(CommandContext& context) {
  Target target;
  if (const ExitCode code = FindTarget(context, &target); code != ExitCode::kOk) {
    return code;
  }
  options_.tenants.clear();
  for (const std::string& share : tenant_shares_) {
    ParseShare(share, &options_.tenants.emplace_back());
  }
  if (options_.tenants.empty()) {
    options_.tenants = {{.name = context.client.tenant(), .share = 1}};
  }
  const std::vector<PlannedRequest> plan = PlanLoad(options_, target.vocab_size);
  LoadRunner runner(target.transport.get());
  const auto show = [&](int64_t num_ended, int64_t num_open) {
    if (context.console.err_is_terminal) {
      context.console.err << "\r" << num_ended << " of " << plan.size() << " ended, " << num_open << " open   "
                          << std::flush;
    }
  };
  const LoadResult result = runner.Run(plan, options_, context.cancel, show);
  if (context.console.err_is_terminal) {
    context.console.err << "\n";
  }
  return Report(result, context);
}

ExitCode LoadCommand::Report(const LoadResult& result, CommandContext& context) const {
  const Json report = LoadReport(result, limits_);
  if (context.json) {
    PrintJson(report, context);
  } else {
    context.console.out << RenderLoadReport(report);
  }
  if (context.cancel.IsCancelled()) {
    return ReportFailure(grpc::Status::CANCELLED, context);
  }
  const bool failed = std::ranges::any_of(result.measurements, [](const LoadMeasurement& measurement) {
    return measurement.status != grpc::StatusCode::OK && !measurement.cancelled_by_client;
  });
  return failed ? ExitCode::kFailed : ExitCode::kOk;
}

}  // namespace quire
