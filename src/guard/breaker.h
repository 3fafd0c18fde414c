/* Circuit breaker: the state machine of SEMANTICS 4.6. Pure: time and luck are arguments.
 * SPDX-License-Identifier: MIT */
#ifndef WR_GUARD_BREAKER_H
#define WR_GUARD_BREAKER_H

#include "guard/outcomes.h"

#include <weir/guard.h>

struct wr_breaker_settings {
    double failure_percent, slow_percent, open_growth, open_jitter;
    int64_t slow_ns, window, minimum, probes, open_ns, open_max_ns, half_open_ns;
    bool by_time, auto_half_open;
    weir_breaker_state half_open_then, initial;
};

/* What happened in a step, for events: at most a change by time, one by the call, and what was exceeded. */
struct wr_breaker_news {
    int count;
    struct {
        weir_breaker_state from, to;
    } change[3];
    bool too_many_failed, too_many_slow;
};

/*     outcomes.epoch == epoch of the state that fills them: OPEN keeps those of the state before
 *     state == HALF_OPEN  =>  given - ended <= probes - outcomes stored
 *     state == OPEN       =>  attempt >= 1 */
struct wr_breaker {
    struct wr_breaker_settings set;
    weir_breaker_state state;
    bool told_failed, told_slow; /* METRICS_ONLY: once each                                      */
    uint64_t epoch;              /* of the state                                                 */
    uint64_t filling;            /* epoch whose outcomes are in the window                       */
    uint64_t attempt;
    uint64_t not_permitted;
    int64_t probes_out;
    weir_time until;             /* OPEN: the wait is over after that; HALF_OPEN: its limit      */
    struct wr_outcomes outcomes; /* last: as long as the window                                  */
};

size_t wr_breaker_size(const struct wr_breaker_settings *set);
void wr_breaker_init(struct wr_breaker *b, const struct wr_breaker_settings *set, weir_time now);

/* How long the n-th opening in a row lasts, n from 1. */
int64_t wr_breaker_open_ns(const struct wr_breaker_settings *set, uint64_t attempt, uint64_t luck);

/* What a step needs besides the breaker. */
struct wr_breaker_step {
    weir_time now;
    /* Any number, for the jitter of an opening that this step causes */
    uint64_t luck;
    struct wr_breaker_news *news;
};

/* Lets time do its work: the limit on half open, and open to half open if that goes by itself. */
void wr_breaker_refresh(struct wr_breaker *b, const struct wr_breaker_step *step);

/* Whether a call may pass, after a refresh; changes nothing. `when`: else, from when on. */
bool wr_breaker_permits(const struct wr_breaker *b, weir_time now, weir_time *when);

/* Lets a call pass that wr_breaker_permits allowed. Answers the epoch, which the call's outcome has to name. */
uint64_t wr_breaker_pass(struct wr_breaker *b, const struct wr_breaker_step *step);

/* A call that passed in that epoch has ended. */
void wr_breaker_end(struct wr_breaker *b, const struct wr_breaker_step *step, uint64_t epoch,
                    bool failed, int64_t ns);

/* A call that passed in that epoch was not made after all, or does not count. */
void wr_breaker_undo(struct wr_breaker *b, uint64_t epoch);

/* An operator sets the state. False: no transition leads from the present state to `to`. `until`: the end of OPEN; 0: as
 * usual. */
bool wr_breaker_set(struct wr_breaker *b, const struct wr_breaker_step *step, weir_breaker_state to,
                    weir_time until);

/* An operator closes the breaker and empties its window. */
void wr_breaker_reset(struct wr_breaker *b, const struct wr_breaker_step *step);

/* Shares in percent; -1: too few calls. */
double wr_breaker_failed(const struct wr_breaker *b);
double wr_breaker_slow(const struct wr_breaker *b);

bool wr_breaker_is_whole(const struct wr_breaker *b, weir_time now);

#endif
