/* What user code hears of tasks behind a guard: verdicts, drains, events.
 *
 * A gate is called with its group's lock, so it only takes notes; the teller reads them. A breaker that asks its user for a
 * verdict lets no further task of the group start before it has heard it, so that a task that fails keeps out the
 * very next one, as it does without a judge.
 * SPDX-License-Identifier: MIT */
#include "base/array.h"
#include "base/assert.h"
#include "base/os.h"
#include "guard/group.h"

bool wr_group_note(struct wr_group_guard *g, const struct wr_note *note)
{
    bool fits;

    wr_spin_lock(&g->notes_lock, 1);
    g->room = (uint32_t)wr_array_grow(&g->note, g->room, g->notes, sizeof(*note));
    fits = g->notes < g->room;
    if (fits)
        g->note[g->notes++] = *note;
    wr_spin_unlock(&g->notes_lock);
    if (fits)
        wr_teller_call(&g->job);
    return fits;
}

/* Takes all notes, oldest first. The caller frees them. */
static struct wr_note *take_notes(struct wr_group_guard *g, uint32_t *count)
{
    struct wr_note *notes;

    wr_spin_lock(&g->notes_lock, 1);
    notes = g->note;
    *count = g->notes;
    g->note = NULL;
    g->notes = g->room = 0;
    wr_spin_unlock(&g->notes_lock);
    return notes;
}

static void judge(struct wr_group_guard *g, struct wr_note *note, struct wr_call *call)
{
    struct weir_guard *guard = g->guard;

    note->verdict =
        note->error == WEIR_ECANCELED ? WEIR_IGNORE : wr_guard_judge(guard, note->error, NULL);
    wr_guard_end(call, note->verdict, &note->silent);
}

static void tell_one(struct wr_group_guard *g, struct wr_note *note)
{
    struct weir_guard *guard = g->guard;
    weir_permit permit = { .token = note->word };
    struct wr_call call = { .guard = guard,
                            .permit = &permit,
                            .n = 1,
                            .now = note->now,
                            .ns = note->ns,
                            .news = note->news };

    switch (note->type) {
    case WR_NOTE_ENDED:
        if (guard->drain_on && guard->kind == &wr_kind_rate &&
            guard->drain_on(note->error, NULL, guard->drain_arg))
            weir_guard_drain(guard);
        if (!note->judged)
            judge(g, note, &call);
        wr_guard_tell_end(&call, note->verdict, note->error, note->silent);
        break;
    case WR_NOTE_STARTED:
        wr_guard_tell(guard, &(weir_guard_event){
                                 .type = WEIR_EVENT_ENTERED, .at = note->now, .permits = 1 });
        break;
    case WR_NOTE_REFUSED:
        wr_guard_tell(guard, &(weir_guard_event){ .type = WEIR_EVENT_REFUSED,
                                                  .at = note->now,
                                                  .permits = 1,
                                                  .error = note->error,
                                                  .retry_at = note->now + note->ns });
        break;
    case WR_NOTE_NEWS:
        break;
    }
    wr_guard_tell_news(guard, &call.news, note->now);
}

/* The group guard whose notes this thread reads. A callback may remove its gate, which frees it: NULL from then on. */
static _Thread_local struct wr_group_guard *read_now;

static void tell(struct wr_teller_job *job)
{
    struct wr_group_guard *g = WR_CONTAINER(job, struct wr_group_guard, job);
    struct wr_group_guard *outer = read_now;
    struct wr_note *notes;
    uint32_t count;

    read_now = g;
    while (read_now == g && (notes = take_notes(g, &count))) {
        for (uint32_t i = 0; i < count && read_now == g; i++) {
            bool judged = notes[i].type != WR_NOTE_ENDED || notes[i].judged;
            tell_one(g, &notes[i]);
            if (read_now == g && !judged && wr_sub(&g->unjudged, 1, acq_rel) == 1 && !g->gone)
                weir_gate_open(g->gate);
        }
        wr_os_free(notes);
    }
    read_now = outer;
}

int wr_group_tell_init(struct wr_group_guard *g)
{
    struct weir_guard *guard = g->guard;

    g->tells = guard->on_event || (guard->judge && guard->kind->timed) ||
               (guard->open_for && guard->kind == &wr_kind_breaker) ||
               (guard->drain_on && guard->kind == &wr_kind_rate);
    return g->tells ? wr_teller_join(&g->job, tell) : 0;
}

void wr_group_tell_fini(struct wr_group_guard *g)
{
    if (!g->tells)
        return;
    wr_teller_part(&g->job);
    g->gone = true;
    if (read_now == g)
        read_now = NULL; /* tell() is one of our callers, and ends once we return */
    tell(&g->job);
}
