/* weir_spawn: the queue of new bodies, and their records.
 * SPDX-License-Identifier: MIT */
#include "runtime/spawn.h"

#include "base/assert.h"
#include "base/options.h"
#include "base/os.h"
#include "runtime/pool.h"
#include "runtime/worker.h"

#include <string.h>
#include <weir/error.h>

enum { NAME_WORDS = 4, SLAB_ITEMS = 63 };

/* 64 bytes. Records are recycled but never given back before the runtime goes, so the monitor
 * may read tag and name of one that has just ended; they are atomic words for its sake. */
struct wr_spawn_item {
    struct wr_spawn_item *next;
    weir_body *body;
    void *arg;
    _Atomic uint64_t tag;
    _Atomic uint64_t name[NAME_WORDS];
};

struct wr_spawn_slab {
    struct wr_spawn_slab *next;
    struct wr_spawn_item item[SLAB_ITEMS];
};

/* A body on an OS thread; made and freed one by one, a thread costs far more. */
struct thread_body {
    struct wr_job job;
    weir_runtime *runtime;
    weir_body *body;
    void *arg;
};

/* ---- the source ------------------------------------------------------------------------------ */

static void *spawn_pull(struct wr_source *source)
{
    struct wr_spawn *spawn = WR_CONTAINER(source, struct wr_spawn, source);
    struct wr_spawn_item *item;

    if (!wr_load(&spawn->waiting, relaxed))
        return NULL;
    wr_lock(&spawn->lock);
    item = spawn->first;
    if (item) {
        spawn->first = item->next;
        wr_sub(&spawn->waiting, 1, seq_cst);
    }
    wr_unlock(&spawn->lock);
    return item;
}

static bool spawn_pending(struct wr_source *source)
{
    return wr_load(&WR_CONTAINER(source, struct wr_spawn, source)->waiting, seq_cst) != 0;
}

static void spawn_run(struct wr_source *source, void *item_arg)
{
    struct wr_spawn *spawn = WR_CONTAINER(source, struct wr_spawn, source);
    struct wr_spawn_item *item = item_arg;

    item->body(item->arg);
    wr_body_over();
    wr_lock(&spawn->lock);
    item->next = spawn->unused;
    spawn->unused = item;
    wr_unlock(&spawn->lock);
    wr_runtime_ended(spawn->runtime);
}

static uint64_t spawn_describe(struct wr_source *source, void *item_arg, char *name,
                               const struct wr_sighting *seen)
{
    struct wr_spawn_item *item = item_arg;
    uint64_t words[NAME_WORDS];

    (void)source;
    (void)seen;
    for (int i = 0; i < NAME_WORDS; i++)
        words[i] = wr_load(&item->name[i], acquire); /* a newer name comes with a newer epoch */
    memcpy(name, words, sizeof(words));
    return wr_load(&item->tag, acquire);
}

/* Other threads write the name only before the body begins and after it has ended. */
static void spawn_identify(struct wr_source *source, void *item_arg,
                           const char *part[WR_NAME_PARTS])
{
    const char *name = (const char *)((struct wr_spawn_item *)item_arg)->name;

    (void)source;
    part[0] = "body \"";
    part[1] = *name ? name : "(unnamed)";
    part[2] = "\"";
}

void wr_spawn_init(struct wr_spawn *spawn, weir_runtime *rt)
{
    spawn->source = (struct wr_source){
        .pull = spawn_pull,
        .pending = spawn_pending,
        .run = spawn_run,
        .describe = spawn_describe,
        .identify = spawn_identify,
    };
    spawn->runtime = rt;
}

void wr_spawn_fini(struct wr_spawn *spawn)
{
    WR_ASSERT(!spawn->first);
    while (spawn->slabs) {
        struct wr_spawn_slab *slab = spawn->slabs;
        spawn->slabs = slab->next;
        wr_os_free(slab);
    }
}

void wr_spawn_close(struct wr_spawn *spawn)
{
    wr_lock(&spawn->lock);
    spawn->closed = true;
    wr_unlock(&spawn->lock);
}

void wr_spawn_count(struct wr_spawn *spawn, uint64_t *accepted, uint64_t *ended)
{
    wr_lock(&spawn->lock);
    *accepted = spawn->accepted;
    *ended = spawn->accepted - wr_load(&spawn->runtime->live, relaxed);
    wr_unlock(&spawn->lock);
}

