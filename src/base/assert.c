/* What happens when an assertion fails.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>

#ifdef WEIR_SIM
void wr_sim_note_panic(void);
#endif

void wr_assert_failed(const char *what, const char *file, int line)
{
    fprintf(stderr, "weir: broken invariant: %s (%s:%d)\n", what, file, line);
#ifdef WEIR_SIM
    wr_sim_note_panic();
#endif
    abort();
}
