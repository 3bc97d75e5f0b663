#pragma once

namespace quire {

// Lets the process open as many files and connections as the system allows it: many systems start processes with a
// lower limit, made for programs that can't count beyond 1024.
void RaiseDescriptorLimit();

}  // namespace quire
