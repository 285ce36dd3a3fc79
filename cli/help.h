// Help pages, from the tables of verbs and options.
#pragma once

#include <string>

#include "verbs.h"

namespace gearshift::cli {

std::string overview_help(size_t width);
std::string verb_help(const VerbSpec& verb, size_t width);
// docs/options.md: every option with its variable, key, default and verbs.
std::string options_page();

}  // namespace gearshift::cli
