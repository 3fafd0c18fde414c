/* A list of tasks: found by looking at all records, so that tasks pay nothing for being found; those that wait, in their queues.
 * Those without a record get one.
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

#include <stdlib.h>
#include <string.h>
#include <weir/error.h>

enum {
    ALL_STATES = WEIR_TASK_WAITING | WEIR_TASK_RUNNING | WEIR_TASK_PENDING,
    MAX_DEFAULT = 1000,
};

/* The query, and the tasks found so far, with a reference each. */
struct search {
    struct weir_executor *ex;
    weir_tasks_query query;
    struct weir_task **task;
    size_t count, room;
};

/* ---- finding ----------------------------------------------------------------------------------- */

/* The state of a record; 0: none of these, or it is not in use. */
static weir_task_state state_of(uint32_t word)
{
    static const weir_task_state by_phase[WR_PHASE_MASK + 1] = {
        [WR_PHASE_QUEUED] = WEIR_TASK_WAITING, [WR_PHASE_RUNNING] = WEIR_TASK_RUNNING,
        [WR_PHASE_GUEST] = WEIR_TASK_RUNNING,  [WR_PHASE_PENDING] = WEIR_TASK_PENDING,
        [WR_PHASE_ASIDE] = WEIR_TASK_PENDING,
    };

    return word >= WR_REF ? by_phase[word & WR_PHASE_MASK] : 0;
}

static bool is_asked_for(const struct search *search, const struct weir_group *group)
{
    return !search->query.key || strcmp(group->key, search->query.key) == 0;
}

/* Under the group's lock. */
static int keep(struct search *search, struct weir_task *task)
{
    search->room =
        wr_array_grow(&search->task, search->room, search->count, sizeof(search->task[0]));
    if (search->count == search->room)
        return WEIR_ENOMEM;
    search->task[search->count++] = weir_task_ref(task);
    return 0;
}

/* Keeps the record's task if it is in one of the states. Under the table's locks. */
static int consider(struct search *search, struct weir_task *task, uint32_t states)
{
    weir_task_state state = state_of(wr_load(&task->word, acquire)); /* pairs with wr_task_alloc */
    struct weir_group *group;
    int rc = 0;

    if (!(states & state))
        return 0;
    group = __atomic_load_n(&task->group, __ATOMIC_ACQUIRE);
    if (!is_asked_for(search, group))
        return 0;
    wr_group_lock(group);
    if (__atomic_load_n(&task->group, __ATOMIC_RELAXED) == group &&
        state_of(wr_task_word(task)) == state)
        rc = keep(search, task);
    wr_unlock(&group->lock);
    return rc;
}

/* One look at each record, until as many are found as are asked for. The table's locks are let go of between blocks of
 * them. */
static int find_begun(struct search *search)
{
    uint32_t states = search->query.states & ~(uint32_t)WEIR_TASK_WAITING;
    struct wr_table *table = &search->ex->table;
    size_t max = search->query.max, count;
    struct wr_block *at = NULL;
    struct weir_task *record;
    void *first;
    int rc = 0;

    while (states && !rc && search->count < max &&
           wr_cells_walk(&search->ex->cells, &at, &first, &count)) {
        record = first;
        wr_table_lock_all(table);
        for (size_t i = 0; i < count && search->count < max && !rc; i++)
            rc = consider(search, &record[i], states);
        wr_table_unlock_all(table);
    }
    return rc;
}

/* Tasks that wait fill the places that are left by the others. */
static int find_waiting(struct search *search)
{
    struct weir_group *group = NULL;
    struct weir_task *task;
    uint64_t *word;
    int rc = 0;

    while ((group = wr_table_walk(&search->ex->table, group))) {
        struct wr_group_walk at = { 0 };
        if (search->count == search->query.max || !is_asked_for(search, group))
            continue; /* to the end, which lets go of the last lock */
        wr_group_lock(group);
        while (!rc && search->count < search->query.max && (word = wr_group_next(group, &at))) {
            task = wr_is_entry(*word) ? wr_group_make_record(group, word) : wr_record_at(word);
            rc = task ? keep(search, task) : WEIR_ENOMEM;
        }
        wr_unlock(&group->lock);
    }
    return rc;
}

/* ---- describing -------------------------------------------------------------------------------- */

/* An entry with its own `why`. */
struct entry {
    weir_task_info info;
    weir_why why;
};

/* Copies its strings to *at, which moves on. False: it has ended meanwhile. */
static bool describe(struct entry *entry, struct weir_task *task, char **at)
{
    struct weir_group *group = task->group;
    weir_task_info *info = &entry->info;
    char *id = stpcpy(*at, group->key) + 1;

    wr_group_lock(group);
    info->state = state_of(wr_task_word(task));
    info->outcome = wr_task_outcome(task);
    info->since = info->state == WEIR_TASK_WAITING ? task->queued_at : task->started_at;
    wr_task_explain(&entry->why, task, false);
    wr_unlock(&group->lock);
    info->key = *at;
    info->id = id;
    info->why = &entry->why;
    if (entry->why.key == group->key)
        entry->why.key = info->key;
    *at = stpcpy(id, weir_task_id(task)) + 1;
    return info->state != 0;
}

static int by_state_and_age(const void *a, const void *b)
{
    static const int rank[] = { [WEIR_TASK_PENDING] = 1, [WEIR_TASK_WAITING] = 2 };
    const weir_task_info *x = *(weir_task_info *const *)a, *y = *(weir_task_info *const *)b;

    if (x->state != y->state)
        return rank[x->state] - rank[y->state];
    return (x->since > y->since) - (x->since < y->since);
}

/* Pointers, entries and strings in one allocation, which the caller frees with free(3). Answers how many there are. */
static size_t list(weir_task_info ***out, const struct search *found)
{
    size_t names = 0, n = 0, count = found->count;
    weir_task_info **info;
    struct entry *entry;
    char *at;

    for (size_t i = 0; i < count; i++)
        names += strlen(weir_task_key(found->task[i])) + strlen(weir_task_id(found->task[i])) + 2;
    *out = info = malloc((count + 1) * sizeof(info[0]) + count * sizeof(*entry) + names);
    if (!info)
        return 0;
    entry = (struct entry *)(void *)&info[count + 1];
    at = (char *)&entry[count];
    for (size_t i = 0; i < count; i++)
        if (describe(&entry[n], found->task[i], &at)) {
            info[n] = &entry[n].info;
            n++;
        }
    info[n] = NULL;
    qsort(info, n, sizeof(info[0]), by_state_and_age);
    return n;
}

int weir_executor_tasks(weir_task_info ***out, size_t *count, weir_executor *ex,
                        const weir_tasks_query *given)
{
    struct search search = { .ex = ex };
    weir_tasks_query *query = &search.query;
    size_t listed = 0;
    int rc;

    if (!out || !ex)
        return WEIR_EINVAL;
    *out = NULL;
    rc = wr_options_load(query, sizeof(*query), given);
    query->states = query->states ? query->states : ALL_STATES;
    query->max = query->max ? query->max : MAX_DEFAULT;
    if (!rc && query->states & ~(uint32_t)ALL_STATES)
        rc = WEIR_EINVAL;
    if (!rc)
        rc = find_begun(&search);
    if (!rc && query->states & WEIR_TASK_WAITING)
        rc = find_waiting(&search);
    if (!rc) {
        listed = list(out, &search);
        rc = *out ? 0 : WEIR_ENOMEM;
    }
    for (size_t i = 0; i < search.count; i++)
        weir_task_unref(search.task[i]);
    wr_os_free(search.task);
    if (count)
        *count = listed;
    return rc;
}
