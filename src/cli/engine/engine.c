/* The engine: sets a run up, and takes it down.
 * SPDX-License-Identifier: MIT */
#include "cli/engine/child.h"
#include "cli/engine/printer.h"
#include "cli/engine/results.h"
#include "cli/engine/run.h"
#include "cli/engine/tally.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STATUS_WRONG = 255 };

/* A group without tasks is forgotten after this: nothing is lost by that, and endless input may have groups
 * without end. */
enum { GROUP_IDLE_MS = 1000 };

static int wrong(const char *what, int error)
{
    fprintf(stderr, "weir: %s: %s\n", what, strerror(error));
    return STATUS_WRONG;
}

/* ---- what runs need ------------------------------------------------------------------------------ */

static bool is_ours(const char *variable)
{
    static const char *const ours[] = { "WEIR_KEY=", "WEIR_SEQ=", "WEIR_SLOT=", "WEIR_ATTEMPT=",
                                        "WEIR_COOL_FD=" };

    for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
        if (!strncmp(variable, ours[i], strlen(ours[i])))
            return true;
    return false;
}

/* Ours without what commands get from us, so that a weir inside weir is not confused. */
static int copy_environment(struct engine *engine)
{
    extern char **environ;
    size_t count = 0;

    while (environ[count])
        count++;
    engine->environment = malloc((count + 1) * sizeof(*engine->environment));
    if (!engine->environment)
        return wrong("environment", ENOMEM);
    for (char **at = environ; *at; at++)
        if (!is_ours(*at))
            engine->environment[engine->environment_count++] = *at;
    return 0;
}

/* From here on signals come to the loop alone. SIGPIPE is an error of write(2). */
static void block_signals(void)
{
    sigset_t set;

    child_setup();
    signal(SIGCHLD, SIG_DFL); /* ignored, as we may inherit it, no exit status would reach us */
    loop_signals(&set);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static int open_directory(struct engine *engine, const char *path)
{
    if (mkdir(path, 0777) < 0 && errno != EEXIST)
        return wrong(path, errno);
    engine->directory_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return engine->directory_fd < 0 ? wrong(path, errno) : 0;
}

static int open_files(struct engine *engine)
{
    const struct engine_options *opt = engine->opt;
    int rc;

    engine->null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    engine->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (engine->null_fd < 0 || engine->wake_fd < 0)
        return wrong("cannot start", errno);
    rc = opt->files_directory ? open_directory(engine, opt->files_directory) : 0;
    if (rc || !opt->results_path)
        return rc;
    rc = results_open(&engine->results, opt->results_path);
    return rc ? wrong(opt->results_path, -rc) : 0;
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
                    .group_limit = opt->per_group ? opt->per_group : opt->jobs,
                    .group_for = group_for, .group_arg = engine,
                    .listener = { .submitted = tally_submitted, .arg = engine->tallies },
                    .idle_evict_ms = GROUP_IDLE_MS),
        &message);

    if (rc)
        fprintf(stderr, "weir: %s\n", message.text[0] ? message.text : weir_strerror(rc));
    return rc ? STATUS_WRONG : 0;
}

static int start(struct engine *engine)
{
    int rc;

    child_raise_descriptors((rlim_t)engine->opt->jobs * 8 +
                            64); /* each takes up to eight of ours */
    block_signals();
    rc = slots_new(&engine->slots, (uint32_t)engine->opt->jobs);
    if (!rc)
        rc = spool_new(&engine->spool, engine->opt->temporary);
    if (!rc)
        rc = printer_new(&engine->printer, engine);
    if (!rc)
        rc = tallies_new(&engine->tallies, engine);
    if (!rc)
        rc = retries_new(&engine->retries);
    return rc ? wrong("cannot start", -rc) : start_executor(engine);
}

static void stop(struct engine *engine)
{
    weir_executor_free(engine->executor); /* nothing runs in it any more */
    retries_free(engine->retries);
    tallies_free(engine->tallies);
    printer_free(engine->printer);
    spool_free(engine->spool);
    slots_free(engine->slots);
    results_close(engine->results);
    free(engine->environment);
    pthread_cond_destroy(&engine->window.room);
    pthread_mutex_destroy(&engine->window.lock);
}

int engine_run(const struct engine_options *opt, const struct source *source, int stop_fd)
{
    struct engine engine = {
        .opt = opt,
        .source = source,
        .directory_fd = -1,
        .window = { .lock = PTHREAD_MUTEX_INITIALIZER, .room = PTHREAD_COND_INITIALIZER },
        .stop_fd = stop_fd,
    };
    int status = copy_environment(&engine);

    if (!status)
        status = open_files(&engine);
    if (!status)
        status = start(&engine);
    if (!status)
        status = loop_run(&engine);
    stop(&engine);
    return status;
}
