/* Stack overflows: the task is named, or with report_overflow the body; either way the process dies of it.
 * The dying is done by this program, started again with a mode for an argument.
 * SPDX-License-Identifier: MIT */
#include "support/check.h"
#include "support/child.h"

#include <pthread.h>

#if defined(__clang__) || __GNUC__ >= 12
#pragma GCC diagnostic ignored "-Winfinite-recursion"
#endif
static int run_off(int depth)
{
    volatile char frame[256];

    frame[0] = (char)depth;
    return run_off(depth + 1) + frame[0];
}

static void overflow(void *arg)
{
    *(volatile int *)arg = run_off(0);
}

static void overflow_after_a_wait(void *arg)
{
    weir_sleep(weir_in_us(100));
    overflow(arg);
}

/* ---- among thousands, where stacks are handed out bare; docs/internals/stacks.md -------------- */

enum { CROWD_MAX = 4000, LATECOMERS = 200, PASSERS = 1000, MARKS = 512, CROWD_STACK = 64 << 10 };

static _Atomic(const volatile char *) marks[CROWD_MAX];
static _Atomic int places, waiting;

static bool marks_are_intact(void)
{
    for (int i = 0; i < CROWD_MAX; i++) {
        const volatile char *mark = atomic_load(&marks[i]);
        for (int k = 0; mark && k < MARKS; k++)
            if (mark[k] != (char)(i + k))
                return false;
    }
    return true;
}

/* Puts marks where its frame is, and waits. */
static void bystander(void *arg)
{
    volatile char mark[MARKS];
    int i = atomic_fetch_add(&places, 1);

    for (int k = 0; k < MARKS; k++)
        mark[k] = (char)(i + k);
    atomic_store(&marks[i], mark);
    atomic_fetch_add(&waiting, 1);
    weir_sleep(weir_in_s(60));
    atomic_fetch_add((_Atomic int *)arg, mark[0]); /* mark lives until here */
}

/* A frame larger than the stack, and a wait inside of it. */
static __attribute__((noinline)) void wait_far_out(void *arg)
{
    volatile char frame[CROWD_STACK * 3 / 2];

    __asm__ volatile(""
                     :
                     : "r"(frame)
                     : "memory"); /* all of it is in use, whatever a compiler thinks */
    frame[0] = 1;
    weir_sleep(weir_in_us(100));
    *(volatile int *)arg = frame[0];
}

/* Overflows when the latecomers are there, those on the stacks below as well. */
static void overflow_as_the_last(void *arg)
{
    int before = atomic_load(&waiting);

    while (atomic_load(&waiting) < before + LATECOMERS)
        weir_sleep(weir_in_ms(1));
    overflow(arg);
}

static void wait_shortly(void *arg)
{
    (void)arg;
    weir_sleep(weir_in_us(100));
}

static void exit_with_42_if_intact(int signal)
{
    (void)signal;
    _exit(marks_are_intact() ? 42 : 98);
}

/* Lets so many more wait. */
static void gather(weir_runtime *rt, int crowd)
{
    static _Atomic int sink;
    int before = atomic_load(&waiting);

    for (int i = 0; i < crowd; i++)
        weir_spawn(rt, bystander, &sink, NULL);
    while (atomic_load(&waiting) < before + crowd)
        weir_sleep(weir_in_ms(1));
    weir_sleep(weir_in_ms(10)); /* the last one too */
}

/* Lets many come and go, so that there are stacks that have served. */
static void pass_by(weir_runtime *rt)
{
    for (int i = 0; i < PASSERS; i++)
        weir_spawn(rt, wait_shortly, NULL, NULL);
    weir_sleep(weir_in_ms(100));
}

/* "crowd 3000 later": with so many waiting, the one that overflows after a wait. */
static int crowd_main(const char *mode)
{
    weir_runtime_options *opt =
        WEIR_RUNTIME(.workers = 1, .stack_size = CROWD_STACK, .report_overflow = true,
                     .stall_after_ms = 60000); /* no second worker, or stacks are not in order */
    weir_body *body = overflow;
    weir_runtime *rt = NULL;
    char how[16] = "";
    static int sink;
    int crowd;

    if (sscanf(mode, "crowd %d %15s", &crowd, how) != 2 || crowd + LATECOMERS > CROWD_MAX)
        return 97;
    sigaction(SIGSEGV,
              &(struct sigaction){ .sa_handler = exit_with_42_if_intact, .sa_flags = SA_ONSTACK },
              NULL);
    if (weir_runtime_new(&rt, opt))
        return 98;
    gather(rt, crowd);
    if (strcmp(how, "recycled") == 0)
        pass_by(rt);
    if (strcmp(how, "far") == 0)
        body = wait_far_out;
    if (strcmp(how, "later") == 0)
        body = overflow_as_the_last;
    weir_spawn(rt, body, &sink, WEIR_SPAWN(.name = "greedy body"));
    if (strcmp(how, "later") == 0)
        gather(rt, LATECOMERS);
    weir_runtime_drain(rt, patience());
    return 99;
}

