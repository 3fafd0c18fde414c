/* Atomic operations as weir writes them: short, the order always named.
 *
 * In the simulator every one of them is also a point where another simulated thread may run, so that
 * it explores interleavings inside lock-free code.
 * SPDX-License-Identifier: MIT */
#ifndef WR_BASE_ATOMIC_H
#define WR_BASE_ATOMIC_H

#include <stdatomic.h>

#ifdef WEIR_SIM
void wr_sim_point(void);
#define WR_POINT() wr_sim_point()
#else
#define WR_POINT() ((void)0)
#endif

#define wr_load(p, order)     (WR_POINT(), atomic_load_explicit(p, memory_order_##order))
#define wr_store(p, v, order) (WR_POINT(), atomic_store_explicit(p, v, memory_order_##order))
#define wr_swap(p, v, order)  (WR_POINT(), atomic_exchange_explicit(p, v, memory_order_##order))
#define wr_add(p, v, order)   (WR_POINT(), atomic_fetch_add_explicit(p, v, memory_order_##order))
#define wr_sub(p, v, order)   (WR_POINT(), atomic_fetch_sub_explicit(p, v, memory_order_##order))
#define wr_or(p, v, order)    (WR_POINT(), atomic_fetch_or_explicit(p, v, memory_order_##order))
#define wr_and(p, v, order)   (WR_POINT(), atomic_fetch_and_explicit(p, v, memory_order_##order))
/* On failure *expected gets the present value, read with acquire. Strong: fails only if different. */
#define wr_cas(p, expected, v, order)                                                          \
    (WR_POINT(), atomic_compare_exchange_strong_explicit(p, expected, v, memory_order_##order, \
                                                         memory_order_acquire))

/* Between a store and a load, where another thread calls wr_os_fence_heavy between its own store and load: at least one of the
 * two threads sees the other's store. It costs nothing: only the compiler is kept from exchanging them. */
#define wr_fence_light() (WR_POINT(), atomic_signal_fence(memory_order_seq_cst))

/* A counter with one writer and any readers: cheaper than an atomic addition. */
#define wr_bump(p) wr_store(p, atomic_load_explicit(p, memory_order_relaxed) + 1, relaxed)

/* Asks for a cache line that this thread is going to write to. Otherwise the next locked instruction waits until the line has
 * come from the CPU that had it. A hint: any address will do. */
#if defined( \
    __x86_64__) /* __builtin_prefetch has this instruction only if compiled for a CPU that is known to have it */
#define wr_prefetch_to_write(p) __asm__ volatile("prefetchw %0" : : "m"(*(const char *)(p)))
#else
#define wr_prefetch_to_write(p) __builtin_prefetch(p, 1)
#endif

#endif
