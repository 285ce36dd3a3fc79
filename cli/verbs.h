// The verbs: each one file, one line in the table.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "gearshift/pipeline.h"
#include "options.h"

namespace gearshift::cli {

// What the command line and the environment say, still as text.
struct Call {
  std::string model;  // "" for verbs without one
  Options options;
  bool quiet = false, verbose = false;
};

struct VerbSpec {
  Verb verb;
  std::string_view name;
  std::string_view argument;  // "MODEL", or ""
  std::string_view help;
  int (*run)(const Call& call);  // returns the exit code; nullptr: not available yet
};
std::span<const VerbSpec> all_verbs();
const VerbSpec* find_verb(std::string_view name);

int plan(const Call& call);
int run(const Call& call);
int verify(const Call& call);
int quantize(const Call& call);
int inspect(const Call& call);
int kernels(const Call& call);
int devices(const Call& call);
int doctor(const Call& call);

}  // namespace gearshift::cli
