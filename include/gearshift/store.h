// What was measured and what was proven, right or wrong, per environment: rows that outlive the process. Decides nothing; names
// kernels, layouts and tactics by text, never by index.
//
// A store is one SQLite file. One that is damaged, partial, foreign, newer, read-only or missing is a warning and a miss,
// never an error. On a network file system the file is only read; each process appends to a journal of its own beside it.
#pragma once

#include <memory>

#include "gearshift/base.h"

namespace gearshift {

// All that could change a number or a time besides the kernel and the layer. Another value is another key: rows of another
// environment are kept for it and do not apply here.
struct RunEnvironment {
  std::string device;        // "NVIDIA H200", the CPU's model
  std::string arch;          // "sm_90", "x86_64+avx512_bf16"
  int64_t cores = 0;         // multiprocessors, or CPU cores this process may use
  int64_t memory_bytes = 0;  // of a GPU; 0 for CPUs, whose share of memory changes from job to job
  std::string limits;        // power limit, partition: "400 W", "MIG 3g.71gb"; "": none
  std::string driver, runtime, libraries;
  bool operator==(const RunEnvironment&) const = default;
};

enum class EntryKind : uint8_t {
  measurement,  // a time at one batch size (m_min = m_max)
  proof,        // right numbers at one batch size
  quarantine    // wrong numbers, a crash or a hang in a range of batch sizes
};
std::string_view name(EntryKind kind);
std::optional<EntryKind> parse_entry_kind(std::string_view name);

// One row. Everything up to m_max is its key.
struct StoreEntry {
  EntryKind kind = EntryKind::measurement;
  RunEnvironment environment;
  std::string kernel;
  int64_t kernel_version = 1;
  std::string tactic;              // "": the kernel has none
  std::string layout;              // name/version: "nvfp4_rows16_dot4/1"
  std::string layer_class;         // family, n, k, parts, scheme, dtypes, bias: layer_class() of layer.h
  std::string dtype;               // activations: "BF16"
  std::string mode;                // measurements: "graph" or "eager"; "" otherwise
  int64_t threads = 0;             // of CPU kernels; 0: any (quarantines)
  int64_t m_min = 1, m_max = 0;    // m_max 0: no bound

  double median_us = 0, p10_us = 0, p90_us = 0;  // measurements
  double error_us = 0;                           // standard error of the median; 0: not known
  int64_t samples = 0;
  double worst_row = 0, tolerance = 0;           // proofs
  std::string reason;                            // quarantines: "row 3 is 0.12 off where 0.004 is allowed"
  std::string evidence;                          // how it was found: seed, batch size, signal
  int64_t taken = 0;                             // seconds since 1970

  bool operator==(const StoreEntry&) const = default;
};

// A kernel that gave wrong numbers for a layer class in a range of batch sizes; never chosen there again.
struct Quarantine {
  std::string kernel;
  int kernel_version = 1;
  std::string layer_class;
  std::string dtype;                 // activations: "BF16"
  int64_t m_min = 1, m_max = 0;      // m_max 0: no bound
  std::string reason;                // "row 3 is 0.12 off where 0.004 is allowed (m = 17)"
  std::string tactic = {};           // "": the kernel, whatever its tactic
};

// A time of one kernel on one layer class at one batch size.
struct MeasuredTime {
  std::string kernel;
  int kernel_version = 1;
  std::string tactic, layout, layer_class, dtype, mode;
  int threads = 0;
  int64_t m = 1;
  double median_us = 0, p10_us = 0, p90_us = 0;
  int samples = 0;
  double error_us = 0;  // standard error of the median; 0: not known
};

// A batch size at which a kernel was right.
struct ProvenBatch {
  std::string kernel;
  int kernel_version = 1;
  std::string layout, layer_class, dtype;
  int threads = 0;
  int64_t m = 1;
  std::string tactic = {};
};

// The rows of one environment: what planning reads.
struct Store {
  std::vector<Quarantine> quarantines;
  std::vector<MeasuredTime> times;
  std::vector<ProvenBatch> proofs;
};

// Where a store's file lies, which decides how it is written.
enum class Disk : uint8_t { ask, local, network };

struct StoreCheck {
  int64_t rows = 0, applying = 0;         // all valid rows, and those of the given environment
  int64_t bad_rows = 0;                   // unreadable ones, which count as absent
  std::vector<std::string> elsewhere;     // "12 rows of NVIDIA H200 ...: driver 570.1, here 580.2"
  std::vector<std::string> problems;      // what is wrong with the file; empty: nothing
};

// A store's file. Not safe for use from two threads at once; any number of processes may have it open.
class StoreFile {
 public:
  // "" or "off": nothing is read and nothing kept. Never fails: what can't be used is empty and says why in warnings().
  explicit StoreFile(std::string path = "", Disk disk = Disk::ask);
  StoreFile(StoreFile&&) noexcept;
  StoreFile& operator=(StoreFile&&) noexcept;
  ~StoreFile();

  bool off() const;
  const std::string& path() const;
  // Why rows could not be read or kept; one line each, each once.
  const std::vector<std::string>& warnings() const;

  // Every valid row, ordered by key.
  std::vector<StoreEntry> entries();
  // The rows that apply here.
  Store read(const RunEnvironment& environment);
  // Adds rows, all or none. Of two with one key the stronger one stays: more samples, then the later one, then the larger
  // values, so that the order of writing does not matter. Waits at most a second for other processes; rows that could not
  // be written are tried again with the next ones. False: they are not on disk now.
  bool write(std::vector<StoreEntry> rows);

  // A piece of work that one process at a time should do. True: it is ours until release() or the end of the process.
  // Without a shared file everyone does everything.
  bool claim(const std::string& work);
  void release(const std::string& work);

  StoreCheck check(const RunEnvironment& environment);
  // A bundle: JSON lines, the last one with the SHA-256 of those before it.
  Result<int64_t> export_to(const std::string& file);
  // Adds the rows of a bundle, or those of another store. Bundles are untrusted: nothing is taken from one that is cut
  // short, changed, or holds a row that makes no sense. Error runtime. Importing twice changes nothing.
  Result<int64_t> import_from(const std::string& file);
  Result<int64_t> merge_from(const std::string& store);
  // Removes rows for which `useless` is true, and unreadable ones; returns how many.
  Result<int64_t> prune(const std::vector<StoreEntry>& useless);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// $XDG_STATE_HOME/gearshift/store.sqlite, by default below ~/.local/state; "off" where there is no home. Relative paths in
// variables are ignored, as the XDG specification asks.
std::string default_store_path(const char* xdg_state_home, const char* home);

}  // namespace gearshift
