/* The door to the kernel, Linux side: faults. Used where stack overflows are reported.
 * SPDX-License-Identifier: MIT */
#include "base/os.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FAULT_STACK = 65536 }; /* the handler that was there before us runs on it, too */

static void (*_Atomic fault_handler)(const void *address);
static struct sigaction former;
static _Thread_local void *fault_stack; /* ours; a program may have put another in its place */

/* Lets the fault take its usual course: the handler that was there before us, or death. That handler is called
 * as the kernel would call it: our action has its mask. */
static void pass_on(int signal, siginfo_t *info, void *context)
{
    static const struct sigaction usual = { .sa_handler = SIG_DFL };
    bool sent = info->si_code <= 0; /* by a process: no instruction will fault again */

    if (former.sa_flags & (int)SA_RESETHAND)
        sigaction(signal, &usual, NULL);
    if (former.sa_flags & SA_SIGINFO && former.sa_sigaction) {
        former.sa_sigaction(signal, info, context);
    } else if (former.sa_handler != SIG_DFL && former.sa_handler != SIG_IGN) {
        former.sa_handler(signal);
    } else if (former.sa_handler == SIG_DFL || !sent) { /* a fault cannot be ignored */
        sigaction(signal, &usual, NULL);
        if (sent)
            raise(signal);
    }
}

static void on_signal(int signal, siginfo_t *info, void *context)
{
    void (*handler)(const void *address) = wr_load(&fault_handler, acquire);

    if (handler && info->si_code > 0) /* a fault, and so with an address */
        handler(info->si_addr);
    pass_on(signal, info, context);
}

int wr_os_on_fault(void (*handler)(const void *address))
{
    struct sigaction action = { .sa_sigaction = on_signal };
    void (*none)(const void *address) = NULL;

    if (!wr_cas(&fault_handler, &none, handler, acq_rel))
        return 0;
    if (sigaction(SIGSEGV, NULL, &former))
        return -errno;
    action.sa_mask = former.sa_mask;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | (former.sa_flags & (SA_NODEFER | SA_RESTART));
    return sigaction(SIGSEGV, &action, NULL) ? -errno : 0;
}

/* Whether the thread has such a stack already, from the program or a sanitizer: then it keeps that. */
static bool has_stack(void)
{
    stack_t present;

    return sigaltstack(NULL, &present) == 0 && !(present.ss_flags & SS_DISABLE);
}

void wr_os_fault_stack(bool wanted)
{
    stack_t stack = { .ss_flags = SS_DISABLE }, present;

    if (wanted && !fault_stack && !has_stack()) {
        stack = (stack_t){ .ss_sp = malloc(FAULT_STACK), .ss_size = FAULT_STACK };
        if (stack.ss_sp && sigaltstack(&stack, NULL) == 0)
            fault_stack = stack.ss_sp;
        else
            free(stack.ss_sp);
    } else if (!wanted && fault_stack) {
        if (sigaltstack(NULL, &present) == 0 && present.ss_sp == fault_stack)
            sigaltstack(&stack, NULL);
        free(fault_stack);
        fault_stack = NULL;
    }
}

void wr_os_say(const char *text, size_t size)
{
    /* In signal context nothing but the system call itself, which is no cancellation point in this form. */
    long n = syscall(SYS_write, STDERR_FILENO, text, size);

    (void)n;
}
