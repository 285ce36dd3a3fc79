// SHA-256 (FIPS 180-4), for bundles that travel between machines.
#pragma once

#include <array>

#include "gearshift/base.h"

namespace gearshift {

class Sha256 {
 public:
  void add(std::string_view bytes);
  // 64 hexadecimal digits of everything added; nothing may be added afterwards.
  std::string hex();

 private:
  void block(const uint8_t* bytes);

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> buffer_{};
  size_t buffered_ = 0;
  uint64_t length_ = 0;  // bytes
};

}  // namespace gearshift
