/* The engine: sets a run up, and takes it down.
 * SPDX-License-Identifier: MIT */
#include "cli/engine/child.h"
#include "cli/engine/fresh.h"
#include "cli/engine/journal.h"
#include "cli/engine/printer.h"
#include "cli/engine/results.h"
#include "cli/engine/run.h"
#include "cli/engine/strays.h"
#include "cli/engine/tally.h"
#include "cli/screen/say.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

/* A group without tasks is forgotten after this: nothing is lost by that, and endless input may have an unbounded set
 * of groups. */
enum { GROUP_IDLE_MS = 1000 };

/* ---- what runs need ------------------------------------------------------------------------------ */

static bool is_ours(const char *variable)
{
    static const char *const ours[] = { "WEIR_KEY=",     "WEIR_SEQ=",     "WEIR_SLOT=",
                                        "WEIR_ATTEMPT=", "WEIR_COOL_FD=", "WEIR_RUN=" };

    for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
        if (!strncmp(variable, ours[i], strlen(ours[i])))
            return true;
    return false;
}

/* Whether --env sets the variable anew. */
static bool is_replaced(const struct engine_options *opt, const char *variable)
{
    size_t name = strcspn(variable, "=") + 1;

    for (size_t i = 0; i < opt->env_count; i++)
        if (strchr(opt->env[i], '=') && !strncmp(opt->env[i], variable, name))
            return true;
    return false;
}

/* Our environment without the variables that commands get from us, so that a weir inside weir is not confused; and with
 * those that --env sets. */
static int copy_environment(struct engine *engine)
{
    extern char **environ;
    const struct engine_options *opt = engine->opt;
    size_t count = opt->env_count;

    for (char **at = environ; *at; at++)
        count++;
    engine->environment = malloc((count + 1) * sizeof(*engine->environment));
    if (!engine->environment)
        return say_wrong("cannot start", ENOMEM);
    for (char **at = environ; *at; at++)
        if (!is_ours(*at) && !is_replaced(opt, *at))
            engine->environment[engine->environment_count++] = *at;
    for (size_t i = 0; i < opt->env_count; i++)
        if (strchr(opt->env[i], '='))
            engine->environment[engine->environment_count++] = opt->env[i];
    return 0;
}

/* From here on signals come to the loop alone. SIGPIPE and SIGXFSZ are errors of write(2). */
static void block_signals(void)
{
    sigset_t set;

    child_setup();
    signal(SIGCHLD, SIG_DFL); /* ignored, as we may inherit it, no exit status would reach us */
    loop_signals(&set);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    signal(SIGTTOU, SIG_IGN); /* with --tty a command has the foreground, and we go on */
}

static int directory_wrong(const char *path, int error)
{
    char why[160];

    say_why(why, sizeof(why), error);
    say("--files %s: %s", path, why);
    return SAY_WRONG;
}

/* The directory of --files, without files of an earlier run in it. */
static int open_directory(struct engine *engine, const char *wanted)
{
    bool another = engine->opt->if_exists == EXISTS_NEW;
    char *path = engine->files_directory = fresh_name(wanted, another, fresh_is_clean_directory);

    if (!path)
        return directory_wrong(wanted, errno);
    if (mkdir(path, 0777) < 0 && errno != EEXIST)
        return directory_wrong(path, errno);
    engine->directory_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (engine->directory_fd < 0 || faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) < 0)
        return directory_wrong(path, errno);
    if (!fresh_is_clean_directory(path)) {
        say("--files %s: it has outputs of an earlier run: remove them, name another directory, or "
            "use --if-exists new",
            path);
        return SAY_WRONG;
    }
    if (strcmp(path, wanted) != 0)
        say("outputs go to %s", path);
    return 0;
}

static int open_files(struct engine *engine)
{
    const struct engine_options *opt = engine->opt;
    int rc;

    engine->null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    engine->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (engine->null_fd < 0 || engine->wake_fd < 0)
        return say_wrong("cannot start", errno);
    if (opt->tty && (engine->tty_fd = open("/dev/tty", O_RDWR | O_CLOEXEC)) < 0)
        return say_wrong("--tty: there is no terminal", errno);
    rc = opt->files_directory ? open_directory(engine, opt->files_directory) : 0;
    if (rc || !opt->results_path)
        return rc;
    return results_open(&engine->results, engine);
}

/* ---- the executor -------------------------------------------------------------------------------- */

