/* The line of a cell that processes share: a ring of tickets.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "store/host.h"

enum { LOOK_AGAIN_NS = 10000000 };

static _Atomic uint32_t *entry(struct wr_host_file *file, uint64_t ticket)
{
    return &file->line[ticket % WR_LINE];
}

/* Places that were given up do not stand in front. */
static void advance(struct wr_host_file *file)
{
    uint64_t head = wr_load(&file->head, relaxed), tail = wr_load(&file->tail, relaxed);

    while (head < tail && wr_load(entry(file, head), relaxed) == 0)
        head++;
    wr_store(&file->head, head, release);
}

int wr_host_join(weir_cell *handle, weir_place *place)
{
    struct wr_host_place *p = (struct wr_host_place *)place;
    struct wr_host_cell *cell = wr_host_cell_of(handle);
    struct wr_host_file *file = cell->file;
    uint64_t tail = wr_load(&file->tail, relaxed);

    advance(file);
    if (tail - wr_load(&file->head, relaxed) >= WR_LINE)
        return WEIR_EAGAIN;
    p->who = p->told ? NULL : wr_parker_self(&p->storage);
    p->ticket = tail;
    p->cell = cell;
    p->watches = false;
    wr_lock(&cell->store->waiters_lock);
    wr_list_append(&cell->store->waiters, &p->link);
    wr_unlock(&cell->store->waiters_lock);
    wr_store(&file->stamp[tail % WR_LINE], p->stamp, relaxed);
    wr_store(entry(file, tail), cell->seat + 1, relaxed);
    wr_store(&file->tail, tail + 1, release); /* from here on it stands in line */
    return 0;
}

bool wr_host_is_first(weir_cell *handle, const weir_place *place)
{
    const struct wr_host_place *p = (const struct wr_host_place *)place;
    struct wr_host_file *file = wr_host_cell_of(handle)->file;

    advance(file);
    if (!p)
        return wr_load(&file->head, relaxed) == wr_load(&file->tail, relaxed);
    return wr_load(&file->head, relaxed) == p->ticket;
}

bool wr_host_is_before(weir_cell *handle, uint64_t stamp)
{
    struct wr_host_cell *cell = wr_host_cell_of(handle);
    struct wr_host_file *file = cell->file;
    uint64_t head, first;

    if (wr_host_is_first(handle, NULL))
        return true;
    head = wr_load(&file->head, relaxed);
    first = wr_load(&file->stamp[head % WR_LINE], relaxed);
    return stamp < first ||
           (stamp == first && cell->seat + 1 < wr_load(entry(file, head), relaxed));
}

void wr_host_part(weir_cell *handle, weir_place *place)
{
    struct wr_host_place *p = (struct wr_host_place *)place;
    struct wr_host_cell *cell = wr_host_cell_of(handle);

    wr_lock(&cell->store->waiters_lock);
    wr_list_remove(&p->link);
    wr_unlock(&cell->store->waiters_lock);
    wr_store(entry(cell->file, p->ticket), 0, relaxed);
    advance(cell->file);
}

int64_t wr_host_waiting(weir_cell *handle)
{
    struct wr_host_file *file = wr_host_cell_of(handle)->file;
    uint64_t tail = wr_load(&file->tail, relaxed);
    int64_t waiting = 0;

    for (uint64_t t = wr_load(&file->head, relaxed); t < tail; t++)
        waiting += wr_load(entry(file, t), relaxed) != 0;
    return waiting;
}

static void unpark_own(struct wr_host_cell *cell, uint64_t ticket)
{
    wr_lock(&cell->store->waiters_lock);
    wr_list_each(node, &cell->store->waiters) {
        struct wr_host_place *p = WR_CONTAINER(node, struct wr_host_place, link);
        if (p->cell == cell && p->ticket == ticket)
            wr_host_wake(p);
    }
    wr_unlock(&cell->store->waiters_lock);
}

void wr_host_tell(weir_cell *handle)
{
    struct wr_host_cell *cell = wr_host_cell_of(handle);
    struct wr_host_file *file = cell->file;
    uint32_t seat;

    if (wr_host_is_first(handle, NULL))
        return;
    seat = wr_load(entry(file, wr_load(&file->head, relaxed)), relaxed) - 1;
    if (seat == cell->seat)
        unpark_own(cell, wr_load(&file->head, relaxed));
    else
        cell->ring = wr_load(&file->seat[seat].process, relaxed);
}

void wr_host_line_forget(struct wr_host_cell *cell, uint32_t seat)
{
    struct wr_host_file *file = cell->file;
    uint64_t tail = wr_load(&file->tail, relaxed);

    for (uint64_t t = wr_load(&file->head, relaxed); t < tail; t++)
        if (wr_load(entry(file, t), relaxed) == seat + 1)
            wr_store(entry(file, t), 0, relaxed);
    advance(file);
}

void wr_host_line_mend(struct wr_host_cell *cell)
{
    struct wr_host_file *file = cell->file;
    uint64_t tail = wr_load(&file->tail, relaxed);

    for (uint64_t t = wr_load(&file->head, relaxed); t < tail; t++) {
        uint32_t seat = wr_load(entry(file, t), relaxed);
        if (seat && wr_load(&file->seat[seat - 1].process, relaxed) == 0)
            wr_store(entry(file, t), 0, relaxed);
    }
    advance(file);
}

/* Before the first wait: who was told meanwhile, and had no bell, looks once more. */
void wr_host_wait(weir_cell *handle, weir_place *place, weir_time deadline)
{
    struct wr_host_place *p = (struct wr_host_place *)place;
    weir_time soon;

    if (p->watches) {
        wr_park(p->who, deadline);
    } else if (wr_host_watch(wr_host_cell_of(handle))) {
        p->watches = true;
    } else { /* no thread, no descriptors: look again after a while */
        soon = wr_os_now() + LOOK_AGAIN_NS;
        wr_park(p->who, soon < deadline ? soon : deadline);
        wr_host_sweep(handle);
    }
}
