/* Tests of strays, on processes that were started for it.
 * SPDX-License-Identifier: MIT */
#include "cli/engine/strays.h"

#include "support/check.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Starts a process that waits, with the environment of an attempt of a task of the run. */
static pid_t start(const char *run_id, int seq, int attempt)
{
    char run[64], task[32], number[32];
    char *const env[] = { run, task, number, NULL };
    pid_t pid;

    snprintf(run, sizeof(run), "WEIR_RUN=%s", run_id);
    snprintf(task, sizeof(task), "WEIR_SEQ=%d", seq);
    snprintf(number, sizeof(number), "WEIR_ATTEMPT=%d", attempt);
    pid = fork();
    if (pid == 0) {
        execle("/bin/sleep", "sleep", "1000", (char *)NULL, env);
        _exit(127);
    }
    assert_true(pid > 0);
    return pid;
}

/* The signal that ended the process; 0: none has. */
static int killed_by(pid_t pid)
{
    int status = 0;
    pid_t ended = waitpid(pid, &status, WNOHANG);

    if (ended == pid)
        return WTERMSIG(status);
    kill(pid, SIGTERM);
    waitpid(pid, &status, 0);
    return WTERMSIG(status) == SIGTERM ? 0 : WTERMSIG(status);
}

/* Waits until the child has executed its program: before that it has our environment. */
static void wait_for_exec(pid_t pid)
{
    char path[64], name[16] = "";

    snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
    while (strncmp(name, "sleep", 5) != 0) {
        FILE *file = fopen(path, "r");
        if (file && !fgets(name, sizeof(name), file))
            name[0] = 0;
        if (file)
            fclose(file);
        usleep(1000);
    }
}

static void test_the_next_attempt_of_a_task_is_left_alone(void)
{
    char id[RUN_ID_SIZE];
    struct strays *strays;
    pid_t first, second, third, other;

    strays_make_id(id);
    assert_int_equal(strays_new(&strays, id), 0);
    first = start(id, 7, 1);
    second = start(id, 7, 2);
    third = start(id, 7, 3);
    other = start(id, 8, 1);
    wait_for_exec(first);
    wait_for_exec(second);
    wait_for_exec(third);
    wait_for_exec(other);
    strays_note(strays, 7, 1);
    strays_note(strays, 7, 2);
    assert_true(strays_sweep(strays));
    assert_false(strays_sweep(strays)); /* all that was noted has been looked for */
    assert_int_equal(waitpid(first, NULL, 0), first);
    assert_int_equal(waitpid(second, NULL, 0), second);
    assert_int_equal(killed_by(third), 0);
    assert_int_equal(killed_by(other), 0);
    strays_free(strays);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_the_next_attempt_of_a_task_is_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
