/* A command for tests of weir map, without libc: it starts and ends as fast as a process can.
 *
 *     map-child say TEXT            writes TEXT and a newline
 *     map-child note FILE TEXT      the same, also to the end of FILE
 *     map-child overlap FILE N      is counted in FILE while it runs: in gauge 0, in gauge N, and in that
 *                                   of its slot, SLOT_GAUGES + $WEIR_SLOT (see map_child.h)
 *
 * SPDX-License-Identifier: MIT */
#include "command/map_child.h"

#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

void start(long *stack);

#if defined(__x86_64__)
__asm__(".globl _start\n_start: mov %rsp, %rdi\n and $-16, %rsp\n call start\n");

static long call(long number, long a, long b, long c, long d, long e, long f)
{
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;

    __asm__ volatile("syscall"
                     : "+a"(number)
                     : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return number;
}
#elif defined(__aarch64__)
__asm__(".globl _start\n_start: mov x0, sp\n bl start\n");

static long call(long number, long a, long b, long c, long d, long e, long f)
{
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;

    __asm__ volatile("svc 0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return x0;
}
#else
#error "write _start and call for this machine"
#endif

static _Noreturn void leave(int status)
{
    for (;;)
        call(SYS_exit_group, status, 0, 0, 0, 0, 0);
}

static size_t length_of(const char *text)
{
    size_t n = 0;

    while (text[n])
        n++;
    return n;
}

static int number_of(const char *text)
{
    int n = 0;

    while (*text >= '0' && *text <= '9')
        n = n * 10 + (*text++ - '0');
    return n;
}

static const char *variable(char **env, const char *name)
{
    size_t length = length_of(name), i;

    for (; *env; env++) {
        for (i = 0; i < length && (*env)[i] == name[i]; i++)
            ;
        if (i == length && (*env)[i] == '=')
            return *env + i + 1;
    }
    return "0";
}

/* In one write, the newline in place of the final zero. */
static void say(char *text)
{
    size_t length = length_of(text);

    text[length] = '\n';
    leave(call(SYS_write, 1, (long)text, (long)length + 1, 0, 0, 0) != (long)length + 1);
}

static void note(const char *file, char *text)
{
    size_t length = length_of(text);
    long fd = call(SYS_openat, AT_FDCWD, (long)file, O_WRONLY | O_CREAT | O_APPEND, 0600, 0, 0);

    text[length] = '\n';
    if (fd < 0 || call(SYS_write, fd, (long)text, (long)length + 1, 0, 0, 0) != (long)length + 1)
        leave(3);
    text[length] = 0;
    say(text);
}

static void enter(struct gauge *gauge)
{
    int now = atomic_fetch_add(&gauge->now, 1) + 1, peak = atomic_load(&gauge->peak);

    while (now > peak && !atomic_compare_exchange_weak(&gauge->peak, &peak, now))
        ;
    atomic_fetch_add(&gauge->ran, 1);
}

static void overlap(const char *file, int number, int slot)
{
    const struct timespec a_while = { .tv_nsec = 200000 }; /* so that others come along */
    struct gauge *gauges;
    long fd = call(SYS_openat, AT_FDCWD, (long)file, O_RDWR, 0, 0, 0), at;

    at =
        call(SYS_mmap, 0, sizeof(struct gauge) * GAUGES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd < 0 || (at < 0 && at > -4096) || number >= SLOT_GAUGES || SLOT_GAUGES + slot >= GAUGES)
        leave(2);
    gauges = (struct gauge *)at;
    enter(&gauges[0]);
    enter(&gauges[number]);
    enter(&gauges[SLOT_GAUGES + slot]);
    call(SYS_nanosleep, (long)&a_while, 0, 0, 0, 0, 0);
    atomic_fetch_sub(&gauges[SLOT_GAUGES + slot].now, 1);
    atomic_fetch_sub(&gauges[number].now, 1);
    atomic_fetch_sub(&gauges[0].now, 1);
    leave(0);
}

__attribute__((used)) void start(long *stack)
{
    long argc = stack[0];
    char **argv = (char **)(stack + 1), **env = argv + argc + 1;

    if (argc == 3 && argv[1][0] == 's')
        say(argv[2]);
    if (argc == 4 && argv[1][0] == 'n')
        note(argv[2], argv[3]);
    if (argc == 4 && argv[1][0] == 'o')
        overlap(argv[2], number_of(argv[3]), number_of(variable(env, "WEIR_SLOT")));
    leave(2);
}
