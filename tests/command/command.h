/* Runs commands as a shell would, and tells what became of them.
 *
 *     const struct ran *r = MAP("a\nb\n", "-j1", "--", "echo", "{}");      weir map, with that input
 *     assert_ran(r, 0, "a\nb\n", "");
 *
 *     r = SCRIPT("a\nb\n", "weir map -- echo {} | head -1");               a line for /bin/sh
 *
 * A command from which nothing comes for PATIENCE_S, or that leaves a process running, fails the test. What is lent (a result,
 * a path, a text) is lent until the next command.
 * SPDX-License-Identifier: MIT */
#ifndef WR_TESTS_COMMAND_H
#define WR_TESTS_COMMAND_H

#include "support/check.h"

#include <stdint.h>
#include <string.h>
#include <sys/types.h>

struct command {
    const char *const *argv;
    const char *input;      /* NULL: none */
    size_t input_length;    /* 0: up to its final zero */
    bool input_stays;       /* open after that, until command_end_input */
    const char *directory;  /* NULL: the scratch directory */
    const char *const *env; /* more NAME=VALUE, or NULL */
    bool count_only;        /* output is counted, not kept */
    bool leaves;            /* processes that it leaves behind are ended, and counted in `left` */
};

struct ran {
    int status; /* its exit status; 128 + number of a signal */
    bool late;
    int left; /* processes that outlived it */
    char *out, *err;
    size_t out_length, err_length; /* of count_only: all that came */
    long peak_kb;                  /* resident memory, of it and of what it has waited for */
    double seconds;
};

/* Starts it; one at a time. */
void command_start(const struct command *command);
pid_t command_pid(void);
void command_say(const char *text);
void command_end_input(void);
/* Waits until what it has written contains `text`; false: it ended, or is late. */
bool command_await_output(const char *text);
bool command_await_message(const char *text); /* on its standard error */
/* Waits for its end. */
const struct ran *command_finish(void);
const struct ran *command_run(const struct command *command);

/* A directory of this program's own, gone at its end. */
const char *scratch(const char *name);                                 /* a path in it    */
void scratch_write(const char *name, const char *text, size_t length); /* 0: up to its zero */
const char *scratch_read(const char *name);                            /* NULL: no such file */
/* Waits until the file is there and contains `text`. */
bool scratch_await(const char *name, const char *text);

/* ---- with cmocka ------------------------------------------------------------------------------ */

#define WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })

#define MAP(text, ...) \
    sound(command_run( \
        &(struct command){ .argv = WORDS(WEIR_COMMAND, "map", __VA_ARGS__), .input = (text) }))
#define SCRIPT(text, line) \
    sound(command_run(&(struct command){ .argv = WORDS("/bin/sh", "-c", line), .input = (text) }))

static inline const struct ran *sound(const struct ran *r)
{
    if (r->late || r->left)
        print_message("output: %.2000s\nerror: %.2000s\n", r->out, r->err);
    if (r->late)
        fail_msg("it did not end in time");
    if (r->left)
        fail_msg("%d processes are left", r->left);
    return r;
}

/* A prefix of what failed, so that a person sees why. */
static inline void assert_status(const struct ran *r, int status)
{
    if (r->status != status)
        print_message("output: %.2000s\nerror: %.2000s\n", r->out, r->err);
    assert_int_equal(r->status, status);
}

static inline void assert_ran(const struct ran *r, int status, const char *out, const char *err)
{
    assert_status(r, status);
    assert_string_equal(r->out, out);
    assert_string_equal(r->err, err);
}

static inline void assert_contains(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" is not in: %.2000s", part, text);
}

static inline void assert_lacks(const char *text, const char *part)
{
    if (strstr(text, part))
        fail_msg("\"%s\" is in: %.2000s", part, text);
}

#endif
