/* The line of a cell that processes share: a ring of tickets.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "store/host.h"

enum { LOOK_AGAIN_NS = 10000000 };

static _Atomic uint32_t *entry(struct wr_host_file *file, uint64_t ticket)
{
    return &file->line[ticket % WR_LINE];
}

/* Moves `head` past places that were given up. */
static void advance(struct wr_host_file *file)
{
    uint64_t head = wr_load(&file->head, relaxed), tail = wr_load(&file->tail, relaxed);

    while (head < tail && wr_load(entry(file, head), relaxed) == 0)
        head++;
    wr_store(&file->head, head, release);
}

/* Stands at the end of the line. False: the line is full. */
static bool stand(struct wr_host_cell *cell, struct wr_host_place *p)
{
    struct wr_host_file *file = cell->file;
    uint64_t tail = wr_load(&file->tail, relaxed);

    advance(file);
    if (tail - wr_load(&file->head, relaxed) >= WR_LINE)
        return false;
    p->ticket = tail;
    wr_store(&file->stamp[tail % WR_LINE], p->stamp, relaxed);
    wr_store(entry(file, tail), cell->seat + 1, relaxed);
    wr_store(&file->tail, tail + 1, release); /* from here on it stands in line */
    cell->step.took = true;
    return true;
}

int wr_host_join(weir_cell *handle, weir_place *place)
{
    struct wr_host_place *p = (struct wr_host_place *)place;
    struct wr_host_cell *cell = wr_host_cell_of(handle);

    if (!stand(cell, p))
        return WEIR_EAGAIN;
    p->parker = p->told ? NULL : wr_parker_self(&p->storage);
    p->cell = cell;
    p->watches = false;
    wr_lock(&cell->store->waiters_lock);
    wr_list_append(&cell->store->waiters, &p->link);
    wr_unlock(&cell->store->waiters_lock);
    cell->step.joined = p;
    return 0;
}

/* Whether the place's process was stopped and others went past. */
bool wr_host_lost_place(const struct wr_host_place *p)
{
    struct wr_host_file *file = p->cell->file;

    return p->ticket < wr_load(&file->head, acquire) ||
           wr_load(entry(file, p->ticket), relaxed) != p->cell->seat + 1;
}

bool wr_host_is_first(weir_cell *handle, const weir_place *place)
{
    struct wr_host_place *p = (struct wr_host_place *)place;
    struct wr_host_file *file = wr_host_cell_of(handle)->file;

    advance(file);
    if (!p)
        return wr_load(&file->head, relaxed) == wr_load(&file->tail, relaxed);
    if (wr_host_lost_place(p)) { /* stand once more, behind places that came meanwhile */
        wr_lock(&p->cell->store->waiters_lock);
        stand(p->cell, p);
        wr_unlock(&p->cell->store->waiters_lock);
    }
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
    if (!wr_host_lost_place(p))
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
        cell->step.ring = wr_load(&file->seat[seat].process, relaxed);
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

/* Without the lock: if the process that is first in line is stopped, it loses its place, so that others get the permits. It
 * stands in line again once it goes on and looks. */
void wr_host_pass_over(struct wr_host_cell *cell)
{
    struct wr_host_file *file = cell->file;
    uint64_t head = wr_load(&file->head, acquire), process;
    uint32_t seat = head < wr_load(&file->tail, acquire) ? wr_load(entry(file, head), relaxed) : 0;

    if (seat == 0 || seat > WR_SEATS || seat - 1 == cell->seat)
        return;
    process = wr_load(&file->seat[seat - 1].process, acquire);
    if (process == cell->store->self || !wr_os_process_is_stopped(process) ||
        wr_host_lock(&cell->base))
        return;
    file = cell->file;
    if (wr_load(&file->head, relaxed) == head && wr_load(entry(file, head), relaxed) == seat &&
        wr_load(&file->seat[seat - 1].process, relaxed) == process) {
        wr_store(entry(file, head), 0, relaxed);
        advance(file);
        wr_host_tell(&cell->base);
    }
    wr_host_unlock(&cell->base);
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

/* Whether one of the process's places has that ticket. With waiters_lock. */
static bool is_own(const struct wr_host_cell *cell, uint64_t ticket)
{
    wr_list_each(node, &cell->store->waiters) {
        const struct wr_host_place *p = WR_CONTAINER(node, struct wr_host_place, link);
        if (p->cell == cell && p->ticket == ticket)
            return true;
    }
    return false;
}

void wr_host_line_settle(struct wr_host_cell *cell)
{
    struct wr_host_file *file = cell->file;
    uint64_t tail = wr_load(&file->tail, relaxed);

    wr_lock(&cell->store->waiters_lock);
    for (uint64_t t = wr_load(&file->head, relaxed); t < tail; t++)
        if (wr_load(entry(file, t), relaxed) == cell->seat + 1 && !is_own(cell, t))
            wr_store(entry(file, t), 0, relaxed);
    wr_unlock(&cell->store->waiters_lock);
    advance(file);
}

/* Instead of the first wait, the waiter looks once more: if it was told before this process had a bell, it did not hear. */
void wr_host_wait(weir_cell *handle, weir_place *place, weir_time deadline)
{
    struct wr_host_place *p = (struct wr_host_place *)place;
    weir_time soon;

    if (p->watches) {
        wr_park(p->parker, deadline);
    } else if (wr_host_watch(wr_host_cell_of(handle))) {
        p->watches = true;
    } else { /* no thread, no descriptors: look again after a while */
        soon = wr_os_now() + LOOK_AGAIN_NS;
        wr_park(p->parker, soon < deadline ? soon : deadline);
        wr_host_sweep(handle);
    }
}
