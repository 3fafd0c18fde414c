/* --results: one line of JSON per task, each written in one piece.
 * SPDX-License-Identifier: MIT */
#include "cli/engine/results.h"

#include "base/json.h"
#include "cli/engine/fresh.h"
#include "cli/engine/printer.h"
#include "cli/engine/tally.h"
#include "cli/engine/write_whole.h"
#include "cli/screen/say.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ATTEMPT_TEXT_MAX = 4096 };

struct results {
    struct engine *engine;
    pthread_mutex_t lock;
    FILE *line; /* writes to `text`, from its beginning for each line */
    char *text;
    size_t length;
    int fd; /* -1: standard output, by way of the printer */
    char *path;
    int64_t epoch_ns; /* add it to a weir_time to get the time of day */
    bool failed;
};

/* ---- the file ------------------------------------------------------------------------------------ */

static int refuse_open(const char *path, const char *why)
{
    say("--results %s: %s", path, why);
    return SAY_WRONG;
}

static bool is_same(int fd, const struct stat *file)
{
    struct stat st;

    return fstat(fd, &st) == 0 && st.st_dev == file->st_dev && st.st_ino == file->st_ino;
}

/* Looks at the file before anything of it is changed. 0: it may be written to. */
static int inspect(const struct results *results)
{
    const struct engine_options *opt = results->engine->opt;
    struct stat st;

    if (fstat(results->fd, &st) < 0 || !S_ISREG(st.st_mode))
        return 0;
    for (size_t i = 0; i < opt->input_count; i++)
        if (opt->inputs[i].device == st.st_dev && opt->inputs[i].inode == st.st_ino)
            return refuse_open(results->path, "this is the input; name another file");
    if (is_same(1, &st))
        return refuse_open(results->path, "this is standard output; write --results -");
    if (flock(results->fd, LOCK_EX | LOCK_NB) < 0)
        return refuse_open(results->path, "another weir is writing to it; name another file");
    if (st.st_size > 0 && opt->if_exists != EXISTS_APPEND)
        return refuse_open(results->path, "it has results already: remove it, or use "
                                          "--if-exists append or --if-exists new");
    return 0;
}

