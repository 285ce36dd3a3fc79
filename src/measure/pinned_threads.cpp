#include "measure/pinned_threads.h"

#include <omp.h>

#if defined(__linux__)
#include <sched.h>
#endif

#include <vector>

namespace gearshift {

#if defined(__linux__)

struct PinnedThreads::Cores {
  cpu_set_t allowed;
};

PinnedThreads::PinnedThreads(int threads) : before_(std::make_unique<Cores>()), threads_(threads) {
  if (sched_getaffinity(0, sizeof before_->allowed, &before_->allowed) != 0) return;
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &before_->allowed)) cores.push_back(core);
  }
  if (threads > static_cast<int>(cores.size())) return;
  bool all = true;
#pragma omp parallel num_threads(threads) reduction(&& : all)
  {
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(cores[static_cast<size_t>(omp_get_thread_num())], &own);
    all = sched_setaffinity(0, sizeof own, &own) == 0;
  }
  pinned_ = all;
}

PinnedThreads::~PinnedThreads() {
#pragma omp parallel num_threads(threads_)
  (void)sched_setaffinity(0, sizeof before_->allowed, &before_->allowed);
}

#else

struct PinnedThreads::Cores {};

PinnedThreads::PinnedThreads(int threads) : threads_(threads) {}
PinnedThreads::~PinnedThreads() = default;

#endif

}  // namespace gearshift
