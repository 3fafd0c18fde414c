/* A policy after it was checked: our own copy, and the limits that it has for a key.
 * SPDX-License-Identifier: MIT */
#ifndef WR_POLICY_POLICY_H
#define WR_POLICY_POLICY_H

#include "base/atomic.h"
#include "limits/ledger.h"
#include "limits/pace.h"

#include <weir/executor.h>

enum {
    WR_PACE_PERIOD_NS = 1000000000,
    WR_ENTRY_MAX = 1024, /* bytes of an entry as a newer program may know it */
};

struct wr_policy {
    weir_policy given;          /* with defaults filled in; `groups` points to our copy */
    weir_group_policy *group;   /* sorted by key; the keys lie in the same allocation */
    weir_domain_policy *domain; /* the default one first; NULL: there are none */
    uint32_t domain_count;
    _Atomic bool watched; /* tasks without their own deadlines may have some, also by group_for */
    bool timed;           /* the clock is needed, or some group may need it */
};

/* The limits that a new group starts with. */
struct wr_group_limits {
    uint32_t limit, inflight_max, queue_max;
    uint16_t weight;
    uint8_t domain;
    weir_carrier run_on;
    weir_deadlines deadlines; /* of tasks without their own; 0: none                            */
    struct wr_pace pace;
    bool lost; /* the policy named an unknown domain                                            */
};

/* ---- numbers, by tables --------------------------------------------------------------------------- */

struct wr_range {
    int64_t least, most; /* zero is fine as well */
    int64_t low, high;   /* fine, too; an answer below or above the range becomes low or high */
    const char *instead; /* text: which values to use */
};

struct wr_field {
    const char *name;
    size_t at, size; /* in its struct: 8 bytes, or 4 without a sign                               */
    int64_t otherwise; /* the value that zero stands for; 0: it stays                             */
    const struct wr_range *range;
};

/* Tables, ended by a field without a name. */
extern const struct wr_field wr_policy_fields[], wr_group_fields[], wr_domain_fields[],
    wr_default_domain_fields[];

int64_t wr_field_value(const struct wr_field *field, const void *in);
bool wr_fields_are_zero(const struct wr_field *fields, const void *in);

/* The first field of the struct that is not fine. NULL: there is none, and zeros have become the values they stand for. */
const struct wr_field *wr_fields_fill(const struct wr_field *fields, void *in);

/* The same for an answer of group_for, which cannot be refused: fields that are not fine become low or high of their range. */
void wr_fields_bring_into_range(const struct wr_field *fields, void *in);

/* ---- the policy ---------------------------------------------------------------------------------- */

/* Copies and checks a policy. After a failure `message` (may be NULL) is empty or says why; see wr_policy_say. */
int wr_policy_init(struct wr_policy *policy, const weir_policy *given, weir_message *message);
void wr_policy_fini(struct wr_policy *policy);

/* Fills in defaults. WEIR_EINVAL: something makes no sense, and `message` (may be NULL) says what. */
int wr_policy_check(struct wr_policy *policy, weir_message *message);

/* Writes to `message` (may be NULL) why there is no executor, unless it has a text. Answers `rc`. */
int wr_policy_say(weir_message *message, int rc, const char *why);

bool wr_has_deadlines(const weir_deadlines *d);

/* Calls the user's group_for, limit_for and domain_for, so without any lock. */
struct wr_group_limits wr_policy_resolve(const struct wr_policy *policy, const char *key);

/* Fills in the defaults of a checked entry of a group, but for those that other functions are asked for: limit and
 * domain. */
void wr_policy_complete(weir_group_policy *group, const weir_policy *given);

/* The number of a domain by name, or -1. */
int wr_policy_domain(const struct wr_policy *policy, const char *name);

/* Gives each domain its share of a ledger that has its count and arrays, and is zero otherwise. Answers what the caller must tell
 * the ledger of. */
enum wr_counts wr_policy_fill_ledger(const struct wr_policy *policy, struct wr_ledger *l);

/* A task's deadlines: its own or, where it has none, its group's; never beyond the forced ones. 0: none. */
weir_deadlines wr_policy_deadlines(const struct wr_policy *policy, const weir_deadlines *own,
                                   const weir_deadlines *inherited);

/* Converts a limit of the public header to one of ours; 0: it is not valid. */
uint32_t wr_limit_from(int64_t limit);

/* Converts a limit of ours to one of the public header. */
int64_t wr_limit_to(uint32_t limit);

/* As wr_limit_from for queue_max, where 0 is a valid result; false: queue_max is not valid. */
bool wr_queue_from(uint32_t *out, int64_t queue_max);

/* As wr_limit_to for queue_max. */
int64_t wr_queue_to(uint32_t queue_max);

#endif
