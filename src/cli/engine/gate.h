/* The gate: --load, --mem-free and --pressure hold commands back while the machine has no room for more.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_ENGINE_GATE_H
#define WR_CLI_ENGINE_GATE_H

#include "base/lock.h"

#include <stdbool.h>
#include <stdint.h>
#include <weir.h>

struct gate_limits {
    double load;             /* processes that run or want to; 0: no limit       */
    int64_t memory;          /* bytes that must be available; 0: no limit        */
    double pressure;         /* per cent of time that tasks stalled; 0: no limit */
    const char *pressure_of; /* "cpu", "memory" or "io"                          */
    const char *proc;        /* where the kernel tells; NULL: /proc               */
};

struct gate {
    const struct gate_limits *limits;
    struct wr_lock lock;
    weir_time looked_at;
    bool closed;
    char why[120]; /* while closed */
};

/* Whether the machine can tell what the limits ask for. WEIR_EINVAL with a sentence. */
int gate_check(const struct gate_limits *limits, weir_message *message);

/* Whether commands are held back now; looks at the machine a few times a second at most. */
bool gate_is_closed(struct gate *gate);

/* Why, as it was found last: "3 processes run (--load 2)"; false: nothing is held back. */
bool gate_why(struct gate *gate, char *text, size_t size);

#endif
