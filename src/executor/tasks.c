/* A list of tasks: found by looking at all records, so that tasks pay nothing for being found. Those that wait without a
 * record get one first.
 *
 * Note: finding tasks. A record is in use while its word has references. Its group is freed only by a thread that has
 * held its shard's lock since the group's last record was recycled; so while we hold all of them, the group of a
 * record that we have seen in use is there. Under the group's lock, a task that waits, runs or is pending has a
 * reference, and we take another; from then on it can be looked at in peace.
 * SPDX-License-Identifier: MIT */
#include "base/array.h"
#include "base/options.h"
#include "base/os.h"
#include "executor/settle.h"
#include "executor/state.h"
#include "executor/why.h"

#include <stdlib.h>
#include <string.h>
#include <weir/error.h>

enum {
    ALL_STATES = WEIR_TASK_WAITING | WEIR_TASK_RUNNING | WEIR_TASK_PENDING,
    MAX_DEFAULT = 1000,
};

/* Tasks found so far, with a reference each. */
struct found {
    struct weir_task **task;
    size_t count, room;
};

/* ---- finding ----------------------------------------------------------------------------------- */

/* What state a record is in; 0: in none of those, or not in use. */
static weir_task_state state_of(uint32_t word)
{
    static const weir_task_state by_phase[WR_PHASE_MASK + 1] = {
        [WR_PHASE_QUEUED] = WEIR_TASK_WAITING, [WR_PHASE_RUNNING] = WEIR_TASK_RUNNING,
        [WR_PHASE_GUEST] = WEIR_TASK_RUNNING,  [WR_PHASE_PENDING] = WEIR_TASK_PENDING,
        [WR_PHASE_ASIDE] = WEIR_TASK_PENDING,
    };

    return word >= WR_REF ? by_phase[word & WR_PHASE_MASK] : 0;
}

/* Takes a reference of a record that was seen in use, if it is still in that state. Under the table's locks. */
static bool hold(struct weir_task *task, weir_task_state state, const char *key)
{
    struct weir_group *group = __atomic_load_n(&task->group, __ATOMIC_ACQUIRE);
    bool found;

    if (key && strcmp(group->key, key) != 0)
        return false;
    wr_group_lock(group);
    found = __atomic_load_n(&task->group, __ATOMIC_RELAXED) == group &&
            state_of(wr_task_word(task)) == state;
    if (found)
        weir_task_ref(task);
    wr_unlock(&group->lock);
    return found;
}

/* Keeps the record's task if it is in one of the states. Under the table's locks. */
static int consider(struct found *found, struct weir_task *task, uint32_t states,
                    const weir_tasks_query *query)
{
    weir_task_state state = state_of(wr_load(&task->word, acquire)); /* pairs with wr_task_alloc */

    if (!(states & state))
        return 0;
    found->room = wr_array_grow(&found->task, found->room, found->count, sizeof(found->task[0]));
    if (found->count == found->room)
        return WEIR_ENOMEM;
    if (hold(task, state, query->key))
        found->task[found->count++] = task;
    return 0;
}

/* Makes records of tasks that wait in the group without one, and counts *most down. */
static int make_records(struct weir_group *group, size_t *most)
{
    struct wr_queue_place at = { 0 };
    uint64_t *word;
    int rc = 0;

    wr_group_lock(group);
    while (*most && !rc && (word = wr_queue_next(&group->queue, &at))) {
        if (wr_is_entry(*word) && !wr_group_make_record(group, word))
            rc = WEIR_ENOMEM;
        *most -= 1;
    }
    wr_unlock(&group->lock);
    return rc;
}

static int make_all_records(struct weir_executor *ex, const weir_tasks_query *query, size_t most)
{
    struct weir_group *group = NULL;
    int rc = 0;

    wr_table_lock_all(&ex->table);
    while (most && !rc && (group = wr_table_next(&ex->table, group)))
        if (!query->key || strcmp(group->key, query->key) == 0)
            rc = make_records(group, &most);
    wr_table_unlock_all(&ex->table);
    return rc;
}

/* One look at each record, until as many are found as are asked for. The table's locks are let go of between blocks of
 * them. */
static int find(struct found *found, struct weir_executor *ex, uint32_t states,
                const weir_tasks_query *query)
{
    struct wr_block *at = NULL;
    struct weir_task *record;
    void *first;
    size_t count;
    int rc = 0;

    while (!rc && found->count < query->max && wr_cells_walk(&ex->cells, &at, &first, &count)) {
        record = first;
        wr_table_lock_all(&ex->table);
        for (size_t i = 0; i < count && found->count < query->max && !rc; i++)
            rc = consider(found, &record[i], states, query);
        wr_table_unlock_all(&ex->table);
    }
    return rc;
}

