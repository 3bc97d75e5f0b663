#include "client/cache_command.h"

#include <ostream>

#include "client/cache_table.h"
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

}  // namespace

CacheCommand::CacheCommand(CLI::App& app) : Command(&app) {
  watch_ = app.add_option("--watch", interval_seconds_, "Show again every SECONDS, in [0.05, 3600], until Ctrl-C")
               ->type_name("[SECONDS=1]")
               ->expected(0, 1)
               ->default_str("1");
  app.add_flag("--requests", requests_, "Show each request's share");
}

ExitCode CacheCommand::Run(CommandContext& context) {
  if (const ExitCode code = Connect(context); code != ExitCode::kOk) {
    return code;
  }
  grpc::Status status;
  if (watch_->count() > 0) {
    status = Watch(context);
  } else {
    v1::CacheStats stats;
    status = context.client.GetCacheStats(requests_, stats, context.cancel);
    if (status.ok()) {
      Show(stats, context);
    }
  }
  return status.ok() ? ExitCode::kOk : ReportFailure(status, context);
}

grpc::Status CacheCommand::Watch(CommandContext& context) const {
  v1::WatchCacheStatsRequest request;
  request.set_interval_seconds(interval_seconds_);
  request.set_include_requests(requests_);
  std::ostream& out = context.console.out;
  bool is_first = true;
  return context.client.WatchCacheStats(
      request,
      [&](const v1::CacheStats& stats) {
        if (!context.json && context.console.out_is_terminal) {
          out << "\x1b[H\x1b[J";  // from the top of a cleared screen
        } else if (!context.json && !is_first) {
          out << "\n";
        }
        is_first = false;
        Show(stats, context);
        return out.good();
      },
      context.cancel);
}

}  // namespace quire
