/* A ledger and its arrays, as the tests of the ledger write them.
 * SPDX-License-Identifier: MIT */
#ifndef WR_TESTS_LEDGER_BOOKS_H
#define WR_TESTS_LEDGER_BOOKS_H

#include "limits/ledger.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { D = 5 }; /* most domains in a test */

struct books {
    struct wr_ledger l;
    struct wr_share share[D];
    struct wr_loan loan[WR_RESOURCES * D * D];
};

/* A domain as the tests write it. */
struct given {
    uint32_t slots, places;
    bool slots_reserved, places_reserved;
    uint32_t lend_max, places_lend_max;
};

static inline void books_init(struct books *b, uint32_t total, uint32_t places, uint32_t count,
                              const struct given *given)
{
    memset(b, 0, sizeof(*b));
    b->l = (struct wr_ledger){
        .count = count, .total = total, .places_total = places, .share = b->share, .loan = b->loan
    };
    b->l.lending = (struct wr_lending){
        .on = true, .low = 30, .high = 90, .hold = 1, .headroom = 25, .step = WR_INF
    };
    for (uint32_t d = 0; d < count; d++)
        b->share[d] = (struct wr_share){
            .slots = { .amount = d ? given[d].slots : 0, .lend_max = given[d].lend_max },
            .places = { .amount = d ? given[d].places : 0, .lend_max = given[d].places_lend_max },
            .slots_reserved = d && given[d].slots_reserved,
            .places_reserved = d && given[d].places_reserved,
            .weight = 1
        };
    wr_ledger_init(&b->l);
}

/* Units that tasks of d have. */
static inline uint32_t used(const struct books *b, uint32_t d)
{
    return b->share[d].own + b->share[d].borrowed + b->share[d].strays;
}

#endif