/* Tasks that wait fill the places that are left by the others. */
static int find_all(struct found *found, struct weir_executor *ex, const weir_tasks_query *query)
{
    uint32_t waiting = query->states & WEIR_TASK_WAITING, started = query->states & ~waiting;
    int rc = started ? find(found, ex, started, query) : 0;

    if (!rc && waiting)
        rc = make_all_records(ex, query, query->max - found->count);
    if (!rc && waiting)
        rc = find(found, ex, waiting, query);
    return rc;
}

static void let_go(struct found *found)
{
    for (size_t i = 0; i < found->count; i++)
        weir_task_unref(found->task[i]);
    wr_os_free(found->task);
}

/* ---- describing -------------------------------------------------------------------------------- */

/* An entry with its own `why`. */
struct entry {
    weir_task_info info;
    weir_why why;
};

/* False: it has ended meanwhile. */
static bool describe(struct entry *entry, struct weir_task *task)
{
    weir_task_info *info = &entry->info;

    wr_group_lock(task->group);
    info->state = state_of(wr_task_word(task));
    info->outcome = wr_task_outcome(task);
    info->since = info->state == WEIR_TASK_WAITING ? task->queued_at : task->started_at;
    wr_task_explain(&entry->why, task, false);
    wr_unlock(&task->group->lock);
    return info->state != 0;
}

/* Copies the strings to *at, which moves on. */
static void keep_names(struct entry *entry, const struct weir_task *task, char **at)
{
    entry->info.key = *at;
    *at = stpcpy(*at, weir_task_key(task)) + 1;
    entry->info.id = *at;
    *at = stpcpy(*at, weir_task_id(task)) + 1;
    if (entry->why.key == weir_task_key(task))
        entry->why.key = entry->info.key;
    entry->info.why = &entry->why;
}

static int rank_of(weir_task_state state)
{
    return state == WEIR_TASK_RUNNING ? 0 : state == WEIR_TASK_PENDING ? 1 : 2;
}

static int by_state_and_age(const void *a, const void *b)
{
    const weir_task_info *x = *(weir_task_info *const *)a, *y = *(weir_task_info *const *)b;

    if (x->state != y->state)
        return rank_of(x->state) - rank_of(y->state);
    return (x->since > y->since) - (x->since < y->since);
}

/* Pointers, entries and strings in one allocation, which the caller frees with free(3). */
static int list(weir_task_info ***out, size_t *listed, const struct found *found)
{
    size_t names = 0, n = 0, count = found->count;
    weir_task_info **info;
    struct entry *entry;
    char *at;

    for (size_t i = 0; i < count; i++)
        names += strlen(weir_task_key(found->task[i])) + strlen(weir_task_id(found->task[i])) + 2;
    info = malloc((count + 1) * sizeof(info[0]) + count * sizeof(*entry) + names);
    if (!info)
        return WEIR_ENOMEM;
    entry = (struct entry *)(void *)&info[count + 1];
    at = (char *)&entry[count];
    for (size_t i = 0; i < count; i++) {
        if (!describe(&entry[n], found->task[i]))
            continue;
        keep_names(&entry[n], found->task[i], &at);
        info[n] = &entry[n].info;
        n++;
    }
    info[n] = NULL;
    qsort(info, n, sizeof(info[0]), by_state_and_age);
    *out = info;
    *listed = n;
    return 0;
}

static int load_query(weir_tasks_query *query, const weir_tasks_query *given)
{
    int rc = wr_options_load(query, sizeof(*query), given);

    if (!query->states)
        query->states = ALL_STATES;
    if (!query->max)
        query->max = MAX_DEFAULT;
    return !rc && query->states & ~(uint32_t)ALL_STATES ? WEIR_EINVAL : rc;
}

int weir_executor_tasks(weir_task_info ***out, size_t *count, weir_executor *ex,
                        const weir_tasks_query *given)
{
    struct found found = { 0 };
    weir_tasks_query query;
    size_t listed = 0;
    int rc;

    if (!out || !ex)
        return WEIR_EINVAL;
    *out = NULL;
    rc = load_query(&query, given);
    if (!rc)
        rc = find_all(&found, ex, &query);
    if (!rc)
        rc = list(out, &listed, &found);
    let_go(&found);
    if (count)
        *count = listed;
    return rc;
}
