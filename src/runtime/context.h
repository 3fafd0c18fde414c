/* Contexts: a stack, and where to go on with it.
 *
 * wr_context_switch() is the only way from one stack to another. It performs the whole ceremony: the
 * sanitizers and valgrind learn of the new stack before the jump and of the arrival after it. The
 * bare jump is in switch_<arch>.S, or switch_ucontext.c where there is no assembly for the machine.
 * SPDX-License-Identifier: MIT */
#ifndef WR_RUNTIME_CONTEXT_H
#define WR_RUNTIME_CONTEXT_H

#include <stddef.h>
#include <stdint.h>

#if defined(__SANITIZE_ADDRESS__)
#define WR_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define WR_TSAN 1
#endif
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WR_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define WR_TSAN 1
#endif
#endif

struct wr_context {
    void *sp;        /* valid while suspended; the registers to restore lie there */
    void *stack_low; /* bounds of the stack, for the tools that want to know      */
    size_t stack_size;
#ifdef WR_ASAN
    void (*entry)(void *arg); /* what a fresh stack begins with                     */
    void *arg;
    void *fake_stack; /* ASan's frames of this stack while it is suspended         */
#endif
#ifdef WR_TSAN
    void *tsan_fiber; /* TSan's identity of this stack                             */
#endif
    unsigned valgrind_id;
};

/* Makes a context for the calling thread's own stack, as it stands. Only to be switched away from
 * and back to. Call on the thread itself; undo with wr_context_fini. */
void wr_context_init_thread(struct wr_context *context);

/* Makes a context for a stack of `size` bytes from `low` upward. It cannot be switched to yet. */
void wr_context_init_stack(struct wr_context *context, void *low, size_t size);
void wr_context_fini(struct wr_context *context);

/* Lets the next switch to `context` call entry(arg) below `top` (16-byte aligned, within the stack).
 * Whatever the stack held is forgotten. entry must never return. */
void wr_context_prepare(struct wr_context *context, void *top, void (*entry)(void *arg), void *arg);

/* The bare jump: stores the caller's stack pointer in *from and goes on at `to`. Returns when a
 * later call jumps to the stored pointer. Only wr_context_switch, the simulator and the benchmark
 * that measures it call this. */
void wr_switch(void **from, void *to);

/* Lays out the first frame of a stack and answers the stack pointer to jump to. */
void *wr_switch_prepare(void *top, void (*entry)(void *arg), void *arg);

/* wr_context_switch leaves `from` and goes on at `to`. It returns when a later call switches to `from` again.
 * wr_context_leave is for a stack to which no call will: its next user prepares it anew. */
#if defined(WR_ASAN) || defined(WR_TSAN)
void wr_context_switch(struct wr_context *from, struct wr_context *to);
void wr_context_leave(struct wr_context *from, struct wr_context *to);
#else
static inline void wr_context_leave(struct wr_context *from, struct wr_context *to)
{
    wr_switch(&from->sp, to->sp);
}

static inline void wr_context_switch(struct wr_context *from, struct wr_context *to)
{
    wr_switch(&from->sp, to->sp);
}
#endif

#endif
