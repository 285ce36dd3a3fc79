// Hopper's asynchronous instructions, one function each: barriers in shared memory, copies by tensor map, what frames
// products of warpgroups. Only code for sm_90a may call them.
#pragma once

#include "kernel/cuda/stage/ptx.cuh"

namespace gearshift::cuda {

// ---- barriers in shared memory: a phase ends when all arrivals and all announced bytes are there ----

GEARSHIFT_DEVICE void barrier_init(uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals));
}
GEARSHIFT_DEVICE void barrier_init_fence() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
GEARSHIFT_DEVICE void barrier_arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
GEARSHIFT_DEVICE void barrier_arrive_with_bytes(uint32_t barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
// Until the phase of this parity has ended.
GEARSHIFT_DEVICE void barrier_wait(uint32_t barrier, uint32_t parity) {
  uint32_t done;
  do {
    asm volatile("{.reg .pred p;\n mbarrier.try_wait.parity.shared::cta.b64 p,[%1],%2;\n selp.u32 %0,1,0,p;}"
                 : "=r"(done)
                 : "r"(barrier), "r"(parity)
                 : "memory");
  } while (done == 0);
}

// ---- copies ----

// The box of a 2-D tensor map at (column, row); its bytes count for the barrier. Outside the tensor are zeros.
GEARSHIFT_DEVICE void copy_box(uint32_t to, const void* map, int column, int row, uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0],[%1,{%2,%3}],[%4];" ::"r"(
          to),
      "l"(map), "r"(column), "r"(row), "r"(barrier)
      : "memory");
}
// `bytes` bytes in a row; both addresses and the size on 16 bytes.
GEARSHIFT_DEVICE void copy_line(uint32_t to, const void* from, int bytes, uint32_t barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0],[%1],%2,[%3];" ::"r"(to),
               "l"(from), "r"(bytes), "r"(barrier)
               : "memory");
}
// copy_box into two blocks of a cluster, at the same place and with the same barrier of each.
GEARSHIFT_DEVICE void copy_box_to_both(uint32_t to, const void* map, int column, int row, uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0],[%1,{%2,%3}],[%4],%5;" ::"r"(to),
      "l"(map), "r"(column), "r"(row), "r"(barrier), "h"(static_cast<uint16_t>(3))
      : "memory");
}
GEARSHIFT_DEVICE void prefetch_map(const void* map) { asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory"); }

// ---- warpgroups ----

// Registers per thread from here on; all warps of the warpgroup.
template <int Registers>
GEARSHIFT_DEVICE void give_up_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}
template <int Registers>
GEARSHIFT_DEVICE void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}
// Barrier of the 128 threads of one warpgroup; `id` from 1 on.
GEARSHIFT_DEVICE void warpgroup_barrier(int id) { asm volatile("bar.sync %0, 128;" ::"r"(id) : "memory"); }
// Registers written so far are visible to the products that follow.
GEARSHIFT_DEVICE void products_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
GEARSHIFT_DEVICE void products_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Until at most `Left` committed groups are under way.
template <int Left>
GEARSHIFT_DEVICE void products_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Left) : "memory");
}
// A sum after products_wait: keeps the compiler from using it before.
GEARSHIFT_DEVICE void settle(float& sum) { asm volatile("" : "+f"(sum)::"memory"); }
GEARSHIFT_DEVICE void settle(int32_t& sum) { asm volatile("" : "+r"(sum)::"memory"); }
// A matrix of rows of 128 bytes in shared memory, swizzled as tensor maps do it, from `at` (on 1024 bytes) on.
GEARSHIFT_DEVICE uint64_t swizzled_rows(uint32_t at) {
  return (uint64_t{1} << 62) | (uint64_t{64} << 32) | (uint64_t{1} << 16) | (at >> 4);
}
// The transpose of an 8x8 matrix of 16-bit elements that the warp holds.
GEARSHIFT_DEVICE uint32_t transpose8(uint32_t v) {
  uint32_t d;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0,%1;" : "=r"(d) : "r"(v));
  return d;
}
GEARSHIFT_DEVICE uint32_t bf16_pair(float low, float high) {
  uint32_t d;
  asm("cvt.rn.bf16x2.f32 %0,%1,%2;" : "=r"(d) : "f"(high), "f"(low));
  return d;
}
GEARSHIFT_DEVICE uint32_t f16_pair(float low, float high) {
  uint32_t d;
  asm("cvt.rn.f16x2.f32 %0,%1,%2;" : "=r"(d) : "f"(high), "f"(low));
  return d;
}
GEARSHIFT_DEVICE uint32_t pair_16bit(bool half, float low, float high) {
  return half ? f16_pair(low, high) : bf16_pair(low, high);
}

// ---- bytes and halves ----

GEARSHIFT_DEVICE uint32_t load_shared_u16(uint32_t at) {
  uint32_t v;
  asm volatile("ld.shared.u16 %0,[%1];" : "=r"(v) : "r"(at));
  return v;
}
// Bytes 0 and 1 of a word as numbers of 16 bits each, signed.
GEARSHIFT_DEVICE uint32_t widened_bytes(uint32_t v) {
  uint32_t d;
  asm("prmt.b32 %0,%1,0,0x9180;" : "=r"(d) : "r"(v));
  return d;
}
// The smaller of each pair of unsigned halves.
GEARSHIFT_DEVICE uint32_t min_u16x2(uint32_t a, uint32_t b) {
  uint32_t d;
  asm("min.u16x2 %0,%1,%2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
}

// ---- between blocks ----

GEARSHIFT_DEVICE uint32_t cluster_rank() {
  uint32_t rank;
  asm volatile("mov.u32 %0,%%cluster_ctarank;" : "=r"(rank));
  return rank;
}
// The same place in the shared memory of another block of the cluster.
GEARSHIFT_DEVICE uint32_t in_block(uint32_t at, uint32_t rank) {
  uint32_t there;
  asm volatile("mapa.shared::cluster.u32 %0,%1,%2;" : "=r"(there) : "r"(at), "r"(rank));
  return there;
}
// `at`: of in_block.
GEARSHIFT_DEVICE void store_there(uint32_t at, float4 v) {
  asm volatile("st.shared::cluster.v4.f32 [%0],{%1,%2,%3,%4};" ::"r"(at), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w)
               : "memory");
}
// Orders nothing but what the arriving thread has read. With .release.cluster the compiler adds a fence of the whole
// device, which costs more than the stage.
GEARSHIFT_DEVICE void barrier_arrive_there(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}
GEARSHIFT_DEVICE void publish(uint64_t* flag, uint64_t value) {
  asm volatile("st.release.gpu.global.u64 [%0],%1;" ::"l"(flag), "l"(value) : "memory");
}
GEARSHIFT_DEVICE void wait_for(const uint64_t* flag, uint64_t value) {
  uint64_t found;
  do {
    asm volatile("ld.acquire.gpu.global.u64 %0,[%1];" : "=l"(found) : "l"(flag) : "memory");
  } while (found != value);
}

}  // namespace gearshift::cuda
