/* A plan: one command to be run, as inputs make it and the engine takes it.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_PLAN_H
#define WR_CLI_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

/* Text that need not end with a zero byte and may contain some. */
struct span {
    const char *text;
    size_t length;
};

/* Where the number of the slot goes that a command gets: into a word, behind so many bytes. */
struct plan_hole {
    size_t word, offset;
};

/* All of it is in allocations of their own, which become the task's. */
struct plan {
    char **argv; /* NULL: there is no command, as was said; the task counts as failed           */
    /* argv for the journal: with {seq} and {%} as they are written; NULL: as argv */
    char **known_as;
    /* Of {%}, in order; NULL: none */
    struct plan_hole *hole;
    size_t holes;
    char *key; /* of its group; NULL: ""                                                      */
    /* NULL: ours */
    char *directory;
    char *tag;   /* NULL: none                                                                  */
    char *input; /* for its standard input; NULL: none                                          */
    size_t input_length;
    bool input_is_cut; /* --pipe: it lacks the end of its record, as the input did */
    /* What stood in the input, in one allocation with its text; NULL: not kept */
    struct span *record;
    /* Several with -n */
    size_t record_count;
    size_t weight; /* bytes it counts for in what may be under way                                */
};

static inline void plan_fini(struct plan *plan)
{
    free(plan->argv);
    free(plan->known_as);
    free(plan->hole);
    free(plan->key);
    free(plan->directory);
    free(plan->tag);
    free(plan->input);
    free(plan->record);
    *plan = (struct plan){ 0 };
}

#endif
