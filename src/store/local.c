/* A store in the memory of this process: cells that only their guard knows.
 *
 * The registry of guards keeps the names, so this store needs none: each open makes a new cell.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "base/list.h"
#include "base/os.h"
#include "base/spin.h"
#include "runtime/runtime.h"

#include <assert.h>
#include <stdio.h>
#include <weir/sys/store.h>

/* Under the lock, except `word`:
 *     word & SLOW   <=>  the line is not empty, or `frozen`
 *     waiting       ==   length of the line                                                    */
struct local_cell {
    struct weir_cell base; /* first */
    void *block;           /* what was allocated: a cell begins with a cache line                */
    struct wr_list line;
    bool frozen; /* the owner of the lock has read how many permits are used                     */
    _Alignas(64) _Atomic uint64_t word;
    _Atomic uint64_t hint;
    struct wr_spin lock;
    int64_t waiting;
    _Alignas(16) unsigned char state[];
};

struct local_place {
    void (*told)(weir_place *place);
    uint64_t stamp;
    struct wr_list link;
    struct wr_parker *parker;
    struct wr_parker storage;
};
static_assert(sizeof(struct local_place) <= sizeof(weir_place), "a place has room for ours");

static const weir_store_ops local_ops;
static weir_store default_store = { &local_ops };

weir_store *weir_store_default(void)
{
    return &default_store;
}

static struct local_cell *of(weir_cell *cell)
{
    return (struct local_cell *)cell;
}

static int local_open(weir_cell **out, weir_store *store, const weir_cell_spec *spec,
                      weir_message *message)
{
    const uintptr_t align = _Alignof(struct local_cell);
    struct local_cell *cell;
    void *block;

    (void)store;
    if (!spec->create) {
        if (message)
            snprintf(message->text, sizeof(message->text), "%s: %s", spec->name,
                     weir_strerror(WEIR_ENOGUARD));
        return WEIR_ENOGUARD;
    }
    block = wr_os_alloc(sizeof(*cell) + spec->state_size + align - 1);
    if (!block)
        return WEIR_ENOMEM;
    cell = (struct local_cell *)(((uintptr_t)block + align - 1) / align * align);
    cell->block = block;
    cell->base.ops = &local_ops;
    wr_list_init(&cell->line);
    spec->init(cell->state, spec->arg);
    *out = &cell->base;
    return 0;
}

static void local_close(weir_cell *cell)
{
    wr_os_free(of(cell)->block);
}

static int local_lock(weir_cell *cell)
{
    wr_spin_lock(&of(cell)->lock, 1);
    return 0;
}

static int local_unlock(weir_cell *cell)
{
    struct local_cell *c = of(cell);

    if (c->frozen) {
        c->frozen = false;
        if (c->waiting == 0)
            wr_sub(&c->word, WEIR_WORD_SLOW, release);
    }
    wr_spin_unlock(&c->lock);
    return 0;
}

static const void *local_read(weir_cell *cell)
{
    return of(cell)->state;
}

static void *local_write(weir_cell *cell)
{
    return of(cell)->state;
}

static int64_t local_used(weir_cell *cell)
{
    struct local_cell *c = of(cell);
    uint64_t word = wr_load(&c->word, acquire);

    if (!c->frozen && c->waiting == 0)
        word = wr_add(&c->word, WEIR_WORD_SLOW, acq_rel);
    c->frozen = true;
    return (int64_t)(word & WEIR_WORD_USED);
}

static void local_take(weir_cell *cell, int64_t permits)
{
    wr_add(&of(cell)->word, WEIR_WORD_ENTERED + (uint64_t)permits, acq_rel);
}

static void local_give(weir_cell *cell, int64_t permits)
{
    wr_sub(&of(cell)->word, (uint64_t)permits, acq_rel);
}

/* ---- the line -------------------------------------------------------------------------------- */

static uint64_t stamp_of(const struct wr_list *link)
{
    return WR_CONTAINER(link, struct local_place, link)->stamp;
}

/* Nearly all come last. One that was called and comes again is older than most. */
static int local_join(weir_cell *cell, weir_place *place)
{
    struct local_cell *c = of(cell);
    struct local_place *p = (struct local_place *)place;
    struct wr_list *next = &c->line;

    local_used(cell); /* no more fast enters */
    p->parker = p->told ? NULL : wr_parker_self(&p->storage);
    if (!wr_list_empty(&c->line) && p->stamp < stamp_of(c->line.prev))
        for (next = c->line.next; stamp_of(next) < p->stamp;)
            next = next->next;
    wr_list_append(next, &p->link); /* just before it */
    c->waiting++;
    return 0;
}

static bool local_is_first(weir_cell *cell, const weir_place *place)
{
    const struct wr_list *line = &of(cell)->line;

    return line->next == (place ? &((const struct local_place *)place)->link : line);
}

static bool local_is_before(weir_cell *cell, uint64_t stamp)
{
    const struct wr_list *line = &of(cell)->line;

    return line->next == line || stamp < stamp_of(line->next);
}

static void local_part(weir_cell *cell, weir_place *place)
{
    local_used(cell); /* if this was the last one, unlock thaws the word */
    wr_list_remove(&((struct local_place *)place)->link);
    of(cell)->waiting--;
}

static int64_t local_waiting(weir_cell *cell)
{
    return of(cell)->waiting;
}

/* Under the lock, as local_part is, so the waiter cannot be gone. */
static void local_tell(weir_cell *cell)
{
    struct wr_list *first = of(cell)->line.next;
    struct local_place *p = WR_CONTAINER(first, struct local_place, link);

    if (first == &of(cell)->line)
        return;
    if (p->told)
        p->told((weir_place *)p);
    else
        wr_unpark(p->parker);
}

static void local_wait(weir_cell *cell, weir_place *place, weir_time deadline)
{
    (void)cell;
    wr_park(((struct local_place *)place)->parker, deadline);
}

static bool local_sweep(weir_cell *cell)
{
    (void)cell;
    return false; /* all holders end together */
}

/* ---- words, holders -------------------------------------------------------------------------- */

static uint64_t *local_word(weir_cell *cell)
{
    return (uint64_t *)&of(cell)->word;
}

static uint64_t *local_hint(weir_cell *cell)
{
    return (uint64_t *)&of(cell)->hint;
}

static bool local_holder(weir_cell *cell, size_t at, int64_t *pid, int64_t *permits)
{
    *pid = 0;
    *permits = (int64_t)(wr_load(&of(cell)->word, relaxed) & WEIR_WORD_USED);
    return at == 0 && *permits > 0;
}

static void local_free(weir_store *store)
{
    if (store != &default_store)
        wr_os_free(store);
}

static const weir_store_ops local_ops = {
    .size = sizeof(local_ops),
    .free_store = local_free,
    .open = local_open,
    .close = local_close,
    .lock = local_lock,
    .unlock = local_unlock,
    .read = local_read,
    .write = local_write,
    .used = local_used,
    .take = local_take,
    .give = local_give,
    .join = local_join,
    .is_first = local_is_first,
    .is_before = local_is_before,
    .part = local_part,
    .waiting = local_waiting,
    .tell = local_tell,
    .wait = local_wait,
    .sweep = local_sweep,
    .word = local_word,
    .hint = local_hint,
    .holder = local_holder,
};

int weir_store_local(weir_store **out)
{
    weir_store *store;

    if (!out)
        return WEIR_EINVAL;
    store = wr_os_alloc(sizeof(*store));
    if (!store)
        return WEIR_ENOMEM;
    store->ops = &local_ops;
    *out = store;
    return 0;
}
