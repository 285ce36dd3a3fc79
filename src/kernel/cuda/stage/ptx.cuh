// The instructions that C++ has no word for, one function each. No host header, so that a run-time compiler takes it
// too.
#pragma once

#include <cstdint>

namespace gearshift::cuda {

#define GEARSHIFT_DEVICE static __device__ __forceinline__

GEARSHIFT_DEVICE uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

// ---- copies to shared memory ----

// 16 bytes, past the first-level cache. Both addresses on 16 bytes.
GEARSHIFT_DEVICE void copy_async(uint32_t to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0],[%1],16;" ::"r"(to), "l"(from) : "memory");
}
// The same, or 16 zero bytes.
GEARSHIFT_DEVICE void copy_async_or_zero(uint32_t to, const void* from, bool real) {
  const int bytes = real ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0],[%1],16,%2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
// 4 bytes, through the first-level cache.
GEARSHIFT_DEVICE void copy_async_word(uint32_t to, const void* from) {
  asm volatile("cp.async.ca.shared.global [%0],[%1],4;" ::"r"(to), "l"(from) : "memory");
}
GEARSHIFT_DEVICE void copy_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Until at most `Left` committed groups of this thread are under way.
template <int Left>
GEARSHIFT_DEVICE void copy_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Left) : "memory");
}

// ---- shared memory ----

GEARSHIFT_DEVICE uint4 load_shared4(uint32_t at) {
  uint4 v;
  asm volatile("ld.shared.v4.b32 {%0,%1,%2,%3},[%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(at));
  return v;
}
GEARSHIFT_DEVICE uint2 load_shared2(uint32_t at) {
  uint2 v;
  asm volatile("ld.shared.v2.b32 {%0,%1},[%2];" : "=r"(v.x), "=r"(v.y) : "r"(at));
  return v;
}
GEARSHIFT_DEVICE uint32_t load_shared1(uint32_t at) {
  uint32_t v;
  asm volatile("ld.shared.b32 %0,[%1];" : "=r"(v) : "r"(at));
  return v;
}
GEARSHIFT_DEVICE float load_shared_float(uint32_t at) { return __uint_as_float(load_shared1(at)); }
GEARSHIFT_DEVICE void store_shared4(uint32_t at, uint4 v) {
  asm volatile("st.shared.v4.b32 [%0],{%1,%2,%3,%4};" ::"r"(at), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}
GEARSHIFT_DEVICE void store_shared1(uint32_t at, uint32_t v) {
  asm volatile("st.shared.b32 [%0],%1;" ::"r"(at), "r"(v) : "memory");
}
GEARSHIFT_DEVICE void store_shared4(uint32_t at, const float* v) {
  store_shared4(at,
                make_uint4(__float_as_uint(v[0]), __float_as_uint(v[1]), __float_as_uint(v[2]), __float_as_uint(v[3])));
}
GEARSHIFT_DEVICE void load_matrix4(uint32_t* r, uint32_t at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3},[%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(at));
}

// ---- clusters and dependent launches: from sm_90 on; before that a cluster is one block and nothing is launched early
// ----

GEARSHIFT_DEVICE void store_in_cluster(uint32_t at, uint32_t rank, float v) {
#if __CUDA_ARCH__ >= 900
  uint32_t there;
  asm volatile("mapa.shared::cluster.u32 %0,%1,%2;" : "=r"(there) : "r"(at), "r"(rank));
  asm volatile("st.shared::cluster.f32 [%0],%1;" ::"r"(there), "f"(v) : "memory");
#endif
}
GEARSHIFT_DEVICE void cluster_sync() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}
// What comes after may read what the launch before this one wrote.
GEARSHIFT_DEVICE void wait_for_previous_launch() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
GEARSHIFT_DEVICE void let_next_launch_start() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// ---- arithmetic ----

