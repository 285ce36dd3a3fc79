// Words of the command line -> Call. Knows syntax only; what values mean is the library's business.
#pragma once

#include <string>
#include <vector>

#include "verbs.h"

namespace gearshift::cli {

// `words`: what follows the verb. With --help the call has the option "help" and nothing else is checked.
// Error usage: an unknown option, a missing value or MODEL, a word too many.
Result<Call> read_arguments(const VerbSpec& verb, const std::vector<std::string>& words);

// A bare --json becomes --json=-, and takes the next word as its file only behind MODEL.
std::vector<std::string> with_explicit_json(const std::vector<std::string>& words);

}  // namespace gearshift::cli
