/* A plan: one command to be run, as inputs make it and the engine takes it.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_PLAN_H
#define WR_CLI_PLAN_H

#include <stddef.h>
#include <stdlib.h>

/* All of it is in allocations of their own, which become the task's. */
struct plan {
    char **argv; /* NULL: there is no command, as was said; the task counts as failed           */
    char *key;   /* of its group; NULL: ""                                                      */
    char *
        directory; /* NULL: ours                                                                  */
    char *tag;     /* NULL: none                                                                  */
    char *input;   /* for its standard input; NULL: none                                          */
    size_t input_length;
    size_t weight; /* bytes it counts for in what may be under way                                */
};

static inline void plan_fini(struct plan *plan)
{
    free(plan->argv);
    free(plan->key);
    free(plan->directory);
    free(plan->tag);
    free(plan->input);
    *plan = (struct plan){ 0 };
}

#endif
