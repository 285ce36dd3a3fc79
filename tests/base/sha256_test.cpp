#include "base/sha256.h"

#include <gtest/gtest.h>

#include <random>

namespace gearshift {
namespace {

std::string sha256(std::string_view text) {
  Sha256 hash;
  hash.add(text);
  return hash.hex();
}

// FIPS 180-4's examples (NIST, "Secure Hash Standard: Example Values").
TEST(Sha256, KnownAnswers) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256(std::string(1000000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesGiveTheHashOfTheWhole) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (size_t length = 0; length < 200; ++length) {
    std::string text(length, ' ');
    for (char& c : text) c = static_cast<char>(random());
    Sha256 hash;
    for (size_t done = 0; done < length;) {
      const size_t some = std::min<size_t>(length - done, random() % 70);
      hash.add(std::string_view(text).substr(done, some));
      done += some;
    }
    EXPECT_EQ(hash.hex(), sha256(text)) << length;
  }
}

}  // namespace
}  // namespace gearshift