static int *volatile nowhere;

static void touch_nothing(void *arg)
{
    (void)arg;
    nowhere[2] = 1;
}

static void *touch_on_thread(void *arg)
{
    touch_nothing(arg);
    return NULL;
}

static void exit_with_42(int signal)
{
    (void)signal;
    _exit(42);
}

/* The instruction faults again. */
static void return_at_once(int signal)
{
    (void)signal;
}

static void exit_with_43(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)context;
    _exit(info->si_addr ? 43 : 99);
}

static bool handler_is_default(void)
{
    struct sigaction now;

    return sigaction(SIGSEGV, NULL, &now) == 0 && !(now.sa_flags & SA_SIGINFO) &&
           now.sa_handler == SIG_DFL;
}

/* ---- tasks ----------------------------------------------------------------------------------- */

static int overflowing_task(void **value, void *arg)
{
    overflow(arg);
    *value = NULL;
    return 0;
}

/* On the stack of the task, but not in its body. */
static void overflowing_callback(weir_task *task, const weir_result *result, void *arg)
{
    (void)task;
    (void)result;
    overflow(arg);
}

static int harmless(void **value, void *arg)
{
    (void)arg;
    *value = NULL;
    return weir_sleep(weir_in_ms(10));
}

/* "task", "task id", "task silent", "task callback": an executor with its defaults, or without report. */
static int task_main(const char *how)
{
    weir_policy *policy = WEIR_POLICY(.workers = 1, .stack_size = 64 << 10);
    weir_task_options *opt = WEIR_TASK(.id = strcmp(how, "id") == 0 ? "number 7" : NULL);
    weir_executor *ex = NULL;
    weir_task *task = NULL;
    static int sink;

    policy->no_overflow_report = strcmp(how, "silent") == 0;
    if (weir_executor_new(&ex, policy, NULL))
        return 98;
    if (strcmp(how, "callback") == 0) {
        weir_submit_key(&task, ex, "greedy group", harmless, NULL, NULL);
        weir_task_on_done(task, overflowing_callback, &sink);
    } else {
        weir_submit_key(NULL, ex, "greedy group", overflowing_task, &sink, opt);
    }
    weir_executor_drain(ex, weir_in_s(10));
    return 99;
}

/* The work of the program when started again. It is expected to die of it, so it answers 99. */
static int child_main(const char *mode)
{
    weir_runtime_options *opt =
        WEIR_RUNTIME(.workers = 1, .stack_size = 64 << 10, .report_overflow = true);
    weir_body *body = overflow;
    const weir_spawn_options *spawn = WEIR_SPAWN(.name = "greedy body");
    weir_runtime *rt = NULL;
    static int sink;

    if (strncmp(mode, "crowd", 5) == 0)
        return crowd_main(mode);
    if (strncmp(mode, "task", 4) == 0)
        return task_main(mode[4] ? mode + 5 : "");
    if (strcmp(mode, "silent") == 0 || strcmp(mode, "look, silent") == 0)
        opt->report_overflow = false;
    if (strcmp(mode, "unnamed") == 0)
        spawn = NULL;
    if (strcmp(mode, "later") == 0)
        body = overflow_after_a_wait;
    if (strcmp(mode, "other fault") == 0)
        body = touch_nothing;
    if (strcmp(mode, "handler") == 0)
        sigaction(SIGSEGV,
                  &(struct sigaction){ .sa_handler = exit_with_42, .sa_flags = SA_ONSTACK }, NULL);
    if (strcmp(mode, "info handler") == 0)
        sigaction(SIGSEGV,
                  &(struct sigaction){ .sa_sigaction = exit_with_43,
                                       .sa_flags = SA_ONSTACK | SA_SIGINFO },
                  NULL);
    if (strcmp(mode, "handler once") == 0)
        sigaction(SIGSEGV,
                  &(struct sigaction){ .sa_handler = return_at_once,
                                       .sa_flags = SA_ONSTACK | (int)SA_RESETHAND },
                  NULL);
    if (strcmp(mode, "ignored") == 0)
        signal(SIGSEGV, SIG_IGN);
    if (strcmp(mode, "second") == 0) { /* the handler is there once, for all runtimes */
        if (weir_runtime_new(&rt, opt))
            return 98;
        weir_runtime_free(rt);
    }
    if (weir_runtime_new(&rt, opt))
        return 98;
    if (strncmp(mode, "look", 4) == 0) {
        weir_runtime_free(rt);
        return handler_is_default() ? 1 : 2;
    }
    if (strcmp(mode, "foreign thread") == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, touch_on_thread, NULL);
        pthread_join(thread, NULL);
        return 99;
    }
    if (strcmp(mode, "ignored") == 0)
        return kill(getpid(), SIGSEGV) ? 98 : 44;
    if (strcmp(mode, "sent") == 0)
        kill(getpid(), SIGSEGV);
    else if (weir_spawn(rt, body, &sink, spawn))
        return 98;
    weir_runtime_drain(rt, patience());
    return 99;
}

