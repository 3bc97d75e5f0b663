#pragma once

namespace quire {

// `quire-bench speed`: prefill and decode speed of a model. The exit code; argv[0] is the command's name.
int RunSpeedCommand(int argc, char** argv);

}  // namespace quire
