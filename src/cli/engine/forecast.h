/* How fast tasks end, and how long the rest will take: pure, time is an argument.
 *
 * The rest takes as long as the rate so far says; but at least as long as the slowest group needs, whose own limit or
 * pace does not let it go faster, however free the machine is. Without the second part many groups of different sizes
 * look twice as fast as they are, since the small ones end first and leave their places empty.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_ENGINE_FORECAST_H
#define WR_CLI_ENGINE_FORECAST_H

#include <stdint.h>
#include <weir.h>

/* A rate: smoothed, so that three seconds fade a reading to half. `weight` says how much of a full one the readings
 * make so far, so that the first ones do not begin from nothing. */
struct pace {
    double rate, weight;
    uint64_t before; /* the count of the last reading */
};

/* `ended` tasks have ended in all, `ns` after the last reading; answers how many per second end lately. */
double pace_read(struct pace *pace, uint64_t ended, int64_t ns);
double pace_get(const struct pace *pace);

/* A group's commands: how many are left, and how long the ended ones took. */
struct work {
    uint64_t left;        /* tasks that have not ended                  */
    uint64_t running;     /* of these                                   */
    int64_t running_ns;   /* for how long those have run, together      */
    uint64_t ended;       /* attempts of commands that have ended       */
    int64_t busy_ns;      /* how long those ran, together               */
    int64_t limit;        /* commands at once; 0: none of its own       */
    int64_t per_start_ns; /* its pace: time between two starts; 0: none */
};

/* How many tasks the running ones count for, as far as they have come: two of four seconds are half a task. */
double forecast_parts(const struct work *work);

/* How long `left` more tasks take, of which `parts` are done, if all goes on as it went for took_ns, in which `ended`
 * and the parts were done; -1: no telling. */
int64_t forecast_by_rate(uint64_t left, double parts, uint64_t ended, int64_t took_ns);

/* How long the group takes at least, because of its own limit and pace; 0: no telling. */
int64_t forecast_at_least(const struct work *work);

/* For people: whole seconds, rounded up, and never none. */
int64_t forecast_seconds(int64_t ns);

#endif
