/* Lines; see line.h.
 * SPDX-License-Identifier: MIT */
#include "limits/line.h"

#include "base/assert.h"
#include "base/os.h"

void wr_stand_init(struct wr_stand *stand, uint32_t hash)
{
    wr_list_init(&stand->link);
    wr_store(&stand->weight, 1, relaxed);
    stand->part = hash % WR_PARTS;
}

void wr_line_init(struct wr_line *line, uint8_t place, uint8_t parts, _Atomic uint64_t *set,
                  uint64_t bit)
{
    WR_ASSERT(!set || parts == 1);
    for (int i = 0; i < WR_PARTS; i++) {
        wr_list_init(&line->part[i].stands);
        wr_store(&line->first[i], WR_SHOWS_NONE, relaxed);
    }
    line->parts = parts;
    line->place = place;
    line->set = set;
    line->bit = bit;
}

/* ---- the order of all ---------------------------------------------------------------------------- */

/* Tickets wrap around. */
static bool is_before(uint64_t one, uint64_t other)
{
    if (one == WR_SHOWS_NONE || other == WR_SHOWS_NONE)
        return one < other;
    return (int32_t)((uint32_t)one - (uint32_t)other) < 0;
}

/* The part that has the first stand; NULL: there is none. */
static struct wr_part *first_part(struct wr_line *line)
{
    uint64_t shown, first = wr_load(&line->first[0], seq_cst);
    uint32_t part = 0;

    for (uint32_t i = 1; i < line->parts; i++)
        if (is_before(shown = wr_load(&line->first[i], seq_cst), first)) {
            first = shown;
            part = i;
        }
    return first == WR_SHOWS_NONE ? NULL : &line->part[part];
}

/* A ticket to go before all others. */
static uint32_t ticket_before_all(struct wr_line *line)
{
    struct wr_part *part = first_part(line);
    uint64_t first = part ? wr_load(&line->first[part - line->part], relaxed) : WR_SHOWS_NONE;

    return (first == WR_SHOWS_NONE ? wr_load(&line->tickets, relaxed) : (uint32_t)first) - 1;
}

/* ---- under the lock of a part -------------------------------------------------------------------- */

static struct wr_part *part_of(struct wr_line *line, const struct wr_stand *stand)
{
    return &line->part[line->parts == 1 ? 0 : stand->part];
}

static struct wr_part *lock_part(struct wr_line *line, const struct wr_stand *stand)
{
    struct wr_part *part = part_of(line, stand);

    wr_lock(&part->lock);
    return part;
}

/* NULL: there is none. */
static struct wr_stand *first_of(const struct wr_part *part)
{
    return wr_list_empty(&part->stands) ? NULL
                                        : WR_CONTAINER(part->stands.next, struct wr_stand, link);
}

static uint64_t to_show(const struct wr_part *part)
{
    const struct wr_stand *first = first_of(part);

    return first ? first->ticket : WR_SHOWS_NONE;
}

/* To be called after every change of the part's first stand. */
static void show_first(struct wr_line *line, const struct wr_part *part)
{
    _Atomic uint64_t *shown = &line->first[part - line->part];
    uint64_t first = to_show(part);

    if (wr_load(shown, relaxed) != first)
        wr_store(shown, first, seq_cst);
}

/* The first stand may be another now, or need less: threads that sleep for its permits have to look again. */
static void ask_again(struct wr_line *line)
{
    if (wr_load(&line->needed, seq_cst))
        wr_store(&line->needed, 0, seq_cst); /* pairs with a sleeper's look; see parking.md */
}

static bool is_in(const struct wr_line *line, const struct wr_stand *stand)
{
    return wr_load(&stand->place, relaxed) == line->place;
}

static void count(struct wr_part *part, uint32_t more)
{
    wr_store(&part->count, wr_load(&part->count, relaxed) + more, relaxed);
}

