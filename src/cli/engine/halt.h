/* When to stop early: --halt never | now,fail=N | soon,fail=N% | now,success=N.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_HALT_H
#define WR_CLI_HALT_H

#include <stdbool.h>
#include <stdint.h>
#include <weir.h>

enum halt_when {
    HALT_NEVER,
    HALT_SOON, /* start nothing more, let what runs end */
    HALT_NOW,  /* end what runs                         */
};

enum halt_on { HALT_ON_FAIL, HALT_ON_SUCCESS };

struct halt_rule {
    enum halt_when when;
    enum halt_on on;
    uint64_t count; /* this many; 0: a share instead                                             */
    double share;   /* of those that have ended, once HALT_SHARE_MIN are counted                  */
};

enum { HALT_SHARE_MIN = 3 }; /* a single one at the start is 100 % of all */

int halt_parse(struct halt_rule *rule, const char *text, weir_message *message);

/* Whether so many failed and succeeded tasks, among so many ended ones, ask for a halt. */
enum halt_when halt_judge(const struct halt_rule *rule, uint64_t failed, uint64_t succeeded,
                          uint64_t ended);

#endif
