#pragma once

namespace quire {

// `quire-bench simulate`: a trace replayed in virtual time. The exit code; argv[0] is the command's name.
int RunSimulateCommand(int argc, char** argv);

}  // namespace quire
