// quire_fuzz: gives one way into the program random inputs. See tests/README.md.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "engine/base/log.h"
#include "tests/fuzz/fuzz_run.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/mutator.h"

// What an input may make the program take at once, where the sanitizer counts it.
extern "C" [[gnu::visibility("default")]] const char* __asan_default_options() {
  return "max_allocation_size_mb=512:handle_abort=1";
}

namespace quire::testing {
namespace {

struct Options {
  std::string target;
  std::string corpus = QUIRE_FUZZ_CORPUS;
  uint64_t seed = 1;
  uint64_t first = 0;
  uint64_t num_inputs = 10000;
  bool must_pass = false;
  std::string output;
};

std::vector<FuzzTargetKind> Targets() {
  return {ApiKeysTarget(), ChatTemplateTarget(), ConfigTarget(),    GgufTarget(),      GrpcTarget(),
          HttpTarget(),    OpenAiTarget(),       TokenizerTarget(), VocabularyTarget()};
}

FuzzTargetKind TargetOf(const std::string& name) {
  const std::vector<FuzzTargetKind> targets = Targets();
  return *std::ranges::find(targets, name, &FuzzTargetKind::name);
}

Options ParseOptions(int argc, char** argv) {
  Options options;
  std::vector<std::string> names;
  for (const FuzzTargetKind& target : Targets()) names.emplace_back(target.name);
  CLI::App app("Gives one way into the program random inputs, always the same ones.", "quire_fuzz");
  app.add_option("--target", options.target, "Which way.")->required()->check(CLI::IsMember(names));
  app.add_option("--inputs", options.num_inputs, "How many.")->capture_default_str();
  app.add_option("--seed", options.seed, "Another seed, other inputs.")->capture_default_str();
  app.add_option("--from", options.first, "The number of the first input.")->capture_default_str();
  app.add_option("--corpus", options.corpus, "Folder with a folder of files for each target.")->capture_default_str();
  app.add_flag("--must-pass", options.must_pass, "Fail unless some input passes every stage.");
  app.add_option("--output", options.output, "Write input --from to this file instead of running any.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error) == 0 ? 0 : 2);
  }
  return options;
}

// In the order of their names, whatever the file system's.
std::vector<std::string> ReadCorpus(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path());
  std::ranges::sort(paths);
  std::vector<std::string> files;
  for (const std::filesystem::path& path : paths) {
    std::ifstream file(path, std::ios::binary);
    files.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return files;
}

// False if the run must count as failed.
bool Report(const Options& options, std::span<const std::string_view> stages, const FuzzResult& result) {
  std::printf("%s: %llu inputs of seed %llu", options.target.c_str(),
              static_cast<unsigned long long>(result.num_inputs), static_cast<unsigned long long>(options.seed));
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    const double share = 100.0 * static_cast<double>(result.num_passed[stage]) /
                         static_cast<double>(std::max<uint64_t>(result.num_inputs, 1));
    std::printf("; %s %.2f %%", std::string(stages[stage]).c_str(), share);
  }
  std::printf("\n");
  if (result.finding) {
    std::printf("FOUND: input %llu: %s\n  once more: quire_fuzz --target %s --seed %llu --inputs 1 --from %llu\n",
                static_cast<unsigned long long>(result.finding->index), result.finding->what.c_str(),
                options.target.c_str(), static_cast<unsigned long long>(options.seed),
                static_cast<unsigned long long>(result.finding->index));
    return false;
  }
  if (options.must_pass && result.num_passed[stages.size() - 1] == 0) {
    std::printf("FAILED: no input passed every stage\n");
    return false;
  }
  return true;
}

int Main(int argc, char** argv) {
  const Options options = ParseOptions(argc, argv);
  const FuzzTargetKind target = TargetOf(options.target);
  const Mutator mutator(ReadCorpus(std::filesystem::path(options.corpus) / target.name), target.words, options.seed);
  if (!options.output.empty()) {
    std::ofstream(options.output, std::ios::binary) << mutator.Input(options.first);
    return 0;
  }
  log::SetLevel("error").IgnoreError();
  const auto on_progress = [](uint64_t next) {
    std::printf("input %llu\n", static_cast<unsigned long long>(next));
    std::fflush(stdout);
  };
  const FuzzResult result = RunFuzz(target.make, mutator, options.first, options.num_inputs, FuzzLimits{}, on_progress);
  return Report(options, target.stages, result) ? 0 : 1;
}

}  // namespace
}  // namespace quire::testing

int main(int argc, char** argv) {
  try {
    return quire::testing::Main(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "quire_fuzz: %s\n", error.what());
    return 2;
  }
}
