/* Sentences for a person to read.
 * SPDX-License-Identifier: MIT */
#ifndef WR_BASE_SAY_H
#define WR_BASE_SAY_H

#include <weir/task.h>

/* Adds a text to the message, as far as it fits. `message` may be NULL: nothing happens. */
void wr_say(weir_message *message, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
