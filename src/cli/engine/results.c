/* --results: one line of JSON per task, written in batches.
 * SPDX-License-Identifier: MIT */
#include "cli/engine/results.h"

#include "base/json.h"
#include "cli/engine/tally.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct results {
    pthread_mutex_t lock; /* a line is written in one go */
    FILE *file;
    int64_t epoch_ns; /* add it to a weir_time to get the time of day */
    bool told;        /* of an error */
};

int results_open(struct results **out, const char *path)
{
    struct results *results = calloc(1, sizeof(*results));
    struct timespec now;

    if (!results)
        return -ENOMEM;
    results->file = fopen(path, "we");
    if (!results->file) {
        int error = errno;
        free(results);
        return -error;
    }
    pthread_mutex_init(&results->lock, NULL);
    setvbuf(results->file, NULL, _IOFBF, 1 << 16);
    clock_gettime(CLOCK_REALTIME, &now);
    results->epoch_ns = now.tv_sec * INT64_C(1000000000) + now.tv_nsec - weir_now();
    *out = results;
    return 0;
}

static void put_string(FILE *file, const char *text)
{
    char small[512], *quoted = small;
    size_t length = strlen(text);
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

/* Seconds since 1970, exact to the microsecond. */
static void put_time(const struct results *results, const char *name, weir_time when)
{
    int64_t us = (when + results->epoch_ns) / 1000;

    if (when)
        fprintf(results->file, ",\"%s\":%lld.%06d", name, (long long)(us / 1000000),
                (int)(us % 1000000));
    else
        fprintf(results->file, ",\"%s\":null", name);
}

static void put_status(FILE *file, const struct task *task)
{
    if (task->outcome == OUTCOME_CANNOT_RUN)
        fprintf(file, ",\"exit\":%d,\"signal\":null", task->exec_error == ENOENT ? 127 : 126);
    else if (task->status < 0)
        fputs(",\"exit\":null,\"signal\":null", file);
    else if (WIFSIGNALED(task->status))
        fprintf(file, ",\"exit\":null,\"signal\":%d", WTERMSIG(task->status));
    else
        fprintf(file, ",\"exit\":%d,\"signal\":null", WEXITSTATUS(task->status));
}

void results_add(struct results *results, const struct task *task)
{
    FILE *file = results->file;

    pthread_mutex_lock(&results->lock);
    fprintf(file, "{\"seq\":%llu,\"group\":", (unsigned long long)task->seq);
    put_string(file, task->tally ? task->tally->key : "");
    fputs(",\"command\":[", file);
    for (char **word = task->plan.argv; word && *word; word++) {
        if (word != task->plan.argv)
            putc_unlocked(',', file);
        put_string(file, *word);
    }
    putc_unlocked(']', file);
    put_status(file, task);
    fprintf(file, ",\"attempts\":%lld", (long long)task->attempts);
    put_time(results, "queued", task->queued_at);
    put_time(results, "started", task->started_at);
    put_time(results, "ended", task->ended_at);
    fprintf(file, ",\"reason\":\"%s\"}\n", outcome_name(task->outcome));
    pthread_mutex_unlock(&results->lock);
}

int results_flush(struct results *results)
{
    bool failed;

    pthread_mutex_lock(&results->lock);
    errno = 0;
    failed = fflush_unlocked(results->file) || ferror_unlocked(results->file);
    pthread_mutex_unlock(&results->lock);
    if (!failed || results->told)
        return 0;
    results->told = true;
    return errno ? -errno : -EIO;
}

int results_close(struct results *results)
{
    int rc;

    if (!results)
        return 0;
    rc = results_flush(results);
    errno = 0;
    if (fclose(results->file) && !rc && !results->told)
        rc = errno ? -errno : -EIO;
    pthread_mutex_destroy(&results->lock);
    free(results);
    return rc;
}
