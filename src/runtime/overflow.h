/* The reporter of stack overflows.
 * SPDX-License-Identifier: MIT */
#ifndef WR_RUNTIME_OVERFLOW_H
#define WR_RUNTIME_OVERFLOW_H

#include <weir/runtime.h>

/* Installs the handler for the process, once, if the runtime asks for it. */
int wr_overflow_install(const weir_runtime *rt);

/* Gives the calling worker thread a stack for the handler to run on. Without one the process dies of
 * the overflow as it would without us. */
void wr_overflow_thread_begin(const weir_runtime *rt);

/* Takes that stack back. */
void wr_overflow_thread_end(const weir_runtime *rt);

#endif
