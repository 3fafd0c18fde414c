/* weir map: sets a run up, and takes it down.
 * SPDX-License-Identifier: MIT */
#include "cli/map.h"

#include "cli/child.h"
#include "cli/dry.h"
#include "cli/printer.h"
#include "cli/reader.h"
#include "cli/refuse.h"
#include "cli/results.h"
#include "cli/tally.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STATUS_WRONG = 255, STATUS_NOT_FOUND = 127, STATUS_NOT_EXECUTABLE = 126 };

/* A group without records is forgotten after this: nothing is lost by that, and endless input may have groups
 * without end. */
enum { GROUP_IDLE_MS = 1000 };

static int wrong(const char *what, int error)
{
    fprintf(stderr, "weir: %s: %s\n", what, strerror(error));
    return STATUS_WRONG;
}

static int wrong_text(const weir_message *message, int rc)
{
    fprintf(stderr, "weir: %s\n", message->text[0] ? message->text : weir_strerror(rc));
    return STATUS_WRONG;
}

/* ---- input and templates ------------------------------------------------------------------------- */

static int open_input(struct map *map)
{
    const char *name = map->opt->input;
    struct stat st;
    int fd = name ? open(name, O_RDONLY | O_CLOEXEC) : 0, rc;

    if (fd < 0)
        return wrong(name, errno);
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        map->input_size = st.st_size;
    if (!name && isatty(0))
        fputs("weir: reading records from the terminal; Ctrl-D ends the input\n", stderr);
    rc = reader_new(&map->reader, fd, name ? name : "standard input", map->opt->separator,
                    &map->syntax, map->stop_fd);
    return rc ? wrong(name ? name : "standard input", -rc) : 0;
}

/* The first row of a table has the names of the columns; without any row there is nothing to do. */
static int read_header(struct map *map)
{
    weir_message message = { "" };
    struct record header;
    int rc;

    if (!map->opt->header || (map->syntax.form != FORM_CSV && map->syntax.form != FORM_TSV))
        return 0;
    rc = reader_next(&header, map->reader, &message);
    map->no_rows = rc == 0;
    if (rc <= 0)
        return rc ? wrong_text(&message, rc) : 0;
    rc = record_split(&header, &map->syntax, &message);
    if (!rc)
        rc = record_syntax_set_names(&map->syntax, &header, &message);
    record_fini(&header);
    return rc ? wrong_text(&message, rc) : 0;
}

static size_t length_of(char *const *words)
{
    size_t n = 0;

    while (words[n])
        n++;
    return n;
}

static int make_one(struct template **out, const char *text, const struct map *map,
                    weir_message *message)
{
    char *word = (char *)text;

    return text ? template_new(out, &word, 1, &map->syntax, false, message) : 0;
}

static unsigned needs(const struct template *template)
{
    return template ? template_needs(template) : 0;
}

/* The number of the header's column of that name; 0: there is none. */
static size_t column(const struct map *map, const char *name)
{
    for (size_t i = 0; i < map->syntax.name_count; i++)
        if (strcmp(map->syntax.names[i], name) == 0)
            return i + 1;
    return 0;
}

/* {key} and {seq} are ours; but where there is a column of that name it may be meant, and without groups a key is
 * empty. Neither should be noticed by what the commands did. */
static int check_our_names(const struct map *map, weir_message *message)
{
    const char *group_by = map->opt->group_by;
    unsigned needed =
        needs(map->command) | needs(map->directory) | (map->opt->tag ? needs(map->tag) : 0);
    size_t key = column(map, "key"), seq = column(map, "seq");

    if (needed & TEMPLATE_NEEDS_SEQ && seq)
        return refuse(message,
                      "{seq} could be the record's number or the column \"seq\": write {%zu} for "
                      "the column; the number is in $WEIR_SEQ",
                      seq);
    if (!(needed & TEMPLATE_NEEDS_KEY) || (group_by && (!key || strcmp(group_by, "key") == 0)))
        return 0;
    if (!key)
        return refuse(message, "{key} needs --group-by; for the text itself"
                               " write \\{key}");
    return refuse(message,
                  "{key} could be the group or the column \"key\": write {%zu} for the column; the "
                  "group is in $WEIR_KEY",
                  key);
}

static int make_templates(struct map *map, char **words)
{
    const struct map_options *opt = map->opt;
    const char *tag = opt->tag ? opt->tag : opt->group_by ? "{key}" : "{}";
    weir_message message = { "" };
    bool append = !opt->to_stdin && !opt->no_append;
    size_t count = length_of(words);
    int rc;

    if (opt->shell)
        rc = template_new_shell(&map->command, "/bin/sh", words, count, &map->syntax, append,
                                &message);
    else
        rc = template_new(&map->command, words, count, &map->syntax, append, &message);
    if (!rc)
        rc = make_one(&map->directory, opt->directory, map, &message);
    if (!rc && opt->tagged)
        rc = make_one(&map->tag, tag, map, &message);
    if (!rc && opt->group_by && !map->no_rows)
        rc = key_rule_new(&map->key_rule, opt->group_by, &map->syntax, &message);
    if (!rc)
        rc = check_our_names(map, &message);
    map->needs_fields =
        map->syntax.form != FORM_LINES || map->key_rule ||
        (needs(map->command) | needs(map->tag) | needs(map->directory)) & TEMPLATE_NEEDS_FIELDS;
    return rc ? wrong_text(&message, rc) : 0;
}