/* A stand that comes last does not look at the first one, which lies in the memory of another owner. */
static void insert(struct wr_line *line, struct wr_part *part, struct wr_stand *stand, bool first)
{
    bool shows = first || wr_list_empty(&part->stands);

    stand->ticket = first ? ticket_before_all(line) : wr_add(&line->tickets, 1, relaxed);
    /* Before the first is after the head. */
    wr_list_append(first ? part->stands.next : &part->stands, &stand->link);
    if (shows)
        show_first(line, part); /* pairs with a sleeper's look; see parking.md */
}

static void link_stand(struct wr_line *line, struct wr_part *part, struct wr_stand *stand,
                       bool first)
{
    bool was_empty = wr_list_empty(&part->stands);

    wr_store(&stand->place, line->place, relaxed);
    insert(line, part, stand, first);
    count(part, 1);
    if (was_empty && line->set)
        wr_add(line->set, line->bit, seq_cst); /* pairs with a sleeper's look; see parking.md */
}

static void unlink_stand(struct wr_line *line, struct wr_part *part, struct wr_stand *stand,
                         uint8_t place)
{
    wr_list_remove(&stand->link);
    wr_store(&stand->place, place, relaxed);
    show_first(line, part);
    count(part, UINT32_MAX);
    if (line->set && wr_list_empty(&part->stands))
        wr_sub(line->set, line->bit, seq_cst);
    ask_again(line);
}

bool wr_line_add(struct wr_line *line, struct wr_stand *stand, bool ahead)
{
    struct wr_part *part = part_of(line, stand);
    bool first = ahead || wr_stand_is_in_turn(stand);

    if (!stand->turn_left)
        stand->turn_left = wr_load(&stand->weight, relaxed);
    link_stand(line, part, stand, first);
    if (first) /* then it goes before the one that was */
        ask_again(line);
    return first;
}

bool wr_line_drop(struct wr_line *line, struct wr_stand *stand)
{
    if (wr_load(&stand->place, relaxed) & WR_IN_HANDS)
        return false;
    WR_ASSERT(is_in(line, stand));
    unlink_stand(line, part_of(line, stand), stand, 0);
    return true;
}

/* How many looks for another stand one of weight > 1 may cost while it is being decided. Its worker may have lost its CPU, so
 * other threads offer theirs after the first hundred looks; in the end they go on without it. */
enum { LOOKS_AT_ONCE = 100, LOOKS_MAX = 20000 };

static bool is_deciding(struct wr_line *line)
{
    return wr_load(&line->deciding, seq_cst) && wr_add(&line->looks, 1, relaxed) < LOOKS_MAX;
}

static void decide(struct wr_line *line, struct wr_stand *stand)
{
    wr_store(&line->looks, 0, relaxed);
    wr_store(&line->deciding, stand, seq_cst);
    wr_add(&line->decisions, 1, seq_cst);
}

/* Into the caller's hands. */
static void take(struct wr_line *line, struct wr_part *part, struct wr_stand *stand)
{
    if (wr_load(&stand->weight, relaxed) > 1) /* before another part shows the first */
        decide(line, stand);
    unlink_stand(line, part, stand, line->place | WR_IN_HANDS);
}

struct wr_stand *wr_line_take(struct wr_line *line)
{
    struct wr_stand *stand = first_of(line->part);

    WR_ASSERT(line->parts == 1);
    if (!stand || is_deciding(line))
        return NULL;
    take(line, line->part, stand);
    return stand;
}

/* ---- without that lock --------------------------------------------------------------------------- */

bool wr_line_enter(struct wr_line *line, struct wr_stand *stand, bool ahead)
{
    struct wr_part *part = lock_part(line, stand);
    bool first = wr_line_add(line, stand, ahead);

    wr_unlock(&part->lock);
    return first;
}

bool wr_line_remove(struct wr_line *line, struct wr_stand *stand)
{
    struct wr_part *part = lock_part(line, stand);
    bool in = wr_line_drop(line, stand);

    wr_unlock(&part->lock);
    return in;
}

void wr_line_give_way(struct wr_line *line)
{
    if (wr_load(&line->deciding, relaxed) && wr_load(&line->looks, relaxed) > LOOKS_AT_ONCE)
        wr_os_yield();
}

/* Locks the part that has the first stand of all; NULL: there is none. `served`: also NULL while a stand of weight > 1 is being
 * decided, which may come back first. */
