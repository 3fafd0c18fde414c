/* A guard's settings: what options say, with defaults filled in, as cells keep it.
 * SPDX-License-Identifier: MIT */
#ifndef WR_GUARD_SETTINGS_H
#define WR_GUARD_SETTINGS_H

#include <weir/guard.h>

/* Every setting that is a number, in the order of the options. */
#define WR_SETTINGS(X) \
    X(limit)           \
    X(period_ns)       \
    X(burst)           \
    X(initial_ns)      \
    X(wait_ns)         \
    X(waiters_max)     \
    X(failure_percent) \
    X(slow_percent)    \
    X(slow_ns)         \
    X(window)          \
    X(minimum)         \
    X(probes)          \
    X(open_ns)         \
    X(open_growth)     \
    X(open_max_ns)     \
    X(open_jitter)     \
    X(half_open_ns)    \
    X(half_open_then)  \
    X(initial) X(auto_half_open) X(limit_min) X(limit_max) X(latency_ns) X(budget_percent)

struct wr_settings {
    weir_guard_kind kind;
    weir_guard_mode mode;
    int64_t limit; /* 0: no calls */
    int64_t period_ns, burst, initial_ns;
    int64_t wait_ns;     /* 0: look once */
    int64_t waiters_max; /* 0: none */
    double failure_percent, slow_percent;
    int64_t slow_ns, window, minimum, probes, open_ns;
    double open_growth;
    int64_t open_max_ns;
    double open_jitter;
    int64_t half_open_ns;
    weir_breaker_state half_open_then, initial;
    bool auto_half_open;
    int64_t limit_min, limit_max, latency_ns;
    double budget_percent;
};

/* Fills in defaults and checks. `message` may be NULL. WEIR_EINVAL. */
int wr_settings_load(struct wr_settings *set, const weir_guard_options *opt, weir_message *message);

/* The same, with what `opt` leaves out taken from `from`. WEIR_EINVAL also if it names what cannot change. */
int wr_settings_change(struct wr_settings *set, const struct wr_settings *from,
                       const weir_guard_options *opt, weir_message *message);

bool wr_settings_equal(const struct wr_settings *a, const struct wr_settings *b);

/* Whether a call for n permits could never enter, whatever is free. */
bool wr_settings_exclude(const struct wr_settings *set, int64_t n);

/* Whether all settings that `expected` names have those values. */
bool wr_settings_match(const struct wr_settings *set, const weir_guard_options *expected);

#endif
