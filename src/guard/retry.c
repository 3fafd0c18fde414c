/* Trying again: pauses that grow, within a budget.
 * SPDX-License-Identifier: MIT */
#include "base/options.h"
#include "base/os.h"
#include "guard/guard.h"
#include "guard/math.h"

#include <weir/wait.h>

enum { ATTEMPTS = 3, GROWTH_MAX = 1000 };

#define FIRST_NS INT64_C(100000000)
#define MAX_NS   INT64_C(30000000000)

static int load(weir_retry_options *opt, const weir_retry_options *theirs)
{
    int rc = wr_options_load(opt, sizeof(*opt), theirs);

    if (rc)
        return rc;
    opt->attempts = opt->attempts ? opt->attempts : ATTEMPTS;
    opt->first_ns = opt->first_ns ? opt->first_ns : FIRST_NS;
    opt->growth = opt->growth ? opt->growth : 2;
    opt->max_ns = opt->max_ns ? opt->max_ns : wr_max(MAX_NS, opt->first_ns);
    if (opt->first_ns < 0 || opt->max_ns < opt->first_ns || !(opt->growth >= 1) ||
        opt->growth > GROWTH_MAX || !(opt->jitter >= 0) || opt->jitter > 1 ||
        (opt->budget && opt->budget->kind != &wr_kind_budget))
        return WEIR_EINVAL;
    return 0;
}

static int64_t pause_after(uint32_t attempt, uint64_t luck, const weir_retry_options *opt)
{
    struct wr_backoff backoff = { .first_ns = opt->first_ns,
                                  .max_ns = opt->max_ns,
                                  .growth = opt->growth,
                                  .jitter = opt->jitter };

    return wr_backoff_ns(&backoff, attempt, luck);
}

int64_t weir_backoff(uint32_t attempt, uint64_t luck, const weir_retry_options *options)
{
    weir_retry_options opt;
    int rc = load(&opt, options);

    if (rc || attempt == 0)
        return rc ? rc : WEIR_EINVAL;
    return pause_after(attempt, luck, &opt);
}

static void earn(struct weir_guard *budget)
{
    if (!budget)
        return;
    do {
        if (wr_guard_lock(budget))
            return;
        wr_budget_earn(&wr_guard_write(budget)->as.budget);
    } while (!wr_guard_unlock(budget));
}

static bool is_worth_it(int error, const weir_retry_options *opt)
{
    if (opt->again)
        return opt->again(error, opt->again_arg);
    return error != WEIR_ECANCELED && error != WEIR_EINVAL && error != WEIR_ECLOSED;
}

static bool may_go_on(uint32_t made, const weir_retry_options *opt, weir_time next,
                      weir_time deadline)
{
    weir_permit token = WEIR_PERMIT;

    if (made >= opt->attempts || next > deadline)
        return false;
    return !opt->budget || weir_guard_enter(&token, opt->budget, WEIR_NOW_OR_NEVER) == 0;
}

int weir_retry(uint32_t *attempts, int (*fn)(void *arg), void *arg, weir_time deadline,
               const weir_retry_options *options)
{
    weir_retry_options opt;
    uint32_t made = 0;
    int rc = fn ? load(&opt, options) : WEIR_EINVAL;

    if (rc)
        return rc;
    earn(opt.budget);
    for (;;) {
        weir_time next;

        rc = fn(arg);
        made++;
        if (attempts)
            *attempts = made;
        if (rc >= 0 || !is_worth_it(rc, &opt))
            return rc;
        next = wr_sum(wr_os_now(), pause_after(made, opt.jitter > 0 ? wr_os_random() : 0, &opt));
        if (!may_go_on(made, &opt, next, deadline))
            return rc;
        if (weir_sleep(next))
            return WEIR_ECANCELED;
    }
}
