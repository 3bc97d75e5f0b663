#include "engine/checkpoint/storage_type.h"

#include <array>
#include <format>
#include <string_view>

namespace quire {
namespace {

// By type number. Numbers whose type was withdrawn have the name it had.
constexpr std::array<std::string_view, 41> kGgmlTypeNames = {
    "F32",        "F16",        "Q4_0",       "Q4_1",  "Q4_2",     "Q4_3",     "Q5_0",     "Q5_1",    "Q8_0",
    "Q8_1",       "Q2_K",       "Q3_K",       "Q4_K",  "Q5_K",     "Q6_K",     "Q8_K",     "IQ2_XXS", "IQ2_XS",
    "IQ3_XXS",    "IQ1_S",      "IQ4_NL",     "IQ3_S", "IQ2_S",    "IQ4_XS",   "I8",       "I16",     "I32",
    "I64",        "F64",        "IQ1_M",      "BF16",  "Q4_0_4_4", "Q4_0_4_8", "Q4_0_8_8", "TQ1_0",   "TQ2_0",
    "IQ4_NL_4_4", "IQ4_NL_4_8", "IQ4_NL_8_8", "MXFP4", "NVFP4"};

}  // namespace

std::string_view ToString(StorageType type) {
  switch (type) {
    case StorageType::kF32: return "F32";
    case StorageType::kF16: return "F16";
    case StorageType::kBF16: return "BF16";
    case StorageType::kQ8_0: return "Q8_0";
    case StorageType::kQ4_0: return "Q4_0";
    case StorageType::kQ4_1: return "Q4_1";
  }
  return "unknown";
}

StorageBlock BlockOf(StorageType type) {
  switch (type) {
    case StorageType::kF32: return {1, 4};
    case StorageType::kF16: return {1, 2};
    case StorageType::kBF16: return {1, 2};
    case StorageType::kQ8_0: return {32, 34};
    case StorageType::kQ4_0: return {32, 18};
    case StorageType::kQ4_1: return {32, 20};
  }
  return {1, 1};
}

std::optional<StorageType> StorageTypeOfGgml(uint32_t ggml_type) {
  switch (ggml_type) {
    case 0: return StorageType::kF32;
    case 1: return StorageType::kF16;
    case 2: return StorageType::kQ4_0;
    case 3: return StorageType::kQ4_1;
    case 8: return StorageType::kQ8_0;
    case 30: return StorageType::kBF16;
    default: return std::nullopt;
  }
}

std::string GgmlTypeName(uint32_t ggml_type) {
  if (ggml_type < kGgmlTypeNames.size()) return std::string(kGgmlTypeNames[ggml_type]);
  return std::format("type {}, which is unknown", ggml_type);
}

std::string_view ReadableStorageTypes() { return "F32, F16, BF16, Q8_0, Q4_0, Q4_1"; }

}  // namespace quire