/* What the rules say of a group that the executor has just met, or has met again. */
static int group_for(weir_group_policy *out, const char *key, void *arg)
{
    const struct rules *rules = &((const struct engine *)arg)->opt->rules;
    const struct rule *limit = rules_find(rules, RULE_LIMIT, key);
    const struct rule *weight = rules_find(rules, RULE_WEIGHT, key);
    const struct rule *rate = rules_find(rules, RULE_RATE, key);

    if (limit)
        out->limit = limit->count;
    if (weight)
        out->weight = weight->count;
    if (rate)
        out->pace = (weir_pace){ rate->rate.count, rate->rate.period_ns, rate->rate.burst };
    return 0;
}

static int start_executor(struct engine *engine)
{
    const struct engine_options *opt = engine->opt;
    weir_message message = { "" };
    int rc = weir_executor_new(
        &engine->executor,
        WEIR_POLICY(.inflight_max = opt->jobs,
                    .group_limit = opt->per_group ? opt->per_group : SLOTS_MAX,
                    .group_for = group_for, .group_arg = engine,
                    .listener = { .submitted = tally_submitted, .arg = engine->tallies },
                    .idle_evict_ms = GROUP_IDLE_MS),
        &message);

    if (rc == -EMFILE || rc == -EAGAIN)
        say_wrong("cannot start", -rc);
    else if (rc)
        say("%s", message.text[0] ? message.text : weir_strerror(rc));
    return rc ? SAY_WRONG : 0;
}

/* Descriptors that are open now; 0: no telling. */
static rlim_t open_descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    rlim_t count = 0;

    if (!directory)
        return 0;
    while (readdir(directory))
        count++;
    closedir(directory);
    return count > 3 ? count - 3 : 0; /* ".", ".." and the directory's own */
}

/* If there are too few descriptors to start even one command, no command would ever give one back. */
static int check_descriptors(void)
{
    enum { ONE_COMMAND = 9, ONE_WORKER = 2 };
    rlim_t open = open_descriptors(), needed = open + ONE_COMMAND + 2 * ONE_WORKER;
    struct rlimit limit;

    if (!open || getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= needed)
        return 0;
    say("no file descriptors for a command (limit %llu, %llu are needed): raise it with `ulimit "
        "-n`",
        (unsigned long long)limit.rlim_cur, (unsigned long long)needed);
    return SAY_WRONG;
}

static int start(struct engine *engine)
{
    int rc;

    child_raise_descriptors((rlim_t)engine->opt->jobs * 8 +
                            64); /* each takes up to eight of our descriptors */
    block_signals();
    rc = slots_new(&engine->slots, SLOTS_MAX, engine->run_id);
    if (!rc)
        rc = spool_new(&engine->spool, engine->opt->temporary);
    if (!rc)
        rc = printer_new(&engine->printer, engine);
    if (!rc)
        rc = tallies_new(&engine->tallies, engine);
    if (!rc)
        rc = retries_new(&engine->retries);
    if (!rc)
        rc = strays_new(&engine->strays, engine->run_id);
    if (!rc)
        rc = start_executor(engine);
    else
        rc = say_wrong("cannot start", -rc);
    if (!rc)
        rc = check_descriptors();
    if (!rc && engine->opt->journal_path)
        rc = journal_open(&engine->journal, engine);
    return rc;
}

static void stop(struct engine *engine)
{
    weir_executor_free(engine->executor); /* nothing runs in it any more */
    retries_free(engine->retries);
    strays_free(engine->strays);
    tallies_free(engine->tallies);
    printer_free(engine->printer);
    spool_free(engine->spool);
    slots_free(engine->slots);
    results_close(engine->results);
    journal_close(engine->journal);
    free(engine->environment);
    free(engine->files_directory);
    pthread_cond_destroy(&engine->window.room);
    pthread_mutex_destroy(&engine->window.lock);
}

int engine_run(const struct engine_options *opt, const struct source *source, int stop_fd)
{
    struct engine engine = {
        .opt = opt,
        .source = source,
        .directory_fd = -1,
        .tty_fd = -1,
        .gate = { .limits = &opt->gate },
        .jobs = opt->jobs,
        .window = { .lock = PTHREAD_MUTEX_INITIALIZER, .room = PTHREAD_COND_INITIALIZER },
        .stop_fd = stop_fd,
    };
    int status;

    strays_make_id(engine.run_id);
    status = copy_environment(&engine);
    if (!status)
        status = open_files(&engine);
    if (!status)
        status = start(&engine);
    if (!status)
        status = loop_run(&engine);
    stop(&engine);
    return status;
}
