// tiny_model_writer PATH: writes the tests' tiny model, for tests that are not written in C++.
#include <cstdio>
#include <exception>

#include "tests/support/tiny_model.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: tiny_model_writer PATH\n", stderr);
    return 2;
  }
  try {
    quire::testing::WriteTinyModel({}, argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tiny_model_writer: %s\n", error.what());
    return 1;
  }
  return 0;
}