// c[16,8] += a[16,16] * b[16,8]
GEARSHIFT_DEVICE void multiply_bf16(float* c, const uint32_t* a, uint32_t b0, uint32_t b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
// The same for fp16.
GEARSHIFT_DEVICE void multiply_f16(float* c, const uint32_t* a, uint32_t b0, uint32_t b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
GEARSHIFT_DEVICE uint32_t product_f16x2(uint32_t a, uint32_t b) {
  uint32_t d;
  asm("mul.rn.f16x2 %0,%1,%2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
}
GEARSHIFT_DEVICE uint32_t difference_f16x2(uint32_t a, uint32_t b) {
  uint32_t d;
  asm("sub.rn.f16x2 %0,%1,%2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
}
// Pairs of bf16. Before sm_90 a product is a fused multiply-add with -0, a difference one with the factor -1: the same
// bits.
GEARSHIFT_DEVICE uint32_t product_bf16x2(uint32_t a, uint32_t b) {
  uint32_t d;
#if __CUDA_ARCH__ >= 900
  asm("mul.rn.bf16x2 %0,%1,%2;" : "=r"(d) : "r"(a), "r"(b));
#else
  asm("fma.rn.bf16x2 %0,%1,%2,%3;" : "=r"(d) : "r"(a), "r"(b), "r"(0x80008000u));
#endif
  return d;
}
GEARSHIFT_DEVICE uint32_t difference_bf16x2(uint32_t a, uint32_t b) {
  uint32_t d;
#if __CUDA_ARCH__ >= 900
  asm("sub.rn.bf16x2 %0,%1,%2;" : "=r"(d) : "r"(a), "r"(b));
#else
  asm("fma.rn.bf16x2 %0,%1,%2,%3;" : "=r"(d) : "r"(b), "r"(0xBF80BF80u), "r"(a));
#endif
  return d;
}
// One half of a word in both halves; free where it is the operand of a multiplication.
GEARSHIFT_DEVICE uint32_t low_twice(uint32_t s) {
  uint32_t d;
  asm("{.reg .b16 l,h; mov.b32 {l,h},%1; mov.b32 %0,{l,l};}" : "=r"(d) : "r"(s));
  return d;
}
GEARSHIFT_DEVICE uint32_t high_twice(uint32_t s) {
  uint32_t d;
  asm("{.reg .b16 l,h; mov.b32 {l,h},%1; mov.b32 %0,{h,h};}" : "=r"(d) : "r"(s));
  return d;
}
// (a & Mask) | c in one instruction; the compiler makes two of it when both constants are immediates.
template <uint32_t Mask>
GEARSHIFT_DEVICE uint32_t and_or(uint32_t a, uint32_t c) {
  uint32_t d;
  asm("lop3.b32 %0,%1,%2,%3,0xEA;" : "=r"(d) : "r"(a), "n"(Mask), "r"(c));
  return d;
}
// A constant that stays in a register.
GEARSHIFT_DEVICE uint32_t in_register(uint32_t v) {
  uint32_t d;
  asm volatile("mov.b32 %0,%1;" : "=r"(d) : "r"(v));
  return d;
}
GEARSHIFT_DEVICE uint16_t to_bf16(float v) {
  uint16_t h;
  asm("cvt.rn.bf16.f32 %0,%1;" : "=h"(h) : "f"(v));
  return h;
}
GEARSHIFT_DEVICE uint16_t to_f16(float v) {
  uint16_t h;
  asm("cvt.rn.f16.f32 %0,%1;" : "=h"(h) : "f"(v));
  return h;
}
// Two values in a word, the first one low.
GEARSHIFT_DEVICE uint32_t pack_bf16(float low, float high) {
  uint32_t d;
  asm("cvt.rn.bf16x2.f32 %0,%1,%2;" : "=r"(d) : "f"(high), "f"(low));
  return d;
}
GEARSHIFT_DEVICE uint32_t pack_f16(float low, float high) {
  uint32_t d;
  asm("cvt.rn.f16x2.f32 %0,%1,%2;" : "=r"(d) : "f"(high), "f"(low));
  return d;
}
GEARSHIFT_DEVICE float from_f16(uint16_t h) {
  float v;
  asm("cvt.f32.f16 %0,%1;" : "=f"(v) : "h"(h));
  return v;
}
GEARSHIFT_DEVICE float from_bf16(uint16_t h) { return __uint_as_float(static_cast<uint32_t>(h) << 16); }

}  // namespace gearshift::cuda
