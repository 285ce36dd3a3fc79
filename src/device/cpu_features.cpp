#include "device/cpu_features.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <array>
#include <cstring>

namespace gearshift {

#if defined(__x86_64__)

namespace {

struct Registers {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

Registers cpuid(unsigned leaf, unsigned subleaf = 0) {
  Registers r;
  if (!__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx)) return {};
  return r;
}

bool bit(unsigned word, int index) { return ((word >> index) & 1U) != 0; }

// XCR0: which register state the operating system saves. REQUIRES: cpuid(1).ecx bit 27 (OSXSAVE).
uint64_t saved_state() {
  unsigned low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t{high} << 32) | low;
}

// Linux hands out the 8 KiB of tile state on request only (arch_prctl ARCH_REQ_XCOMP_PERM for XFEATURE_XTILEDATA).
bool tiles_granted() {
  constexpr long kRequestPermission = 0x1023;
  constexpr long kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

}  // namespace

// Bit positions: Intel SDM volume 2A, CPUID; volume 1, section 13.3 (XCR0).
Isa detect_isa() {
  const Registers basic = cpuid(1);
  const bool os_saves = bit(basic.ecx, 27);
  const uint64_t state = os_saves ? saved_state() : 0;
  constexpr uint64_t kYmm = 0x6, kZmm = 0xe6, kTiles = 0x60000;
  const Registers extended = cpuid(7);

  const bool fma = bit(basic.ecx, 12), f16c = bit(basic.ecx, 29);
  if ((state & kYmm) != kYmm || !fma || !f16c || !bit(extended.ebx, 5)) return Isa::portable;
  const bool f = bit(extended.ebx, 16), dq = bit(extended.ebx, 17), bw = bit(extended.ebx, 30),
             vl = bit(extended.ebx, 31);
  if ((state & kZmm) != kZmm || !f || !dq || !bw || !vl) return Isa::avx2;
  if (!bit(extended.ecx, 11)) return Isa::avx512;
  // With the permutations of bytes (VBMI) that kernels of this level use; the one line of processors that has dots of
  // bf16 without them (Cooper Lake) counts as the level below.
  if (!bit(cpuid(7, 1).eax, 5) || !bit(extended.ecx, 1)) return Isa::avx512_vnni;
  const bool amx_bf16 = bit(extended.edx, 22), amx_tile = bit(extended.edx, 24), amx_int8 = bit(extended.edx, 25);
  if ((state & kTiles) != kTiles || !amx_bf16 || !amx_tile || !amx_int8 || !tiles_granted()) return Isa::avx512_bf16;
  return Isa::amx;
}

std::string_view machine_arch() { return "x86_64"; }

std::string cpu_brand() {
  if (cpuid(0x80000000).eax < 0x80000004) return "";
  std::array<char, 49> text{};  // three leaves of 16 bytes and a terminator
  for (unsigned i = 0; i < 3; ++i) {
    const Registers r = cpuid(0x80000002 + i);
    std::memcpy(text.data() + 16 * i, &r, 16);
  }
  return text.data();
}

#elif defined(__aarch64__)

// Advanced SIMD is part of the base architecture.
Isa detect_isa() { return Isa::neon; }
std::string_view machine_arch() { return "aarch64"; }
std::string cpu_brand() { return ""; }

#else

Isa detect_isa() { return Isa::portable; }
std::string_view machine_arch() { return "unknown"; }
std::string cpu_brand() { return ""; }

#endif

}  // namespace gearshift
