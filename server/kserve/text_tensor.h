#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace quire {

// The tensors of the Open Inference Protocol that hold text: one element of datatype BYTES.
inline constexpr std::string_view kTextInput = "text_input";
inline constexpr std::string_view kTextOutput = "text_output";
inline constexpr std::string_view kTextDatatype = "BYTES";

// How a request's tensor came, which the answer's follows.
struct TextTensorForm {
  bool is_raw = false;  // in raw_input_contents
  std::vector<int64_t> shape = {1};
};

// The only element of raw contents: its length in 4 bytes, little end first, and its bytes. INVALID_ARGUMENT names
// `field`.
absl::StatusOr<std::string> TextOfRaw(std::string_view field, std::string_view raw);
std::string RawOfText(std::string_view text);

}  // namespace quire
