/* Defaults and bounds of settings.
 * SPDX-License-Identifier: MIT */
#include "guard/settings.h"

#include "guard/math.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MS INT64_C(1000000)
#define S  (1000 * MS)

enum { WINDOW_MAX = 1000000, SECONDS_MAX = 86400, EXACT_MAX = 1000000 };

static int refuse(weir_message *message, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static int refuse(weir_message *message, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    if (message)
        vsnprintf(message->text, sizeof(message->text), format, args);
    va_end(args);
    return WEIR_EINVAL;
}

/* ---- kinds ----------------------------------------------------------------------------------- */

static const struct {
    weir_guard_mode first_mode, last_mode;
    int64_t limit, wait_ns; /* by default */
} kinds[] = {
    [WEIR_GUARD_BULKHEAD] = { .limit = 50 },
    [WEIR_GUARD_CONCURRENCY] = { .wait_ns = WEIR_FOREVER },
    [WEIR_GUARD_FREQUENCY] = { WEIR_WEIGHTED, WEIR_EXACT, 0, 0 },
    [WEIR_GUARD_RATE] = { WEIR_CYCLES, WEIR_SMOOTH, 100, 5 * S },
    [WEIR_GUARD_BREAKER] = { WEIR_BY_COUNT, WEIR_BY_TIME, 0, 0 },
    [WEIR_GUARD_MUTEX] = { .limit = 1 },
    [WEIR_GUARD_ADAPTIVE] = { WEIR_GRADIENT, WEIR_AIMD, 20, 0 },
    [WEIR_GUARD_BUDGET] = { .limit = 10 },
};

static int check_kind(weir_guard_kind kind, weir_message *message)
{
    if (kind >= WEIR_GUARD_BULKHEAD && kind <= WEIR_GUARD_BUDGET)
        return 0;
    return refuse(message, "kind is %d: use one of enum weir_guard_kind", (int)kind);
}

/* ---- defaults -------------------------------------------------------------------------------- */

#define OR(value, usual) ((value) ? (value) : (usual))

/* The settings that options ask for. The names for nothing, as WEIR_NO_CALLS, become 0. */
static void fill(struct wr_settings *s, const weir_guard_options *o)
{
    int64_t limit = OR(o->limit, kinds[o->kind].limit);

    memset(s, 0, sizeof(*s)); /* padding is compared, too */
    s->kind = o->kind;
    s->mode = OR(o->mode, kinds[o->kind].first_mode);
    s->limit = limit == WEIR_NO_CALLS ? 0 : limit;
    s->period_ns = OR(o->period_ns, o->kind == WEIR_GUARD_RATE ? 500 * MS : 3600 * S);
    s->burst = OR(o->burst, 1);
    s->initial_ns = o->initial_ns;
    s->wait_ns = o->wait_ns == WEIR_NO_WAIT ? 0 : OR(o->wait_ns, kinds[o->kind].wait_ns);
    s->waiters_max = o->waiters_max == WEIR_NO_WAITERS ? 0 : OR(o->waiters_max, WEIR_PERMITS_MAX);
    s->failure_percent = OR(o->failure_percent, 95);
    s->slow_percent = OR(o->slow_percent, 100);
    s->slow_ns = OR(o->slow_ns, 60 * S);
    s->window = OR(o->window, 100);
    s->minimum = OR(o->minimum, 100);
    s->probes = OR(o->probes, 10);
    s->open_ns = OR(o->open_ns, 60 * S);
    s->open_growth = OR(o->open_growth, 1);
    s->open_max_ns = OR(o->open_max_ns, wr_max(s->open_ns, 86400 * S));
    s->open_jitter = o->open_jitter;
    s->half_open_ns = OR(o->half_open_ns, s->open_ns);
    s->half_open_then = OR(o->half_open_then, WEIR_OPEN);
    s->initial = OR(o->initial, WEIR_CLOSED);
    s->auto_half_open = o->auto_half_open;
    s->limit_min = OR(o->limit_min, 1);
    s->limit_max = OR(o->limit_max, wr_max(1000, s->limit));
    s->latency_ns = OR(o->latency_ns, 1 * S);
    s->budget_percent = OR(o->budget_percent, 20);
}

/* ---- bounds ---------------------------------------------------------------------------------- */

static int in_range(weir_message *message, const char *what, int64_t value, int64_t low,
                    int64_t high)
{
    if (value >= low && value <= high)
        return 0;
    return refuse(message, "%s is %" PRId64 ": use %" PRId64 " to %" PRId64, what, value, low,
                  high);
}

/* The same for settings of which 0 asks for the default, and `none` is the name for nothing. */
static int in_range_or(weir_message *message, const char *what, int64_t value, int64_t high,
                       const char *none)
{
    if (value >= 0 && value <= high)
        return 0;
    return refuse(message, "%s is %" PRId64 ": use 1 to %" PRId64 ", %s, or 0 for the default",
                  what, value, high, none);
}

static int is_share(weir_message *message, const char *what, double value, double low, double high)
{
    if (value >= low && value <= high)
        return 0;
    return refuse(message, "%s is %g: use %g to %g", what, value, low, high);
}

static int check_times(const struct wr_settings *s, weir_message *m)
{
    int rc = in_range(m, "period_ns", s->period_ns, 1, INT64_MAX);

    rc = rc ? rc : in_range(m, "burst", s->burst, 1, WEIR_PERMITS_MAX);
    return rc ? rc : in_range(m, "initial_ns", s->initial_ns, 0, INT64_MAX / 8);
}

static int check_adaptive(const struct wr_settings *s, weir_message *m)
{
    int rc = in_range(m, "limit_min", s->limit_min, 1, WEIR_PERMITS_MAX);

    rc = rc ? rc : in_range(m, "limit_max", s->limit_max, s->limit_min, WEIR_PERMITS_MAX);
    return rc ? rc : in_range(m, "latency_ns", s->latency_ns, 1, INT64_MAX);
}

static int check_breaker(const struct wr_settings *s, weir_message *m)
{
    bool by_time = s->mode == WEIR_BY_TIME;
    int rc = is_share(m, "failure_percent", s->failure_percent, 1e-9, 100);

    rc = rc ? rc : is_share(m, "slow_percent", s->slow_percent, 1e-9, 100);
    rc = rc ? rc : in_range(m, "slow_ns", s->slow_ns, 1, INT64_MAX);
    rc = rc ? rc : in_range(m, "window", s->window, 1, by_time ? SECONDS_MAX : WINDOW_MAX);
    rc = rc ? rc : in_range(m, "minimum", s->minimum, 1, INT64_MAX);
    rc = rc ? rc : in_range(m, "probes", s->probes, 1, WINDOW_MAX);
    rc = rc ? rc : in_range(m, "open_ns", s->open_ns, MS, INT64_MAX);
    rc = rc ? rc : in_range(m, "open_max_ns", s->open_max_ns, s->open_ns, INT64_MAX);
    rc = rc ? rc : is_share(m, "open_growth", s->open_growth, 1, 1000);
    rc = rc ? rc : is_share(m, "open_jitter", s->open_jitter, 0, 1);
    rc = rc ? rc : in_range(m, "half_open_ns", s->half_open_ns, 1, INT64_MAX);
    if (!rc && s->half_open_then != WEIR_OPEN && s->half_open_then != WEIR_CLOSED)
        rc =
            refuse(m, "half_open_then is %d: use WEIR_OPEN or WEIR_CLOSED", (int)s->half_open_then);
    if (!rc &&
        (s->initial == WEIR_HALF_OPEN || s->initial < WEIR_CLOSED || s->initial > WEIR_FORCED_OPEN))
        rc = refuse(m, "initial is %d: use a state other than WEIR_HALF_OPEN", (int)s->initial);
    return rc;
}

/* Every setting, whether the kind has it or not: one that is out of range is a mistake, also where it has no effect. */
static int check_ranges(const struct wr_settings *s, weir_message *m)
{
    int rc = in_range_or(m, "limit", s->limit, WEIR_PERMITS_MAX, "WEIR_NO_CALLS");

    rc = rc ? rc : in_range_or(m, "wait_ns", s->wait_ns, INT64_MAX, "WEIR_NO_WAIT");
    rc = rc ? rc
            : in_range_or(m, "waiters_max", s->waiters_max, WEIR_PERMITS_MAX, "WEIR_NO_WAITERS");
    rc = rc ? rc : check_times(s, m);
    rc = rc ? rc : check_breaker(s, m);
    rc = rc ? rc : check_adaptive(s, m);
    return rc ? rc : is_share(m, "budget_percent", s->budget_percent, 0.01, 100);
}

static int check_rate(const struct wr_settings *s, weir_message *m)
{
    if (!s->limit)
        return refuse(m, "limit is WEIR_NO_CALLS: a rate needs 1 or more");
    if (s->mode != WEIR_SMOOTH && s->burst > 1)
        return refuse(m, "burst is %" PRId64 ": only a rate with .mode = WEIR_SMOOTH has one",
                      s->burst);
    if (s->mode == WEIR_SMOOTH &&
        (__int128)(s->burst + 1) * s->period_ns / s->limit > INT64_MAX / 8)
        return refuse(m, "the burst is too large: to earn it takes longer than 36 years");
    return 0;
}

static int check(struct wr_settings *s, weir_message *m)
{
    int rc;

    if (s->mode < kinds[s->kind].first_mode || s->mode > kinds[s->kind].last_mode)
        return refuse(m, "mode is %d: this kind of guard has no such mode", (int)s->mode);
    rc = check_ranges(s, m);
    if (rc)
        return rc;
    if (s->kind == WEIR_GUARD_MUTEX && s->limit != 1)
        return refuse(m, "limit is %" PRId64 ": a mutex has one holder", s->limit);
    if (s->kind == WEIR_GUARD_RATE)
        return check_rate(s, m);
    if (s->mode == WEIR_EXACT)
        return in_range(m, "limit", s->limit, 0, EXACT_MAX);
    if (s->mode == WEIR_BY_COUNT && s->minimum > s->window)
        s->minimum = s->window;
    return 0;
}

int wr_settings_load(struct wr_settings *set, const weir_guard_options *opt, weir_message *message)
{
    int rc = check_kind(opt->kind, message);

    if (rc)
        return rc;
    if (!opt->limit && (opt->kind == WEIR_GUARD_CONCURRENCY || opt->kind == WEIR_GUARD_FREQUENCY))
        return refuse(message, "limit is missing: this kind of guard has no default");
    if (opt->failure_count > 32 || opt->ignored_count > 32)
        return refuse(message, "more than 32 errors in a list: use judge");
    if ((opt->failure_count && !opt->failures) || (opt->ignored_count && !opt->ignored))
        return refuse(message, "a list of errors is NULL, but its count is not 0");
    if (opt->open_for && opt->open_ns)
        return refuse(message, "open_ns and open_for: use one of them");
    if ((unsigned)opt->other_errors > WEIR_IGNORE)
        return refuse(message, "other_errors is %d: use one of enum weir_call_result",
                      (int)opt->other_errors);
    fill(set, opt);
    return check(set, message);
}

/* ---- changes --------------------------------------------------------------------------------- */

int wr_settings_change(struct wr_settings *set, const struct wr_settings *from,
                       const weir_guard_options *opt, weir_message *message)
{
    weir_guard_options all = { .size = sizeof(all), .kind = from->kind, .mode = from->mode };
    int rc;

    if ((opt->kind && opt->kind != from->kind) || (opt->mode && opt->mode != from->mode) ||
        opt->window || opt->initial || opt->initial_ns || opt->failures || opt->ignored ||
        opt->judge || opt->drain_on || opt->open_for || opt->on_event)
        return refuse(message,
                      "kind, mode, window, initial, lists and functions cannot be changed");
    if (opt->lease_ns || opt->margin_ns || opt->when_away || opt->share || opt->keep_task ||
        opt->on_lost)
        return refuse(
            message,
            "lease_ns, margin_ns, when_away, share, keep_task and on_lost cannot be changed");
#define MERGE(name) all.name = opt->name ? opt->name : from->name;
    WR_SETTINGS(MERGE)
#undef MERGE
    if (!opt->limit)
        all.limit = from->limit ? from->limit : WEIR_NO_CALLS;
    if (!opt->wait_ns)
        all.wait_ns = from->wait_ns ? from->wait_ns : WEIR_NO_WAIT;
    if (!opt->waiters_max)
        all.waiters_max = from->waiters_max ? from->waiters_max : WEIR_NO_WAITERS;
    fill(set, &all);
    rc = check(set, message);
    if (!rc && from->mode == WEIR_EXACT && set->limit > from->limit)
        rc = refuse(message, "the limit of an exact window cannot be raised");
    if (!rc && from->kind == WEIR_GUARD_BREAKER && set->probes > wr_max(from->probes, from->window))
        rc = refuse(message, "more probes than the window has room for");
    return rc;
}

bool wr_settings_equal(const struct wr_settings *a, const struct wr_settings *b)
{
#define SAME(name) &&a->name == b->name
    return a->kind == b->kind && a->mode == b->mode WR_SETTINGS(SAME);
#undef SAME
}

/* Whether a setting is as expected. An expected 0 is any value; `none`, the name for nothing, is a setting of 0. */
static bool is_expected(int64_t value, int64_t expected, int64_t none)
{
    return !expected || value == (expected == none ? 0 : expected);
}

bool wr_settings_match(const struct wr_settings *set, const weir_guard_options *expected)
{
    weir_guard_options e = *expected;

    if ((e.kind && e.kind != set->kind) || (e.mode && e.mode != set->mode) ||
        !is_expected(set->limit, e.limit, WEIR_NO_CALLS) ||
        !is_expected(set->wait_ns, e.wait_ns, WEIR_NO_WAIT) ||
        !is_expected(set->waiters_max, e.waiters_max, WEIR_NO_WAITERS))
        return false;
    e.limit = e.wait_ns = e.waiters_max = 0;
#define MATCH(name) &&(!e.name || e.name == set->name)
    return true WR_SETTINGS(MATCH);
#undef MATCH
}

bool wr_settings_exclude(const struct wr_settings *set, int64_t n)
{
    if (set->kind == WEIR_GUARD_RATE)
        return set->mode == WEIR_SMOOTH && n > set->burst;
    if (set->kind == WEIR_GUARD_BREAKER || n == 1)
        return false;
    return n > (set->kind == WEIR_GUARD_ADAPTIVE ? set->limit_max : set->limit);
}
