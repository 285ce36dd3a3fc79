// Sentences about how the command is used.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "gearshift/base.h"

namespace gearshift {

// "gearshift: error: ..." on one line; the list that belongs to it follows, indented.
std::string error_lines(const ErrorInfo& error);

// "did you mean --batch?" for the names near `word`; "" where none is.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> names);
// `text` for one line of an error: control characters and broken UTF-8 escaped, cut where long.
std::string shown(std::string_view text);

// One option or verb in a help page: "  --batch M[,M...]   the batch sizes ...", wrapped at `width`.
std::string help_entry(std::string_view name, std::string_view help, size_t width);

}  // namespace gearshift
