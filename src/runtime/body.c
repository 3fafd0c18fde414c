/* What the calling stack carries: a body of the source's, what travels with it, and the frames inside of it.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "base/os.h"
#include "runtime/worker.h"

/* ---- the body -------------------------------------------------------------------------------- */

void wr_body_over(void)
{
    struct wr_worker *worker = wr_worker_self();

    wr_store(&wr_load(&worker->current, relaxed)->item, NULL, release);
    wr_bump(&worker->epoch);
}

void wr_body_begins(void *item)
{
    struct wr_worker *worker = wr_worker_self();
    struct wr_fiber *self = wr_load(&worker->current, relaxed);

    self->token = false;
    wr_bump(&worker->epoch);
    wr_store(&self->item, item, release);
}

bool wr_body_next(void)
{
    struct wr_worker *worker = wr_worker_self();
    struct wr_fiber *self = wr_load(&worker->current, relaxed);

    if (WR_UNLIKELY(!wr_list_empty(&self->link)))
        return false;
    self->token = false;
    wr_bump(&worker->epoch);
    return true;
}

bool wr_body_has_parked(void)
{
    return !wr_list_empty(&wr_load(&wr_worker_self()->current, relaxed)->link);
}

void **wr_context_slot(void)
{
    struct wr_worker *worker = wr_worker_self();

    return worker ? &wr_load(&worker->current, relaxed)->luggage : &wr_os_local()[1];
}

/* ---- frames, and guests among them ----------------------------------------------------------- */

static struct wr_frame **frame_slot(void)
{
    struct wr_worker *worker = wr_worker_self();

    return worker ? &wr_load(&worker->current, relaxed)->frame
                  : (struct wr_frame **)&wr_os_local()[2];
}

struct wr_frame *wr_frame_innermost(void)
{
    return *frame_slot();
}

void wr_frame_enter(struct wr_frame *frame)
{
    struct wr_frame **slot = frame_slot();

    frame->unshielded = *wr_os_local() ? -1 : wr_os_shield(); /* our own threads always are */
    frame->outer = *slot;
    if (frame->outer && !frame->notes)
        frame->notes = frame->outer->notes;
    if (frame->outer && !frame->parker)
        frame->parker = frame->outer->parker;
    *slot = frame;
}

void wr_frame_leave(struct wr_frame *frame)
{
    struct wr_frame **slot = frame_slot();

    WR_ASSERT(*slot == frame);
    *slot = frame->outer;
    if (frame->unshielded >= 0)
        wr_os_unshield(frame->unshielded);
}

void wr_guest_enter(struct wr_frame *frame, struct wr_source *source, void *item)
{
    frame->source = source;
    frame->item = item;
    frame->parker = wr_parker_self(&frame->storage);
    wr_frame_enter(frame);
}

/* ---- whose it is ------------------------------------------------------------------------------ */

void *wr_carried_item(struct wr_source **source)
{
    struct wr_worker *worker = wr_worker_self();
    struct wr_member *member = *wr_os_local();

    *source = member ? member->runtime->source : NULL;
    if (worker)
        return wr_load(&wr_load(&worker->current, relaxed)->item, relaxed);
    return member ? member->item : NULL;
}

void *wr_current_item(struct wr_source **source)
{
    struct wr_frame *frame = wr_frame_innermost();

    while (frame && !frame->item)
        frame = frame->outer;
    if (!frame)
        return wr_carried_item(source);
    *source = frame->source;
    return frame->item;
}

bool wr_on_pool_thread(void)
{
    struct wr_member *member = *wr_os_local();

    return member && member->parker;
}

void wr_thread_carries(void *item)
{
    struct wr_member *member = *wr_os_local();

    WR_ASSERT(member && member->parker);
    member->item = item;
}

void *wr_scratch(void)
{
    return wr_worker_self()->scratch;
}
