/* locks: lock acquisitions per task, by a program whose library counts them; see bench/locks/main.c.
 * SPDX-License-Identifier: MIT */
#include "bench.h"

#include <limits.h>
#include <unistd.h>

void bench_locks(struct bench_out *out)
{
    char path[PATH_MAX];

    fflush(out->to);
    if (dup2(fileno(out->to), STDOUT_FILENO) < 0 ||
        !bench_program_path(path, sizeof(path), 0, "weir-bench-locks"))
        bench_die("locks: there is no way to run another program");
    execl(path, path, (char *)NULL);
    bench_die("locks: %s does not run: make bench builds it", path);
}
