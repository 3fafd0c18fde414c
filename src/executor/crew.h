/* A crew: a set of workers that pulls tasks; the executor's, or those that a domain has for itself.
 * SPDX-License-Identifier: MIT */
#ifndef WR_EXECUTOR_CREW_H
#define WR_EXECUTOR_CREW_H

#include "base/list.h"
#include "runtime/runtime.h"

struct weir_executor;

struct wr_crew {
    struct wr_source source; /* first: the runtime knows only this                                */
    struct weir_executor *executor;
    weir_runtime *runtime;   /* NULL once freed                                                   */
    uint64_t domains;        /* a set: whose tasks its workers carry                             */
    _Atomic uint64_t turn;   /* whose turn it is among the domains, and for how many tasks more  */
    _Atomic uint32_t needed; /* permits of the executor's that must be free for the next task     */
    struct wr_list link; /* among those that were refused permits; under the domains' lock        */
    uint32_t owed;       /* how many they were; 0: it is not among them                         */
};

/* A source of work for a runtime; and the runtime. */
void wr_crew_init(struct wr_crew *crew, struct weir_executor *ex);
int wr_crew_start(struct wr_crew *crew, uint32_t workers);

#endif