static int open_path(struct results *results)
{
    const struct engine_options *opt = results->engine->opt;
    int status;

    results->path =
        fresh_name(opt->results_path, opt->if_exists == EXISTS_NEW, fresh_is_empty_file);
    if (!results->path)
        return refuse_open(opt->results_path, strerror(errno));
    results->fd = open(results->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (results->fd < 0)
        return refuse_open(results->path, strerror(errno));
    status = inspect(results);
    if (!status && strcmp(results->path, opt->results_path) != 0)
        say("results go to %s", results->path);
    return status;
}

int results_open(struct results **out, struct engine *engine)
{
    struct results *results = *out = calloc(1, sizeof(*results));
    struct timespec now;

    if (!results)
        return refuse_open(engine->opt->results_path, strerror(ENOMEM));
    results->engine = engine;
    results->fd = -1;
    pthread_mutex_init(&results->lock, NULL);
    results->line = open_memstream(&results->text, &results->length);
    if (!results->line)
        return refuse_open(engine->opt->results_path, strerror(errno));
    clock_gettime(CLOCK_REALTIME, &now);
    results->epoch_ns = now.tv_sec * INT64_C(1000000000) + now.tv_nsec - weir_now();
    return strcmp(engine->opt->results_path, "-") == 0 ? 0 : open_path(results);
}

/* ---- a line -------------------------------------------------------------------------------------- */

static void put_text(FILE *file, const char *text, size_t length)
{
    char small[512], *quoted = small;
    size_t size = wr_json_quote(small, sizeof(small), text, length);

    if (size > sizeof(small)) {
        quoted = malloc(size);
        if (!quoted) {
            fputs("null", file);
            return;
        }
        wr_json_quote(quoted, size, text, length);
    }
    fwrite(quoted, 1, size, file);
    if (quoted != small)
        free(quoted);
}

static void put_string(FILE *file, const char *text)
{
    put_text(file, text, strlen(text));
}

/* Seconds since 1970, exact to the microsecond. */
static void put_time(const struct results *results, const char *name, weir_time when)
{
    int64_t us = (when + results->epoch_ns) / 1000;

    if (when)
        fprintf(results->line, ",\"%s\":%lld.%06d", name, (long long)(us / 1000000),
                (int)(us % 1000000));
    else
        fprintf(results->line, ",\"%s\":null", name);
}

static void put_status(FILE *file, const struct task *task)
{
    if (task->outcome == OUTCOME_CANNOT_RUN)
        fprintf(file, "\"exit\":%d,\"signal\":null", task->exec_error == ENOENT ? 127 : 126);
    else if (task->status < 0)
        fputs("\"exit\":null,\"signal\":null", file);
    else if (WIFSIGNALED(task->status))
        fprintf(file, "\"exit\":null,\"signal\":%d", WTERMSIG(task->status));
    else
        fprintf(file, "\"exit\":%d,\"signal\":null", WEXITSTATUS(task->status));
}

static void put_words(FILE *file, char *const *words)
{
    putc_unlocked('[', file);
    for (char *const *word = words; word && *word; word++) {
        if (word != words)
            putc_unlocked(',', file);
        put_string(file, *word);
    }
    putc_unlocked(']', file);
}

/* What stood in the input: a string, or an array of several. */
static void put_record(FILE *file, const struct plan *plan)
{
    fputs(",\"record\":", file);
    if (!plan->record_count) {
        fputs("null", file);
        return;
    }
    if (plan->record_count > 1)
        putc_unlocked('[', file);
    for (size_t i = 0; i < plan->record_count; i++) {
        if (i)
            putc_unlocked(',', file);
        put_text(file, plan->record[i].text, plan->record[i].length);
    }
    if (plan->record_count > 1)
        putc_unlocked(']', file);
}

static void put_line(struct results *results, const struct task *task)
{
    FILE *file = results->line;

    fprintf(file, "{\"seq\":%llu,\"group\":", (unsigned long long)task->seq);
    put_string(file, task->tally ? task->tally->key : "");
    fputs(",\"command\":", file);
    put_words(file, task->plan.argv);
    putc_unlocked(',', file);
    put_status(file, task);
    fprintf(file, ",\"attempts\":%lld", (long long)task->attempts);
    put_time(results, "queued", task->queued_at);
    put_time(results, "started", task->started_at);
    put_time(results, "ended", task->ended_at);
    fprintf(file, ",\"reason\":\"%s\"", outcome_name(task->outcome));
    put_record(file, &task->plan);
    if (task->failed_attempts)
        fprintf(file, ",\"failed_attempts\":[%s]", task->failed_attempts);
    fputs("}\n", file);
}

void results_add(struct results *results, const struct task *task)
{
    int error = 0;

    pthread_mutex_lock(&results->lock);
    rewind(results->line);
    put_line(results, task);
    if (fflush(results->line) || ferror(results->line))
        error = ENOMEM;
    else if (results->fd < 0)
        printer_text(results->engine->printer, 1, results->text, (size_t)ftell(results->line));
    else if (!results->failed)
        error = write_whole(results->fd, results->text, (size_t)ftell(results->line));
    if (results->failed)
        error = 0; /* said before */
    results->failed |= error != 0;
    pthread_mutex_unlock(&results->lock);
    if (error)
        engine_fail(results->engine, "--results %s: %s; starting no more commands", results->path,
                    strerror(error));
}

/* ---- attempts ------------------------------------------------------------------------------------ */

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The last bytes of a stream that the last attempt wrote, at most ATTEMPT_TEXT_MAX. */
static size_t end_of(char *out, struct task *task, int which)
{
    const struct spooled *stream = &task->stream[which];
    char *piece = malloc(SPOOL_PIECE);
    size_t position = 0, length = 0, keep, all = 0;
    int64_t n;

    while (piece && (n = spooled_read(stream, task->engine->spool, piece, &position)) > 0) {
        all += (size_t)n;
        if (all <= task->earlier[which])
            continue;
        keep = smaller(all - task->earlier[which], (size_t)n);
        keep = smaller(keep, ATTEMPT_TEXT_MAX);
        if (length + keep > ATTEMPT_TEXT_MAX) {
            size_t drop = length + keep - ATTEMPT_TEXT_MAX;
            memmove(out, out + drop, length - drop);
            length -= drop;
        }
        memcpy(out + length, piece + n - keep, keep);
        length += keep;
    }
    free(piece);
    task->earlier[which] = all;
    return length;
}

void results_note_attempt(struct task *task)
{
    char text[ATTEMPT_TEXT_MAX], *array = NULL;
    size_t length;
    FILE *file = open_memstream(&array, &length);

    if (!file)
        return; /* the attempt is counted all the same */
    if (task->failed_attempts)
        fprintf(file, "%s,", task->failed_attempts);
    putc('{', file);
    put_status(file, task);
    fputs(",\"out\":", file);
    put_text(file, text, end_of(text, task, 0));
    fputs(",\"err\":", file);
    put_text(file, text, end_of(text, task, 1));
    putc('}', file);
    if (fclose(file) == 0) {
        free(task->failed_attempts);
        task->failed_attempts = array;
    } else {
        free(array);
    }
}

int results_close(struct results *results)
{
    int rc = 0;

    if (!results)
        return 0;
    if (results->fd >= 0 && close(results->fd) < 0 && !results->failed)
        rc = -errno;
    if (results->line)
        fclose(results->line);
    free(results->text);
    free(results->path);
    pthread_mutex_destroy(&results->lock);
    free(results);
    return rc;
}
