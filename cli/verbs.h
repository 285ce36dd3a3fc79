// The verbs: each one file, one line in the table.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "gearshift/pipeline.h"

namespace gearshift::cli {

// What the command line, the environment and gearshift.toml say, still as text.
struct Call {
  std::string model;               // the first of `words`; "" for verbs without one
  std::vector<std::string> words;  // of the command line, besides options
  Options options;
  bool quiet = false, verbose = false;
};

struct VerbSpec {
  Verb verb;
  std::string_view name;
  std::string_view argument;  // "MODEL", "PLAN PLAN", or ""
  size_t least, most;         // how many words it takes
  std::string_view help;
  int (*run)(const Call& call);  // returns the exit code; nullptr: not available yet
};
std::span<const VerbSpec> all_verbs();
const VerbSpec* find_verb(std::string_view name);

int plan(const Call& call);
int run(const Call& call);
int verify(const Call& call);
int tune(const Call& call);
int store(const Call& call);
int bench(const Call& call);
int quantize(const Call& call);
int inspect(const Call& call);
int kernels(const Call& call);
int devices(const Call& call);
int doctor(const Call& call);
int completion(const Call& call);
int diff(const Call& call);

}  // namespace gearshift::cli
