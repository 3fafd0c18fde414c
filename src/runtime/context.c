/* The ceremony around a switch of stacks: what ASan, TSan and valgrind must be told, and the first
 * frame of a fresh stack.
 * SPDX-License-Identifier: MIT */
#include "runtime/context.h"

#include "base/assert.h"

#include <pthread.h>
#include <string.h>

#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#else
#define VALGRIND_STACK_REGISTER(low, high) 0
#define VALGRIND_STACK_DEREGISTER(id)      ((void)(id))
#endif

#ifdef WR_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#ifdef WR_TSAN
void *__tsan_get_current_fiber(void);
void *__tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void *fiber);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);
#endif

#ifdef WEIR_SIM
void wr_sim_stack_bounds(void **low, size_t *size);
#endif

void wr_context_init_thread(struct wr_context *context)
{
    memset(context, 0, sizeof(*context));
#if defined(WR_ASAN) && defined(WEIR_SIM)
    wr_sim_stack_bounds(&context->stack_low, &context->stack_size);
#elif defined(WR_ASAN)
    pthread_attr_t attr;
    WR_ASSERT(pthread_getattr_np(pthread_self(), &attr) == 0);
    pthread_attr_getstack(&attr, &context->stack_low, &context->stack_size);
    pthread_attr_destroy(&attr);
#endif
#ifdef WR_TSAN
    context->tsan_fiber = __tsan_get_current_fiber();
#endif
}

void wr_context_init_stack(struct wr_context *context, void *low, size_t size)
{
    memset(context, 0, sizeof(*context));
    context->stack_low = low;
    context->stack_size = size;
    context->valgrind_id = VALGRIND_STACK_REGISTER(low, (char *)low + size);
#ifdef WR_TSAN
    context->tsan_fiber = __tsan_create_fiber(0);
#endif
}

#ifdef WR_ASAN
/* ASan frees the frames that it keeps apart for a stack when the stack is left for good: so we tell it that we go there and
 * leave for good. */
__attribute__((no_sanitize("address"), noinline)) static void drop_frames(
    struct wr_context *context)
{
    const void *low;
    size_t size;
    void *mine;

    __sanitizer_start_switch_fiber(&mine, context->stack_low, context->stack_size);
    __sanitizer_finish_switch_fiber(context->fake_stack, &low, &size);
    __sanitizer_start_switch_fiber(NULL, low, size);
    __sanitizer_finish_switch_fiber(mine, NULL, NULL);
}
#endif

/* Only for contexts of stacks: a thread's own context needs no undoing. */
void wr_context_fini(struct wr_context *context)
{
    VALGRIND_STACK_DEREGISTER(context->valgrind_id);
#ifdef WR_ASAN
    /* The next user of this memory must not meet our frames' red zones. */
    ASAN_UNPOISON_MEMORY_REGION(context->stack_low, context->stack_size);
    if (context->fake_stack)
        drop_frames(context);
#endif
#ifdef WR_TSAN
    __tsan_destroy_fiber(context->tsan_fiber);
#endif
}

#ifdef WR_ASAN
/* The first thing on a fresh stack: tell ASan that the switch to it is complete. */
static void arrive(void *arg)
{
    struct wr_context *context = arg;

    __sanitizer_finish_switch_fiber(context->fake_stack, NULL, NULL);
    __asan_handle_no_return(); /* frees frames that the stack's former user left without a return */
    context->entry(context->arg);
}
#endif

void wr_context_prepare(struct wr_context *context, void *top, void (*entry)(void *arg), void *arg)
{
    WR_ASSERT(((uintptr_t)top & 15) == 0);
#ifdef WR_ASAN
    ASAN_UNPOISON_MEMORY_REGION(context->stack_low,
                                (size_t)((char *)top - (char *)context->stack_low));
    context->entry = entry;
    context->arg = arg;
    context->sp = wr_switch_prepare(top, arrive, context);
#else
    context->sp = wr_switch_prepare(top, entry, arg);
#endif
#ifdef WR_TSAN
    /* The stack's former calls never returned, so they are still in TSan's books. */
    __tsan_destroy_fiber(context->tsan_fiber);
    context->tsan_fiber = __tsan_create_fiber(0);
#endif
}

#if defined(WR_ASAN)
void wr_context_switch(struct wr_context *from, struct wr_context *to)
{
    __sanitizer_start_switch_fiber(&from->fake_stack, to->stack_low, to->stack_size);
    wr_switch(&from->sp, to->sp);
    __sanitizer_finish_switch_fiber(from->fake_stack, NULL, NULL);
}

void wr_context_leave(struct wr_context *from, struct wr_context *to)
{
    /* The next user of this stack takes its fake frames over: to map them anew took most of a test's time. */
    __sanitizer_start_switch_fiber(&from->fake_stack, to->stack_low, to->stack_size);
    wr_switch(&from->sp, to->sp);
}
#elif defined(WR_TSAN)
/* Not instrumented: TSan keeps a call stack per fiber, and a function that entered on one fiber and
 * returned on another would unbalance both. */
__attribute__((no_sanitize("thread"), noinline)) void wr_context_switch(struct wr_context *from,
                                                                        struct wr_context *to)
{
    __tsan_switch_to_fiber(to->tsan_fiber, 0);
    wr_switch(&from->sp, to->sp);
}

__attribute__((no_sanitize("thread"), noinline)) void wr_context_leave(struct wr_context *from,
                                                                       struct wr_context *to)
{
    wr_context_switch(from, to);
}
#endif

#if defined(__x86_64__) && !defined(WEIR_UCONTEXT)
#define WR_HAVE_ASM 1
/* As wr_switch pops them: control words, r15, r14, r13 (argument), r12 (entry), rbx, rbp, address. */
enum { WORDS = 8, CONTROL = 0, R13 = 3, R12 = 4, ADDRESS = 7 };

void wr_switch_start(void);

static void *lay_out(uintptr_t *frame, void (*entry)(void *arg), void *arg)
{
    uint32_t mxcsr;
    uint16_t x87;

    __asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
    __asm__ volatile("fnstcw %0" : "=m"(x87));
    frame[CONTROL] = (uintptr_t)mxcsr | (uintptr_t)x87 << 32;
    frame[R13] = (uintptr_t)arg;
    frame[R12] = (uintptr_t)entry;
    frame[ADDRESS] = (uintptr_t)wr_switch_start;
    return frame;
}
#elif defined(__aarch64__) && !defined(WEIR_UCONTEXT)
#define WR_HAVE_ASM 1
/* As wr_switch loads them: x19 (entry), x20 (argument), ... x30 (address), ... fpcr. */
enum { WORDS = 22, X19 = 0, X20 = 1, X30 = 11, FPCR = 20 };

void wr_switch_start(void);

static void *lay_out(uintptr_t *frame, void (*entry)(void *arg), void *arg)
{
    uintptr_t fpcr;

    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    frame[FPCR] = fpcr;
    frame[X19] = (uintptr_t)entry;
    frame[X20] = (uintptr_t)arg;
    frame[X30] = (uintptr_t)wr_switch_start;
    return frame;
}
#endif

#ifdef WR_HAVE_ASM
void *wr_switch_prepare(void *top, void (*entry)(void *arg), void *arg)
{
    /* Two words stay above the frame: the call in wr_switch_start needs an aligned stack. */
    uintptr_t *frame = (uintptr_t *)top - WORDS - 2;

    memset(frame, 0, (WORDS + 2) * sizeof(*frame));
    return lay_out(frame, entry, arg);
}
#endif