static struct wr_part *lock_first(struct wr_line *line, bool served)
{
    for (;;) {
        uint32_t decisions = wr_load(&line->decisions, seq_cst);
        struct wr_part *part = first_part(line);

        if (!part || (served && is_deciding(line)))
            return NULL;
        wr_lock(&part->lock);
        if (first_part(line) == part &&
            (!served || wr_load(&line->decisions, seq_cst) == decisions))
            return part;
        wr_unlock(&part->lock);
    }
}

static uint32_t cost_of(const struct wr_stand *stand)
{
    return wr_load(&stand->needs, relaxed) & WR_COST_MAX;
}

/* Brings *reserved up to the permits that the first stand needs. */
static bool reserve(struct wr_line *line, struct wr_root *root, const struct wr_stand *first,
                    uint32_t *reserved)
{
    uint32_t cost = cost_of(first);
    bool got = wr_reserve(root, cost, reserved);

    if (!got)
        wr_store(&line->needed, cost, seq_cst);
    return got;
}

struct wr_stand *wr_line_pull(struct wr_line *line, struct wr_root *root, uint32_t *reserved,
                              bool (*grant)(struct wr_stand *stand, void *arg), void *arg)
{
    struct wr_stand *stand = NULL;
    struct wr_part *part;

    do {
        part = lock_first(line, true);
        if (!part)
            break;
        stand = first_of(part);
        if (!reserve(line, root, stand, reserved) || (grant && !grant(stand, arg)))
            stand = NULL;
        else if (is_in(line, stand))
            take(line, part, stand);
        wr_unlock(&part->lock);
    } while (!stand && first_part(line) != part); /* another has come before the refused one */
    if (!stand)
        wr_line_give_way(line);
    return stand;
}

void wr_line_decided(struct wr_line *line, const struct wr_stand *stand)
{
    if (wr_load(&line->deciding, relaxed) != stand)
        return;
    wr_store(&line->deciding, NULL, seq_cst); /* it stands there again, if it is ready */
    wr_add(&line->decisions, 1, seq_cst);
}

void wr_line_return(struct wr_line *line, struct wr_stand *stand, uint32_t needed)
{
    struct wr_part *part = lock_part(line, stand);

    link_stand(line, part, stand, true);
    wr_line_decided(line, stand);
    wr_store(&line->needed, needed, seq_cst);
    if (first_part(line) != part) /* another stand has come before it meanwhile */
        ask_again(line);
    wr_unlock(&part->lock);
}

uint32_t wr_line_first_cost(struct wr_line *line, bool patient)
{
    struct wr_part *part = lock_first(line, false);
    const struct wr_stand *first;
    uint32_t cost;

    if (!part)
        return 0;
    first = first_of(part);
    cost = patient && wr_load(&first->needs, relaxed) & WR_TIMED ? 0 : cost_of(first);
    wr_unlock(&part->lock);
    return cost;
}

void wr_line_to_end(struct wr_line *line, struct wr_stand *stand)
{
    struct wr_part *part = lock_part(line, stand);

    if (is_in(line, stand)) {
        stand->turn_left = wr_load(&stand->weight, relaxed);
        wr_list_remove(&stand->link);
        insert(line, part, stand, false);
        show_first(line, part);
        ask_again(line);
    }
    wr_unlock(&part->lock);
}

void wr_line_ask_again(struct wr_line *line, const struct wr_stand *stand)
{
    struct wr_part *part = lock_part(line, stand);

    /* A thread that saw the former needs, under this lock, has set `needed` by now. */
    ask_again(line);
    wr_unlock(&part->lock);
}

bool wr_line_is_valid(const struct wr_line *line)
{
    for (uint32_t i = 0; i < WR_PARTS; i++) {
        uint32_t stands = 0;
        wr_list_each(node, &line->part[i].stands)
            stands++;
        if (wr_load(&line->first[i], relaxed) != to_show(&line->part[i]) ||
            wr_load(&line->part[i].count, relaxed) != stands)
            return false;
    }
    return true;
}
