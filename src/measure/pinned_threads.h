// Threads that stay on their cores while something is timed.
#pragma once

#include <memory>

namespace gearshift {

// Puts each thread of the OpenMP team that the calling thread works with on a core of its own, and gives back what it
// found when destroyed. A team that is larger than the cores this process may use is left alone. Until then the calling
// thread must ask for teams of this size only: threads made later would inherit its one core.
class PinnedThreads {
 public:
  explicit PinnedThreads(int threads);
  PinnedThreads(const PinnedThreads&) = delete;
  PinnedThreads& operator=(const PinnedThreads&) = delete;
  ~PinnedThreads();

  bool pinned() const { return pinned_; }

 private:
  struct Cores;
  std::unique_ptr<Cores> before_;
  int threads_;
  bool pinned_ = false;
};

}  // namespace gearshift
