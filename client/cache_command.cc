#include "client/cache_command.h"

#include <chrono>
#include <ostream>

#include "client/cache_table.h"
#include "client/cache_view.h"
#include "client/failure.h"

namespace quire {
namespace {

void Show(const v1::CacheStats& stats, const CommandContext& context) {
  if (context.json) {
    PrintJson(MessageJson(stats), context);
  } else {
    context.console.out << RenderCacheStats(stats) << std::flush;
  }
}

std::string WithClearedLines(const std::string& frame) {
  std::string text;
  for (const char letter : frame) text += letter == '\n' ? std::string("\x1b[K\n") : std::string(1, letter);
  return text;
}

double SecondsNow() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

CacheCommand::CacheCommand(CLI::App& app) : Command(&app) {
  watch_ = app.add_option("--watch", interval_seconds_, "Show again every SECONDS, in [0.05, 3600], until Ctrl-C")
               ->type_name("[SECONDS=1]")
               ->expected(0, 1)
               ->default_str("1");
  app.add_flag("--requests", requests_, "Show each tenant's and each request's share");
  app.add_flag("--config", config_, "Show how the cache is set up instead");
}

ExitCode CacheCommand::Run(CommandContext& context) {
  if (config_ && (requests_ || watch_->count() > 0)) {
    return ReportUsage("cache: --config goes with neither --watch nor --requests", context);
  }
  if (const ExitCode code = Connect(context); code != ExitCode::kOk) {
    return code;
  }
  const grpc::Status status =
      config_ ? ShowConfig(context) : (watch_->count() > 0 ? Watch(context) : ShowOnce(context));
  return status.ok() ? ExitCode::kOk : ReportFailure(status, context);
}

grpc::Status CacheCommand::ShowOnce(CommandContext& context) const {
  v1::CacheStats stats;
  const grpc::Status status = context.client.GetCacheStats(requests_, stats, context.cancel);
  if (status.ok()) {
    Show(stats, context);
  }
  return status;
}

grpc::Status CacheCommand::ShowConfig(CommandContext& context) const {
  v1::CacheConfig config;
  const grpc::Status status = context.client.GetCacheConfig(config, context.cancel);
  if (status.ok() && context.json) {
    PrintJson(MessageJson(config), context);
  } else if (status.ok()) {
    context.console.out << RenderCacheConfig(config);
  }
  return status;
}

grpc::Status CacheCommand::Watch(CommandContext& context) const {
  v1::WatchCacheStatsRequest request;
  request.set_interval_seconds(interval_seconds_);
  request.set_include_requests(requests_);
  std::ostream& out = context.console.out;
  const bool is_live = !context.json && context.console.out_is_terminal;
  CacheView view;
  bool is_first = true;
  return context.client.WatchCacheStats(
      request,
      [&](const v1::CacheStats& stats) {
        if (is_live) {
          // Written over the frame before, so that nothing flickers: home, each line to its end, the rest cleared.
          out << (is_first ? "\x1b[2J" : "") << "\x1b[H" << WithClearedLines(view.Frame(stats, SecondsNow()))
              << "\x1b[J" << std::flush;
        } else {
          if (!context.json && !is_first) out << "\n";
          Show(stats, context);
        }
        is_first = false;
        return out.good();
      },
      context.cancel);
}

}  // namespace quire
