/* What is said at the end of a run, and its exit status.
 * SPDX-License-Identifier: MIT */
#include "cli/engine/verdict.h"

#include "cli/screen/say.h"

int verdict_status(const struct engine *engine)
{
    uint64_t failed =
        atomic_load(&engine->totals.failed) + atomic_load(&engine->totals.failed_before);
    bool incomplete = atomic_load(&engine->totals.not_run) || atomic_load(&engine->totals.halted) ||
                      !atomic_load(&engine->totals.all_read);

    if (atomic_load(&engine->wrong) || (atomic_load(&engine->interrupted) && incomplete))
        return 255;
    return failed > 100 ? 101 : (int)failed;
}

/* What stopping early has cost: ": 1 command was ended, 3 tasks were not run". */
static const char *what_is_missing(char *text, size_t size, uint64_t halted, uint64_t not_run)
{
    int n = 0;

    text[0] = 0;
    if (halted)
        n = snprintf(text, size, ": %llu %s ended", (unsigned long long)halted,
                     halted == 1 ? "command was" : "commands were");
    if (not_run)
        snprintf(text + n, size - (size_t)n, "%s %llu %s not run", n ? "," : ":",
                 (unsigned long long)not_run, not_run == 1 ? "task was" : "tasks were");
    return text;
}

void verdict_say(const struct engine *engine)
{
    char text[120];
    uint64_t failed = atomic_load(&engine->totals.failed),
             not_run = atomic_load(&engine->totals.not_run),
             before = atomic_load(&engine->totals.failed_before);

    if (failed)
        say("%llu of %llu failed; the first: %s", (unsigned long long)failed,
            (unsigned long long)atomic_load(&engine->totals.ended), engine->totals.first_failure);
    if (before)
        say("%llu %s failed in an earlier run, and %s not run again; --retry-failed runs %s",
            (unsigned long long)before, before == 1 ? "task" : "tasks",
            before == 1 ? "was" : "were", before == 1 ? "it" : "them");
    if (atomic_load(&engine->phase) != PHASE_RUNNING)
        say("stopped early%s",
            what_is_missing(text, sizeof(text), atomic_load(&engine->totals.halted), not_run));
}
