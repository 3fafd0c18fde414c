/* Reasons by number.
 * SPDX-License-Identifier: MIT */
#ifndef WR_BASE_REASON_H
#define WR_BASE_REASON_H

#include <stdbool.h>
#include <weir/reason.h>

/* Whether the number is in the table. */
bool wr_reason_is_known(weir_reason reason);

#endif
