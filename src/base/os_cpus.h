/* How many CPUs a process may use, from the files that say so.
 * SPDX-License-Identifier: MIT */
#ifndef WR_BASE_OS_CPUS_H
#define WR_BASE_OS_CPUS_H

/* CPUs granted by the CPU quota of the cgroup that `membership` (as /proc/self/cgroup) names, or any
 * above it, below `root` (as /sys/fs/cgroup); versions 1 and 2. In thousandths, so that half a CPU
 * is 500; 0 if there is no quota. */
unsigned long wr_os_quota_millicpus(const char *root, const char *membership);

/* Whole workers for that many CPUs: a part of one counts as one, since an idle worker costs nothing
 * and a missing one cannot use what was granted. */
unsigned wr_os_cpus_for(unsigned affinity, unsigned long quota_millicpus);

#endif