/* ---- spawning -------------------------------------------------------------------------------- */

/* Counts one more body in, unless the runtime is closing. Under the lock. */
static int accept_one(struct wr_spawn *spawn)
{
    if (spawn->closed)
        return WEIR_ECLOSED;
    spawn->accepted++;
    wr_add(&spawn->runtime->live, 1, relaxed);
    return 0;
}

static struct wr_spawn_item *unused_item(struct wr_spawn *spawn)
{
    struct wr_spawn_item *item = spawn->unused;

    if (!item) {
        struct wr_spawn_slab *slab = wr_os_alloc(sizeof(*slab));
        if (!slab)
            return NULL;
        slab->next = spawn->slabs;
        spawn->slabs = slab;
        for (int i = SLAB_ITEMS; i-- > 0;) {
            slab->item[i].next = spawn->unused;
            spawn->unused = &slab->item[i];
        }
        item = spawn->unused;
    }
    spawn->unused = item->next;
    return item;
}

static void set_name(struct wr_spawn_item *item, const char *name)
{
    uint64_t words[NAME_WORDS] = { 0 };

    if (name)
        strncpy((char *)words, name, sizeof(words) - 1);
    for (int i = 0; i < NAME_WORDS; i++)
        wr_store(&item->name[i], words[i], release);
}

static int spawn_on_worker(weir_runtime *rt, weir_body *body, void *arg,
                           const weir_spawn_options *opt)
{
    struct wr_spawn *spawn = &rt->spawn;
    struct wr_spawn_item *item = NULL;
    int rc;

    wr_lock(&spawn->lock);
    rc = spawn->closed ? WEIR_ECLOSED : 0;
    if (!rc && !(item = unused_item(spawn)))
        rc = WEIR_ENOMEM;
    if (!rc) {
        accept_one(spawn);
        item->next = NULL;
        item->body = body;
        item->arg = arg;
        wr_store(&item->tag, opt->tag, release);
        set_name(item, opt->name);
        if (spawn->first)
            spawn->last->next = item;
        else
            spawn->first = item;
        spawn->last = item;
        wr_add(&spawn->waiting, 1, seq_cst); /* pairs with the sleeper's look; see parking.md */
    }
    wr_unlock(&spawn->lock);
    if (!rc)
        wr_runtime_wake(rt);
    return rc;
}

static void run_on_thread(struct wr_job *job)
{
    struct thread_body *body = WR_CONTAINER(job, struct thread_body, job);
    weir_runtime *rt = body->runtime;

    body->body(body->arg);
    wr_os_free(body);
    wr_runtime_ended(rt);
}

static int spawn_on_thread(weir_runtime *rt, weir_body *fn, void *arg)
{
    struct thread_body *body = wr_os_alloc(sizeof(*body));
    int rc;

    if (!body)
        return WEIR_ENOMEM;
    *body = (struct thread_body){ .job.run = run_on_thread, .runtime = rt, .body = fn, .arg = arg };
    wr_lock(&rt->spawn.lock);
    rc = accept_one(&rt->spawn);
    wr_unlock(&rt->spawn.lock);
    if (!rc) {
        rc = wr_pool_submit(&rt->pool, &body->job, WR_JOB_IN_TURN);
        if (!rc)
            return 0;
        wr_lock(&rt->spawn.lock);
        rt->spawn.accepted--;
        wr_runtime_ended(rt);
        wr_unlock(&rt->spawn.lock);
    }
    wr_os_free(body);
    return rc;
}

int weir_spawn(weir_runtime *rt, weir_body *body, void *arg, const weir_spawn_options *opt)
{
    weir_spawn_options o;
    int rc = wr_options_load(&o, sizeof(o), opt);

    if (rc)
        return rc;
    if (!rt || !body)
        return WEIR_EINVAL;
    switch (o.run_on) {
    case WEIR_WORKERS: /* workers of an executor pull from its groups only */
        return rt->source == &rt->spawn.source ? spawn_on_worker(rt, body, arg, &o) : WEIR_EINVAL;
    case WEIR_THREADS:
        return spawn_on_thread(rt, body, arg);
    }
    return WEIR_EINVAL;
}
