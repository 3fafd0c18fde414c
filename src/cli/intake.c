/* The reader's thread: from records to jobs, as many as may be under way.
 * SPDX-License-Identifier: MIT */
#include "cli/map.h"
#include "cli/printer.h"
#include "cli/reader.h"
#include "cli/tally.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WINDOW_BYTES = 64 << 20 }; /* of records under way, whatever their number */

/* ---- the window ---------------------------------------------------------------------------------- */

static bool has_room(const struct map *map)
{
    return map->under_way < (uint64_t)(map->opt->max_wait + map->opt->jobs) &&
           (map->under_way_bytes < WINDOW_BYTES || map->under_way == 0);
}

/* Waits until one more may be under way; false: no more are wanted. */
static bool window_wait(struct map *map)
{
    bool wanted;

    pthread_mutex_lock(&map->window_lock);
    while (!has_room(map) && atomic_load(&map->phase) == MAP_RUNNING)
        pthread_cond_wait(&map->window_room, &map->window_lock);
    wanted = atomic_load(&map->phase) == MAP_RUNNING;
    pthread_mutex_unlock(&map->window_lock);
    return wanted;
}

static void window_enter(struct map *map, size_t weight)
{
    pthread_mutex_lock(&map->window_lock);
    map->under_way++;
    map->under_way_bytes += weight;
    pthread_mutex_unlock(&map->window_lock);
}

void window_leave(struct map *map, size_t weight)
{
    bool had_room, closed;

    pthread_mutex_lock(&map->window_lock);
    had_room = has_room(map);
    map->under_way--;
    map->under_way_bytes -= weight;
    if (!had_room && has_room(map))
        pthread_cond_signal(&map->window_room);
    closed = map->input_over && map->under_way == 0;
    pthread_mutex_unlock(&map->window_lock);
    if (closed)
        front_wake(map);
}

bool window_is_closed(struct map *map)
{
    bool closed;

    pthread_mutex_lock(&map->window_lock);
    closed = map->input_over && map->under_way == 0;
    pthread_mutex_unlock(&map->window_lock);
    return closed;
}

void intake_stop(struct map *map)
{
    uint64_t one = 1;
    ssize_t n = write(map->stop_fd, &one, sizeof(one));

    (void)n; /* an eventfd that nobody reads takes more of them than we ever write */
    pthread_mutex_lock(&map->window_lock);
    pthread_cond_signal(&map->window_room);
    pthread_mutex_unlock(&map->window_lock);
}

/* ---- jobs ---------------------------------------------------------------------------------------- */

/* Fills in what the command line says about the record; 0, or WEIR_EINVAL with a sentence, or WEIR_ENOMEM. */
static int fill(struct job *job, struct record *record, weir_message *message)
{
    struct map *map = job->map;
    struct template_values values = { .record = record, .syntax = &map->syntax, .seq = job->seq };
    char *key = NULL;
    int rc = map->needs_fields ? record_split(record, &map->syntax, message) : 0;

    if (!rc && map->key_rule)
        rc = key_of(&key, map->key_rule, record, &map->syntax, message);
    if (rc)
        return rc;
    values.key = key ? key : "";
    rc = template_fill(&job->argv, map->command, &values, message);
    if (!rc && map->directory)
        rc = template_fill_one(&job->directory, map->directory, &values, message);
    if (!rc && map->tag)
        rc = template_fill_one(&job->tag, map->tag, &values, message);
    if (!rc && !(job->tally = tally_get(map->tallies, values.key)))
        rc = WEIR_ENOMEM;
    free(key);
    return rc;
}

/* A job for a record, which is used up; NULL without memory. A record that makes no command is a job that has
 * ended: BAD_INPUT, and that was said. */
static struct job *job_new(struct map *map, struct record *record)
{
    struct job *job = calloc(1, sizeof(*job));
    weir_message message = { "" };
    int rc;

    if (!job)
        return NULL;
    job->map = map;
    job->seq = atomic_fetch_add(&map->read, 1) + 1;
    job->weight = record->length;
    job->outcome = OUTCOME_NOT_RUN;
    job->status = -1;
    rc = fill(job, record, &message);
    if (rc) {
        job->outcome = OUTCOME_BAD_INPUT;
        map_say(map, "%s", rc == WEIR_ENOMEM ? weir_strerror(rc) : message.text);
    }
    if (map->opt->to_stdin)
        job->input = *record;
    else
        record_fini(record);
    *record = (struct record){ 0 };
    return job;
}

/* Reads one record and makes a job of it; false: that was the last. */
static bool take_one(struct map *map)
{
    weir_message message = { "" };
    struct record record;
    struct job *job;
    int rc = reader_next(&record, map->reader, &message);

    if (rc <= 0) {
        if (rc < 0 && rc != WEIR_ECANCELED) {
            atomic_store(&map->wrong, true);
            map_say(map, "%s", message.text[0] ? message.text : weir_strerror(rc));
        }
        atomic_store(&map->all_read, rc == 0);
        return false;
    }
    atomic_store(&map->input_bytes, reader_bytes(map->reader));
    job = job_new(map, &record);
    if (!job) {
        record_fini(&record);
        atomic_store(&map->wrong, true);
        map_say(map, "%s", weir_strerror(WEIR_ENOMEM));
        return false;
    }
    window_enter(map, job->weight);
    if (job->outcome == OUTCOME_BAD_INPUT)
        job_end(job);
    else
        job_submit(job);
    return true;
}

/* Records that make no command leave the window at once, but what is said about them waits to be printed. */
static void wait_for_printer(struct map *map)
{
    struct pollfd polled[] = {
        { .fd = printer_room_fd(map->printer), .events = POLLIN },
        { .fd = map->stop_fd, .events = POLLIN },
    };

    while (printer_is_full(map->printer) && !polled[1].revents)
        poll(polled, 2, -1);
}

static void *run(void *arg)
{
    struct map *map = arg;

    while (window_wait(map) && take_one(map))
        wait_for_printer(map);
    pthread_mutex_lock(&map->window_lock);
    map->input_over = true;
    pthread_mutex_unlock(&map->window_lock);
    front_wake(map);
    return NULL;
}

int intake_start(pthread_t *thread, struct map *map)
{
    return -pthread_create(thread, NULL, run, map);
}
