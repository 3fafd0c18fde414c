/* The numbers of a policy, in tables: the values that each field may have, the value that zero stands for, and the text for any
 * other value.
 * SPDX-License-Identifier: MIT */
#include "policy/policy.h"
#include "runtime/runtime.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#define LIMIT_RANGE "use 1 to 4294967294"
#define SPAN_RANGE  "use 1 to 31536000000 (a year)"
#define NO_LENDER   "use WEIR_MAX: the default domain has no domain to borrow from"
#define REST        "use 0: the default domain has what the other domains leave"

static_assert(WEIR_LIMIT_MAX == 4294967294 && WEIR_SPAN_MAX_MS == 31536000000 &&
                  WEIR_WEIGHT_MAX == 1000 && WR_WORKERS_MAX == 4096 && WR_THREADS_MAX == 65536 &&
                  WR_THREADS_DEFAULT == 256 && WR_MS_MAX == 86400000 && WR_STALL_MS_DEFAULT == 10 &&
                  WR_STACK_MIN == 16384 && WR_STACK_MAX == 1 << 30 && WR_STACK_DEFAULT == 131072,
              "the sentences below say these in numbers");

/* Ranges of several fields: least, most, two other values that are fine, and the text for all others. */
#define RANGE(name, ...) static const struct wr_range name = { __VA_ARGS__ }
RANGE(a_limit, 1, WEIR_LIMIT_MAX, 1, WEIR_NO_LIMIT,
      LIMIT_RANGE ", WEIR_NO_LIMIT, or 0 for the default");
RANGE(a_queue, 1, WEIR_LIMIT_MAX, WEIR_NO_QUEUE, WEIR_NO_LIMIT,
      LIMIT_RANGE ", WEIR_NO_LIMIT, WEIR_NO_QUEUE, or 0 for the default");
RANGE(a_loan, 1, WEIR_LIMIT_MAX, WEIR_NONE, WEIR_NO_LIMIT, LIMIT_RANGE ", or WEIR_NONE");
RANGE(a_span, 1, WEIR_SPAN_MAX_MS, 1, WEIR_NO_LIMIT,
      SPAN_RANGE ", WEIR_NO_LIMIT, or 0 for the default");
RANGE(a_headroom, 1, 100, WEIR_NONE, 100, "use 1 to 100, WEIR_NONE, or 0 for 25");
RANGE(a_weight, 1, WEIR_WEIGHT_MAX, 1, WEIR_WEIGHT_MAX, "use 1 to 1000");
RANGE(a_carrier, 0, WEIR_THREADS, 0, 0, "use WEIR_WORKERS or WEIR_THREADS");
RANGE(a_share, 0, WEIR_RESERVED, 0, 0, "use WEIR_MAX or WEIR_RESERVED");

/* A field of a struct; a range of its own, or a choice, of which 0 is the first. */
#define FIELD(type, path)       #path, offsetof(type, path), sizeof(((type *)NULL)->path)
#define FROM(least, most, text) (&(const struct wr_range){ least, most, least, most, text })
#define CHOICE(last, text)      (&(const struct wr_range){ 0, last, 0, 0, text })
#define SPAN(type, path)              \
    {                                 \
        FIELD(type, path), 0, &a_span \
    }
#define DEADLINES(type, path) \
    SPAN(type, path.wait_ms), SPAN(type, path.run_ms), SPAN(type, path.total_ms)

#define P weir_policy
const struct wr_field wr_policy_fields[] = {
    { FIELD(P, inflight_max), WEIR_NO_LIMIT, &a_limit },
    { FIELD(P, queue_max), WEIR_NO_LIMIT, &a_queue },
    { FIELD(P, group_limit), 1, &a_limit },
    { FIELD(P, group_inflight_max), WEIR_NO_LIMIT, &a_limit },
    { FIELD(P, group_queue_max), WEIR_NO_LIMIT, &a_queue },
    { FIELD(P, rejection), 0, CHOICE(WEIR_BLOCK, "use one of enum weir_rejection") },
    { FIELD(P, idle_evict_ms), 0, FROM(1, WEIR_SPAN_MAX_MS, SPAN_RANGE ", or 0 for never") },
    { FIELD(P, totals_max), 1000, FROM(1, 10000000, "use 1 to 10000000, or 0 for 1000") },
    { FIELD(P, queue_places), WEIR_NO_LIMIT, &a_queue },
    { FIELD(P, lending.period_ms), 0,
      FROM(1, WEIR_SPAN_MAX_MS, SPAN_RANGE ", or 0 for no lending") },
    { FIELD(P, lending.low_percent), 30, FROM(1, 100, "use 1 to 100, or 0 for 30") },
    { FIELD(P, lending.high_percent), 90, FROM(1, 100, "use 1 to 100, or 0 for 90") },
    { FIELD(P, lending.hold), 3, FROM(1, 1000000, "use 1 to 1000000, or 0 for 3") },
    { FIELD(P, lending.headroom_percent), 25, &a_headroom },
    { FIELD(P, lending.step), WEIR_NO_LIMIT, &a_limit },
    DEADLINES(P, deadlines),
    DEADLINES(P, deadlines_max),
    { FIELD(P, overdue), 0, CHOICE(WEIR_REPLACE, "use one of enum weir_overdue") },
    { FIELD(P, overdue_max), 64, FROM(1, INT32_MAX, "use 1 to 2147483647, or 0 for 64") },
    { FIELD(P, stall_policy), 0,
      CHOICE(WEIR_STALL_TO_THREADS, "use one of enum weir_stall_policy") },
    { FIELD(P, stall_max), 1, FROM(1, INT32_MAX, "use 1 to 2147483647, or 0 for 1") },
    { FIELD(P, workers), 0, FROM(1, WR_WORKERS_MAX, "use 1 to 4096, or 0 for one per CPU") },
    { FIELD(P, threads_max), WR_THREADS_DEFAULT,
      FROM(1, WR_THREADS_MAX, "use 1 to 65536, or 0 for 256") },
    { FIELD(P, stall_after_ms), 0, FROM(1, WR_MS_MAX, "use 1 to 86400000 (a day), or 0 for 10") },
    { FIELD(P, replacements_max), 0,
      FROM(1, WR_WORKERS_MAX, "use 1 to 4096, or 0 for one per worker and 64") },
    { FIELD(P, stack_size), 0,
      FROM(WR_STACK_MIN, WR_STACK_MAX, "use 16384 to 1073741824 (1 GiB), or 0 for 131072") },
    { .name = NULL },
};

