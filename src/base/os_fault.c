/* The door to the kernel, Linux side: faults. Only used when a program asks for overflow reports.
 * SPDX-License-Identifier: MIT */
#include "base/os.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum { FAULT_STACK = 32768 };

static void (*_Atomic fault_handler)(const void *address);
static struct sigaction former;
static _Thread_local void *fault_stack; /* ours; a program may have put another in its place */

static void on_signal(int signal, siginfo_t *info, void *context)
{
    void (*handler)(const void *address) = wr_load(&fault_handler, acquire);

    if (handler && info->si_code > 0) /* a fault, and so with an address */
        handler(info->si_addr);
    /* Let the fault take its usual course: whoever was there before us, or death. */
    if (former.sa_flags & SA_SIGINFO && former.sa_sigaction) {
        former.sa_sigaction(signal, info, context);
        return;
    }
    if (former.sa_handler != SIG_DFL && former.sa_handler != SIG_IGN) {
        former.sa_handler(signal);
        return;
    }
    sigaction(signal, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL);
    if (info->si_code <= 0)
        raise(signal); /* sent by somebody: no instruction will fault again */
}

int wr_os_on_fault(void (*handler)(const void *address))
{
    struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK };
    void (*none)(const void *address) = NULL;

    if (!wr_cas(&fault_handler, &none, handler, acq_rel))
        return 0;
    sigemptyset(&action.sa_mask);
    return sigaction(SIGSEGV, &action, &former) ? -errno : 0;
}

void wr_os_fault_stack(bool wanted)
{
    stack_t stack = { .ss_flags = SS_DISABLE }, present;

    if (wanted && !fault_stack) {
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
    ssize_t n = write(STDERR_FILENO, text, size);

    (void)n;
}
