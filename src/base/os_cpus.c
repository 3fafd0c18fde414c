/* How many CPUs this process may use: affinity, cut by the cgroup's quota.
 * SPDX-License-Identifier: MIT */
#include "base/os_cpus.h"

#include "base/os.h"
#include "base/os_shield.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static unsigned long millicpus(long long quota, long long period)
{
    long long scaled;

    if (quota <= 0 || period <= 0)
        return 0;
    if (__builtin_mul_overflow(quota, 1000, &scaled)) /* more than there are */
        return ULONG_MAX;
    return (unsigned long)(scaled / period + (scaled % period != 0));
}

static unsigned long smaller_quota(unsigned long a, unsigned long b)
{
    if (!a || !b)
        return a ? a : b;
    return a < b ? a : b;
}

/* First line of directory/file into `line`; false if there is none. */
static bool read_line(char *line, int size, const char *directory, const char *file)
{
    char path[PATH_MAX];
    FILE *f;
    bool ok;

    if (snprintf(path, sizeof(path), "%s/%s", directory, file) >= (int)sizeof(path))
        return false;
    f = fopen(path, "re");
    if (!f)
        return false;
    ok = fgets(line, size, f) != NULL;
    fclose(f);
    return ok;
}

/* The quota of one directory, in either version's words. */
static unsigned long quota_of(const char *directory)
{
    char line[128];
    long long quota, period;

    if (read_line(line, sizeof(line), directory, "cpu.max"))
        return sscanf(line, "%lld %lld", &quota, &period) == 2 ? millicpus(quota, period) : 0;
    if (!read_line(line, sizeof(line), directory, "cpu.cfs_quota_us") ||
        sscanf(line, "%lld", &quota) != 1)
        return 0;
    if (!read_line(line, sizeof(line), directory, "cpu.cfs_period_us") ||
        sscanf(line, "%lld", &period) != 1)
        return 0;
    return millicpus(quota, period);
}

/* The tightest quota from base/path up to base. A container sees its own group as the root, whatever
 * the membership says, so directories that do not exist are passed over. */
static unsigned long quota_upward(const char *base, const char *path)
{
    char directory[PATH_MAX];
    size_t base_length = strlen(base);
    unsigned long tightest = 0;
    char *slash;

    snprintf(directory, sizeof(directory), "%s%s", base, strcmp(path, "/") ? path : "");
    for (;;) {
        tightest = smaller_quota(tightest, quota_of(directory));
        slash = strrchr(directory, '/');
        if (!slash || (size_t)(slash - directory) < base_length)
            return tightest;
        *slash = '\0';
    }
}

/* Whether `controllers` ("cpu,cpuacct") lists "cpu". */
static bool lists_cpu(const char *controllers)
{
    for (const char *at = controllers; (at = strstr(at, "cpu")); at += 3)
        if ((at == controllers || at[-1] == ',') && (at[3] == ',' || at[3] == '\0'))
            return true;
    return false;
}

unsigned long wr_os_quota_millicpus(const char *root, const char *membership)
{
    char line[PATH_MAX], base[PATH_MAX];
    unsigned long tightest = 0;
    FILE *f = fopen(membership, "re");

    if (!f)
        return 0;
    while (fgets(line, sizeof(line), f)) { /* id:controllers:path */
        char *controllers = strchr(line, ':');
        char *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path)
            continue;
        *path++ = '\0';
        controllers++;
        path[strcspn(path, "\n")] = '\0';
        if (!*controllers) { /* version 2 has one hierarchy and names no controllers */
            tightest = smaller_quota(tightest, quota_upward(root, path));
        } else if (lists_cpu(controllers)) {
            snprintf(base, sizeof(base), "%s/%s", root, controllers);
            tightest = smaller_quota(tightest, quota_upward(base, path));
            snprintf(base, sizeof(base), "%s/cpu", root);
            tightest = smaller_quota(tightest, quota_upward(base, path));
        }
    }
    fclose(f);
    return tightest;
}

unsigned wr_os_cpus_for(unsigned affinity, unsigned long quota_millicpus)
{
    unsigned long granted = quota_millicpus / 1000 + (quota_millicpus % 1000 != 0);

    if (affinity < 1)
        affinity = 1;
    return quota_millicpus && granted < affinity ? (unsigned)granted : affinity;
}

static unsigned affinity_cpus(void)
{
    /* The kernel's mask may be wider than cpu_set_t; then fall back to what is online. */
    cpu_set_t set;
    long online;

    if (sched_getaffinity(0, sizeof(set), &set) == 0)
        return (unsigned)CPU_COUNT(&set);
    online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (unsigned)online : 1;
}

unsigned wr_os_cpus(void)
{
    WR_SHIELDED;

    return wr_os_cpus_for(affinity_cpus(),
                          wr_os_quota_millicpus("/sys/fs/cgroup", "/proc/self/cgroup"));
}
