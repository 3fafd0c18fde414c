/* The seed on stderr if the process dies in a run: without it the crash could not be repeated.
 *
 * The handlers only write a note, put back what was there before and return: the fault happens
 * again and meets the handler it would have met. What the library wants to do about faults is done here,
 * too. SPDX-License-Identifier: MIT */
#include "sim/sim.h"

#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

static const int signals[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT };
enum { SIGNALS = sizeof(signals) / sizeof(signals[0]) };

static struct sigaction before[SIGNALS];
static unsigned depth;
static bool noted;
static void (*library_handler)(const void *address);
static char handler_stack[16384] __attribute__((aligned(16))); /* the fault may be a full stack */

static size_t append(char *line, size_t used, const char *text)
{
    while (*text)
        line[used++] = *text++;
    return used;
}

static size_t append_number(char *line, size_t used, uint64_t number)
{
    char digits[21];
    char *first = digits + sizeof(digits) - 1;

    *first = '\0';
    do {
        *--first = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    return append(line, used, first);
}

/* Only what a signal handler may do. */
void wr_sim_note_panic(void)
{
    char line[160];
    size_t used = 0;

    if (!wr_sim.current || noted)
        return;
    noted = true;
    used = append(line, used, "weir sim: in thread ");
    used = append(line, used, wr_sim.current->name);
    used = append(line, used, ", seed ");
    used = append_number(line, used, wr_sim.report.seed);
    used = append(line, used, "; replay with WEIR_SEED=");
    used = append_number(line, used, wr_sim.report.seed);
    used = append(line, used, "\n");
    wr_os_say(line, used);
}

static void put_back(void)
{
    for (unsigned i = 0; i < SIGNALS; i++)
        sigaction(signals[i], &before[i], NULL);
}

static void on_crash(int signal, siginfo_t *info, void *context)
{
    (void)context;
    wr_sim.frozen = true;
    if (library_handler && wr_sim.current && (signal == SIGSEGV || signal == SIGBUS))
        library_handler(info->si_addr);
    wr_sim_note_panic();
    put_back();
}

void wr_sim_crash_watch(void)
{
    stack_t stack = { .ss_sp = handler_stack, .ss_size = sizeof(handler_stack) };
    struct sigaction action = { .sa_sigaction = on_crash, .sa_flags = SA_ONSTACK | SA_SIGINFO };
    stack_t present;

    if (depth++ > 0)
        return;
    noted = false;
    if (sigaltstack(NULL, &present) == 0 && (present.ss_flags & SS_DISABLE))
        sigaltstack(&stack, NULL);
    sigemptyset(&action.sa_mask);
    for (unsigned i = 0; i < SIGNALS; i++)
        sigaction(signals[i], &action, &before[i]);
}

void wr_sim_crash_unwatch(void)
{
    if (--depth == 0)
        put_back();
}

void wr_sim_crash_reset(void)
{
    if (depth > 0)
        put_back();
    depth = 0;
}

/* ---- the door -------------------------------------------------------------------------------- */

int wr_os_on_fault(void (*handler)(const void *address))
{
    if (!library_handler)
        library_handler = handler;
    return 0;
}

/* All simulated threads are one thread to the kernel, and that has such a stack. */
void wr_os_fault_stack(bool wanted)
{
    (void)wanted;
}

void wr_os_say(const char *text, size_t size)
{
    ssize_t n = write(STDERR_FILENO, text, size);

    (void)n;
}