/* Zeros that stay get their default from the policy, or from functions of the user's. */
#define G weir_group_policy
const struct wr_field wr_group_fields[] = {
    { FIELD(G, limit), 0, &a_limit },
    { FIELD(G, inflight_max), 0, &a_limit },
    { FIELD(G, queue_max), 0, &a_queue },
    { FIELD(G, weight), 1, &a_weight },
    DEADLINES(G, deadlines),
    { FIELD(G, run_on), 0, &a_carrier },
    { FIELD(G, pace.starts), 0, FROM(1, INT64_MAX, "use 1 or more, or 0 for no pace") },
    { FIELD(G, pace.period_ns), 0, FROM(1, INT64_MAX, "use 1 or more, or 0 for a second") },
    { FIELD(G, pace.burst), 0, FROM(1, INT64_MAX, "use 1 or more, or 0 for 1") },
    { .name = NULL },
};

#define D weir_domain_policy
const struct wr_field wr_domain_fields[] = {
    { FIELD(D, weight), 1, &a_weight },
    DEADLINES(D, deadlines),
    { FIELD(D, run_on), 0, &a_carrier },
    { FIELD(D, workers), 0,
      FROM(1, WR_WORKERS_MAX, "use 1 to 4096, or 0 for the workers of the executor") },
    { FIELD(D, slots_mode), 0, &a_share },
    { FIELD(D, queue_mode), 0, &a_share },
    { FIELD(D, lend_max), 0, &a_loan },
    { FIELD(D, queue_lend_max), 0, &a_loan },
    { .name = NULL },
};

/* Further fields of the default domain. It lends only if it is told to: other domains can borrow from it anyway. */
const struct wr_field wr_default_domain_fields[] = {
    { FIELD(D, slots), 0, CHOICE(0, REST) },
    { FIELD(D, queue), 0, CHOICE(0, REST) },
    { FIELD(D, slots_mode), 0, CHOICE(WEIR_MAX, NO_LENDER) },
    { FIELD(D, queue_mode), 0, CHOICE(WEIR_MAX, NO_LENDER) },
    { FIELD(D, lend_max), WEIR_NONE, &a_loan },
    { FIELD(D, queue_lend_max), WEIR_NONE, &a_loan },
    { .name = NULL },
};

/* ---- by a table ---------------------------------------------------------------------------------- */

int64_t wr_field_value(const struct wr_field *field, const void *in)
{
    const char *at = (const char *)in + field->at;
    uint32_t narrow;
    int64_t value;

    if (field->size == sizeof(value)) {
        memcpy(&value, at, sizeof(value));
        return value;
    }
    memcpy(&narrow, at, sizeof(narrow));
    return narrow;
}

static void set_value(const struct wr_field *field, void *in, int64_t value)
{
    uint32_t narrow = (uint32_t)value;

    memcpy((char *)in + field->at, field->size == sizeof(value) ? (void *)&value : (void *)&narrow,
           field->size);
}

static bool is_fine(const struct wr_range *range, int64_t value)
{
    return value == 0 || (value >= range->least && value <= range->most) || value == range->low ||
           value == range->high;
}

const struct wr_field *wr_fields_fill(const struct wr_field *field, void *in)
{
    for (; field->name; field++) {
        int64_t value = wr_field_value(field, in);
        if (!is_fine(field->range, value))
            return field;
        if (value == 0)
            set_value(field, in, field->otherwise);
    }
    return NULL;
}

void wr_fields_bring_into_range(const struct wr_field *fields, void *in)
{
    for (const struct wr_field *field = fields; field->name; field++) {
        int64_t value = wr_field_value(field, in);
        if (!is_fine(field->range, value))
            set_value(field, in,
                      value < field->range->least ? field->range->low : field->range->high);
    }
    wr_fields_fill(fields, in);
}

bool wr_fields_are_zero(const struct wr_field *field, const void *in)
{
    for (; field->name; field++)
        if (wr_field_value(field, in))
            return false;
    return true;
}