/* ---- dying ----------------------------------------------------------------------------------- */

static char said[4096];

static int mode_ends(const char *mode)
{
    return in_new_program(mode, said, sizeof(said));
}

#if SANITIZED /* sanitizers have handlers, and words, of their own */

static void test_without_the_option_it_dies_all_the_same(void)
{
    int status = mode_ends("silent");

    CHECK(!WIFEXITED(status) || WEXITSTATUS(status) != 99);
    CHECK(strstr(said, "weir:") == NULL);
}

#else

static bool died_of_segv(int status)
{
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

static void test_the_body_is_named_and_the_process_dies(void)
{
    CHECK(died_of_segv(mode_ends("report")));
    CHECK(strstr(said, "weir: stack overflow in body \"greedy body\"") != NULL);
    CHECK(strstr(said, ": its stack_size is 65536: raise it\n") != NULL); /* how to mend it */
}

static void test_a_task_is_named_by_its_group_and_id(void)
{
    CHECK(died_of_segv(mode_ends("task")));
    CHECK(strcmp(said,
                 "weir: stack overflow in a task of group \"greedy group\": its stack_size is "
                 "65536: raise it\n") == 0);
    CHECK(died_of_segv(mode_ends("task id")));
    CHECK(strcmp(said, "weir: stack overflow in task \"number 7\" of group \"greedy group\": its "
                       "stack_size is 65536: raise it\n") == 0);
}

static void test_an_overflow_in_a_callback_is_not_blamed_on_a_task(void)
{
    CHECK(died_of_segv(mode_ends("task callback")));
    CHECK(strcmp(said, "weir: stack overflow in a callback: its stack_size is 65536: raise it\n") ==
          0);
}

static void test_an_executor_can_be_told_to_be_silent(void)
{
    CHECK(died_of_segv(mode_ends("task silent")));
    CHECK(strcmp(said, "") == 0);
}

static void test_a_body_that_has_waited_is_named_as_well(void)
{
    CHECK(died_of_segv(mode_ends("later")));
    CHECK(strstr(said, "\"greedy body\"") != NULL);
}

static void test_a_body_without_a_name_is_said_to_have_none(void)
{
    CHECK(died_of_segv(mode_ends("unnamed")));
    CHECK(strstr(said, "stack overflow in body \"(unnamed)\"") != NULL);
}

static void test_a_second_runtime_reports_too(void)
{
    CHECK(died_of_segv(mode_ends("second")));
    CHECK(strstr(said, "\"greedy body\"") != NULL);
}

static void test_other_faults_are_not_called_overflows(void)
{
    CHECK(died_of_segv(mode_ends("other fault")));
    CHECK(strstr(said, "weir:") == NULL);
    CHECK(died_of_segv(mode_ends("foreign thread")));
    CHECK(strstr(said, "weir:") == NULL);
    CHECK(died_of_segv(mode_ends("sent"))); /* by kill: no instruction faults */
    CHECK(strstr(said, "weir:") == NULL);
}

static void test_a_handler_that_was_there_before_gets_its_turn(void)
{
    int status = mode_ends("handler");

    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 42);
    CHECK(strstr(said, "\"greedy body\"") != NULL);
    status = mode_ends("info handler");
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 43);
    CHECK(strstr(said, "\"greedy body\"") != NULL);
}

