/* Assertions. WR_ASSERT stays in release: it is for errors that would corrupt silently. WR_ASSERT_SLOW is for
 * walkers and is built in debug, under sanitizers and in the simulator.
 * SPDX-License-Identifier: MIT */
#ifndef WR_BASE_ASSERT_H
#define WR_BASE_ASSERT_H

_Noreturn void wr_assert_failed(const char *what, const char *file, int line);

#define WR_ASSERT(condition)                      \
    (__builtin_expect(!!(condition), 1) ? (void)0 \
                                        : wr_assert_failed(#condition, __FILE__, __LINE__))

#ifdef WEIR_SLOW_ASSERTS
#define WR_ASSERT_SLOW(condition) WR_ASSERT(condition)
#else
#define WR_ASSERT_SLOW(condition) ((void)(0 && (condition)))
#endif

#define WR_LIKELY(condition)   __builtin_expect(!!(condition), 1)
#define WR_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/* The struct that holds `member` at address `pointer`. */
#define WR_CONTAINER(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))

#endif
