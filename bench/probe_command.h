#pragma once

namespace quire {

// `quire-bench probe`: what this machine can do at most. The exit code; argv[0] is the command's name.
int RunProbeCommand(int argc, char** argv);

}  // namespace quire
