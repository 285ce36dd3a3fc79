// How wide lines may be.
#pragma once

#include <cstddef>
#include <cstdio>

namespace gearshift {

// COLUMNS where it is set, else the terminal behind `stream`, else 100; between 40 and 400.
size_t terminal_width(std::FILE* stream);

}  // namespace gearshift
