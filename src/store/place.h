// Where a store lies, and who is asking.
#pragma once

#include <string>

namespace gearshift {

// The nearest existing folder above `path` is on a network file system (NFS, SMB, Lustre, GPFS, BeeGFS, Ceph, AFS, 9p,
// FUSE): SQLite's locks and shared memory cannot be trusted there.
bool on_network_disk(const std::string& path);

// This process, so that a later one with its number is told apart: "PID-STARTTIME".
std::string this_process();
// False only where it is certain: a process of this host that is no longer there.
bool may_be_alive(const std::string& host, const std::string& process);
std::string this_host();

// Creates the folders above a file. False: not possible.
bool make_folders_for(const std::string& path);

}  // namespace gearshift
