/* The journal where there was no SQLite to build it with.
 * SPDX-License-Identifier: MIT */
#include "cli/engine/journal.h"
#include "cli/engine/journal_log.h"
#include "cli/screen/say.h"

static int refuse_it(void)
{
    say("this weir was built without SQLite, and has no journal: build it again with "
        "libsqlite3-dev");
    return SAY_WRONG;
}

int journal_open(struct journal **out, struct engine *engine)
{
    (void)engine;
    *out = NULL;
    return refuse_it();
}

int journal_meet(enum journal_verdict *verdict, struct task *task)
{
    (void)task;
    *verdict = JOURNAL_RUN;
    return 0;
}

void journal_add(struct journal *journal, struct task *task, void (*tell)(struct task *task))
{
    (void)journal;
    tell(task);
}

void journal_close(struct journal *journal)
{
    (void)journal;
}

int journal_log(const struct journal_log_options *opt)
{
    (void)opt;
    return refuse_it();
}