static void test_a_handler_that_was_meant_to_run_once_runs_once(void)
{
    CHECK(died_of_segv(mode_ends("handler once")));
    CHECK(strstr(said, "\"greedy body\"") != NULL);
}

static void test_a_signal_that_was_ignored_stays_ignored(void)
{
    int status = mode_ends("ignored");

    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 44);
}

/* With 3000 the next stack is the highest of a run, with 3030 one in the middle, with 3063 the lowest. */
static void dies_in_the_crowd(const char *how)
{
    static const int crowds[] = { 3000, 3030, 3062, 3063, 3064 };

    for (size_t i = 0; i < sizeof(crowds) / sizeof(crowds[0]); i++) {
        char mode[32];
        int status;
        snprintf(mode, sizeof(mode), "crowd %d %s", crowds[i], how);
        status = mode_ends(mode);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 42); /* and the others are unharmed */
        CHECK(strstr(said, "weir: stack overflow in body \"greedy body\"") != NULL);
    }
}

static void test_among_thousands_recursion_harms_no_other_body(void)
{
    dies_in_the_crowd("at once");
}

static void test_among_thousands_a_wait_outside_the_stack_is_an_overflow(void)
{
    dies_in_the_crowd("far");
}

static void test_among_thousands_a_body_that_has_waited_has_a_guard(void)
{
    dies_in_the_crowd("later");
}

static void test_among_thousands_a_stack_that_served_before_has_a_guard(void)
{
    dies_in_the_crowd("recycled");
}

static void test_without_the_option_it_dies_without_a_word(void)
{
    CHECK(died_of_segv(mode_ends("silent")));
    CHECK(strcmp(said, "") == 0);
}

/* cmocka has a handler of its own, so this is looked at in a program without it. */
static void test_only_the_option_installs_a_handler(void)
{
    int status = mode_ends("look, silent");

    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    status = mode_ends("look");
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 2);
}

#endif

/* ---- living ---------------------------------------------------------------------------------- */

static void use_stack(void *arg)
{
    volatile char frame[32 << 10];

    for (size_t i = 0; i < sizeof(frame); i += 512)
        frame[i] = (char)i;
    weir_yield();
    for (size_t i = 0; i < sizeof(frame); i += 512)
        CHECK_EQUAL(frame[i], (char)i);
    atomic_fetch_add((_Atomic int *)arg, 1);
}

static void test_bodies_that_behave_do_not_notice(void)
{
    _Atomic int ran = 0;

    for (int i = 0; i < 20;
         i++) { /* each worker thread has a signal stack, which must go with it */
        weir_runtime *rt = new_runtime(
            WEIR_RUNTIME(.workers = 3, .stack_size = 64 << 10, .report_overflow = true));
        for (int n = 0; n < 50; n++)
            CHECK_EQUAL(weir_spawn(rt, use_stack, &ran, NULL), 0);
        drain(rt);
        weir_runtime_free(rt);
    }
    CHECK_EQUAL(atomic_load(&ran), 1000);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
#if SANITIZED
        TEST(test_without_the_option_it_dies_all_the_same),
#else
        TEST(test_the_body_is_named_and_the_process_dies),
        TEST(test_a_task_is_named_by_its_group_and_id),
        TEST(test_an_overflow_in_a_callback_is_not_blamed_on_a_task),
        TEST(test_an_executor_can_be_told_to_be_silent),
        TEST(test_a_body_that_has_waited_is_named_as_well),
        TEST(test_a_body_without_a_name_is_said_to_have_none),
        TEST(test_a_second_runtime_reports_too),
        TEST(test_other_faults_are_not_called_overflows),
        TEST(test_a_handler_that_was_there_before_gets_its_turn),
        TEST(test_a_handler_that_was_meant_to_run_once_runs_once),
        TEST(test_a_signal_that_was_ignored_stays_ignored),
        TEST(test_among_thousands_recursion_harms_no_other_body),
        TEST(test_among_thousands_a_wait_outside_the_stack_is_an_overflow),
        TEST(test_among_thousands_a_body_that_has_waited_has_a_guard),
        TEST(test_among_thousands_a_stack_that_served_before_has_a_guard),
        TEST(test_without_the_option_it_dies_without_a_word),
        TEST(test_only_the_option_installs_a_handler),
#endif
        TEST(test_bodies_that_behave_do_not_notice),
    };

    if (argc == 2)
        return child_main(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