/* A command that is the same for all is looked for once, and missed before anything is run. */
static int find_command(struct map *map, const char *command)
{
    bool relative = command[0] != '/' && strchr(command, '/');

    /* A relative path is looked up from --cwd, as in a shell that went there. */
    if (map->opt->shell || !template_command_is_fixed(map->command) ||
        (map->opt->directory && relative))
        return 0;
    map->resolved = child_find(command);
    if (map->resolved)
        return 0;
    if (errno == ENOENT && !strchr(command, '/'))
        fprintf(stderr, "weir: %s: command not found\n", command);
    else
        fprintf(stderr, "weir: %s: %s\n", command, strerror(errno));
    return errno == ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_EXECUTABLE;
}

/* ---- what runs need ------------------------------------------------------------------------------ */

/* Ours without what commands get from us, so that a weir inside weir is not confused. */
static int copy_environment(struct map *map)
{
    extern char **environ;
    size_t count = length_of(environ);

    map->environment = malloc((count + 1) * sizeof(*map->environment));
    if (!map->environment)
        return wrong("environment", ENOMEM);
    for (char **at = environ; *at; at++) {
        static const char *const ours[] = { "WEIR_KEY=", "WEIR_SEQ=", "WEIR_SLOT=", "WEIR_ATTEMPT=",
                                            "WEIR_COOL_FD=" };
        bool is_ours = false;
        for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
            is_ours |= !strncmp(*at, ours[i], strlen(ours[i]));
        if (!is_ours)
            map->environment[map->environment_count++] = *at;
    }
    return 0;
}

/* From here on signals come to the front alone. SIGPIPE is an error of write(2). */
static void block_signals(void)
{
    sigset_t set;

    child_setup();
    signal(SIGCHLD, SIG_DFL); /* ignored, as we may inherit it, no exit status would reach us */
    front_signals(&set);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static int open_files(struct map *map)
{
    const struct map_options *opt = map->opt;
    int rc;

    map->null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    map->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (map->null_fd < 0 || map->wake_fd < 0)
        return wrong("cannot start", errno);
    if (opt->files_directory) {
        if (mkdir(opt->files_directory, 0777) < 0 && errno != EEXIST)
            return wrong(opt->files_directory, errno);
        map->directory_fd = open(opt->files_directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (map->directory_fd < 0)
            return wrong(opt->files_directory, errno);
    }
    if (!opt->results_path)
        return 0;
    rc = results_open(&map->results, opt->results_path);
    return rc ? wrong(opt->results_path, -rc) : 0;
}

/* What the rules say of a group that the executor has just met, or has met again. */
static int group_for(weir_group_policy *out, const char *key, void *arg)
{
    const struct rules *rules = &((const struct map *)arg)->opt->rules;
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

static int start_executor(struct map *map)
{
    const struct map_options *opt = map->opt;
    weir_message message = { "" };
    int rc = weir_executor_new(
        &map->executor,
        WEIR_POLICY(.inflight_max = opt->jobs,
                    .group_limit = opt->per_group ? opt->per_group : opt->jobs,
                    .group_for = group_for, .group_arg = map,
                    .listener = { .submitted = tally_submitted, .arg = map->tallies },
                    .idle_evict_ms = GROUP_IDLE_MS),
        &message);

    return rc ? wrong_text(&message, rc) : 0;
}

static int start(struct map *map)
{
    int rc;

    child_raise_descriptors((rlim_t)map->opt->jobs * 8 + 64); /* each takes up to eight of ours */
    block_signals();
    rc = slots_new(&map->slots, (uint32_t)map->opt->jobs);
    if (!rc)
        rc = spool_new(&map->spool, map->opt->temporary);
    if (!rc)
        rc = printer_new(&map->printer, map);
    if (!rc)
        rc = tallies_new(&map->tallies, map);
    if (!rc)
        rc = retries_new(&map->retries);
    if (rc)
        return wrong("cannot start", -rc);
    return start_executor(map);
}

static void stop(struct map *map)
{
    weir_executor_free(map->executor); /* nothing runs in it any more */
    retries_free(map->retries);
    tallies_free(map->tallies);
    printer_free(map->printer);
    spool_free(map->spool);
    slots_free(map->slots);
    results_close(map->results);
    key_rule_free(map->key_rule);
    template_free(map->command);
    template_free(map->directory);
    template_free(map->tag);
    reader_free(map->reader);
    record_syntax_fini(&map->syntax);
    free(map->resolved);
    free(map->environment);
    pthread_cond_destroy(&map->window_room);
    pthread_mutex_destroy(&map->window_lock);
}

int map_run(const struct map_options *opt, const struct record_syntax *syntax, char **words)
{
    struct map map = {
        .opt = opt,
        .syntax = *syntax,
        .directory_fd = -1,
        .window_lock = PTHREAD_MUTEX_INITIALIZER,
        .window_room = PTHREAD_COND_INITIALIZER,
        .stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
    };
    int status = map.stop_fd < 0 ? wrong("cannot start", errno) : open_input(&map);

    if (!status)
        status = read_header(&map);
    if (!status)
        status = make_templates(&map, words);
    if (!status && opt->dry_run)
        status = dry_run(&map);
    else if (!status) {
        status = find_command(&map, words[0]);
        if (!status)
            status = copy_environment(&map);
        if (!status)
            status = open_files(&map);
        if (!status)
            status = start(&map);
        if (!status)
            status = front_run(&map);
    }
    stop(&map);
    return status;
}
