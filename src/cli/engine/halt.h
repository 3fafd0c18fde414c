/* When to stop because of failures: --halt never | now,fail=N | soon,fail=N%.
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

struct halt_rule {
    enum halt_when when;
    uint64_t failures; /* this many; 0: a share instead                                          */
    double share;      /* of those that have ended, once HALT_SHARE_MIN have failed               */
};

enum { HALT_SHARE_MIN = 3 }; /* a single failure at the start is 100 % of all */

int halt_parse(struct halt_rule *rule, const char *text, weir_message *message);

/* Whether so many failures among so many ended ask for it. */
enum halt_when halt_judge(const struct halt_rule *rule, uint64_t failed, uint64_t ended);

#endif
