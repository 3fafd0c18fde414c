/* Lines: which group is served next, by turns and weight, and with how many of the executor's permits.
 *
 * A stand (struct wr_stand) is a group's place in a line. It is served once per slice, and a turn is as many slices as its
 * weight. Its next turn comes after all others; a turn that was only interrupted goes on before them.
 *
 * A thread that serves a line takes a stand out of it, and decides: it finds the stand another place, or puts it back first. In
 * between the stand is in hands. Other threads do not see it then and may go to sleep, so a thread that has decided looks whether
 * there are stands in line, and another thread is to be woken.
 *
 * A line may be in parts, so that the threads that serve it do not all meet at one lock. Its order is one all the same: a stand
 * draws a ticket when it comes, each part shows the ticket of its first, and a thread that serves the line locks the part that
 * shows the lowest and looks again. Stands of weight > 1 go before all others while they are being decided, too: a count of such
 * decisions that has not changed says that none was overlooked. No thread holds the locks of two parts.
 *
 * A thread that adds a stand writes its part's ticket, and then looks at `needed`; a thread that is refused permits for the first
 * stand writes `needed`, and then looks at the tickets. They may not both miss the other, so all four are seq_cst.
 * SPDX-License-Identifier: MIT */
#ifndef WR_LIMITS_LINE_H
#define WR_LIMITS_LINE_H

#include "base/list.h"
#include "base/lock.h"
#include "limits/admit.h"

enum { WR_PARTS = 4 };

/* In stand->place, beside the line's place: the stand was taken out of the line, and is yet to be decided. */
enum { WR_IN_HANDS = 8 };

/* stand->needs: permits that the group's first task costs, shown up to COST_MAX; TIMED: that task will not wait for ever; OWNERS:
 * a bit for the owner to use. */
#define WR_TIMED    ((uint32_t)1 << 31)
#define WR_OWNERS   ((uint32_t)1 << 30)
#define WR_COST_MAX (WR_OWNERS - 1)

/* A stand, in a line or in none. Under its owner's lock; link and ticket under the part's while it is in a line. The atomic fields
 * are read under either lock, and written under the owner's; but `place` under the part's as long as it is in a line. */
struct wr_stand {
    struct wr_list link; /* the owner may use it while the stand is in no line                   */
    uint32_t ticket;     /* likewise                                                            */
    _Atomic uint32_t needs;
    _Atomic uint16_t weight; /* at least 1                                                        */
    uint16_t turn_left; /* slices that are left of its turn: its owner counts them down         */
    uint8_t part;       /* of a line in parts. Changed only while the stand is in no line       */
    /* The place of the line that it stands in, or, with IN_HANDS, was taken from. The owner may use 0, and values of no line. */
    _Atomic uint8_t place;
};

/* Some of a line's stands, in the order of their tickets. */
struct wr_part {
    struct wr_lock lock;
    _Atomic uint32_t
        count; /* of its stands; also read without the lock                           */
    struct wr_list stands;
    char apart[64 - sizeof(struct wr_lock) - sizeof(uint32_t) - sizeof(struct wr_list)];
};

struct wr_line {
    struct wr_part part[WR_PARTS];
    _Atomic uint64_t first[WR_PARTS]; /* each part's first ticket, or WR_SHOWS_NONE        */
    uint8_t parts;         /* 1, or WR_PARTS                                                     */
    uint8_t place;         /* of the stands in it                                                */
    _Atomic uint64_t *set; /* has `bit` while there are stands; NULL: there is no such set        */
    uint64_t bit;
    _Atomic uint32_t needed; /* permits of the executor's that the first stand waits for         */
    /* The stand in hands, of weight > 1: its turn may last, so it goes before others */
    _Atomic(struct wr_stand *) deciding;
    _Atomic uint32_t decisions; /* how often `deciding` has changed                               */
    _Atomic uint32_t looks;     /* for another stand, since then                                  */
    char apart[64]; /* threads that serve the line write above, threads that add a stand below    */
    _Atomic uint32_t tickets; /* the next one                                                     */
};

/* What a part without stands shows. */
#define WR_SHOWS_NONE UINT64_MAX

/* Whether the stand's turn has begun, and was only interrupted. */
static inline bool wr_stand_is_in_turn(const struct wr_stand *stand)
{
    return stand->turn_left > 0 && stand->turn_left < wr_load(&stand->weight, relaxed);
}

/* Whether there are stands in line; those in hands do not count. */
static inline bool wr_line_has_stands(const struct wr_line *line)
{
    for (uint32_t i = 0; i < line->parts; i++)
        if (wr_load(&line->first[i], seq_cst) != WR_SHOWS_NONE)
            return true;
    return false;
}

/* How many stands there are in line; those in hands do not count. */
static inline uint32_t wr_line_count(const struct wr_line *line)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < line->parts; i++)
        count += wr_load(&line->part[i].count, relaxed);
    return count;
}

/* Prepares a stand of zeros; `hash` chooses its part. */
void wr_stand_init(struct wr_stand *stand, uint32_t hash);

/* Prepares a line of zeros. `place` is not 0, and less than WR_IN_HANDS; a set only if the line is in one part. */
void wr_line_init(struct wr_line *line, uint8_t place, uint8_t parts, _Atomic uint64_t *set,
                  uint64_t bit);

/* ---- under the lock of its part, the first if there is but one -------------------------------------- */

/* Puts a stand into the line as the last; or as the first, if it goes `ahead` or its turn was only interrupted: then the answer
 * is true. */
bool wr_line_add(struct wr_line *line, struct wr_stand *stand, bool ahead);

/* Takes this stand out for good. False: a thread has it in hands. */
bool wr_line_drop(struct wr_line *line, struct wr_stand *stand);

/* Takes the first stand of a line in one part into the caller's hands; wr_line_decided or wr_line_return must follow. NULL: there
 * is none, or one is being decided that may come back first. */
struct wr_stand *wr_line_take(struct wr_line *line);

/* ---- without that lock --------------------------------------------------------------------------- */

/* wr_line_add under the lock of its part. */
bool wr_line_enter(struct wr_line *line, struct wr_stand *stand, bool ahead);

/* wr_line_drop under the lock of its part. */
bool wr_line_remove(struct wr_line *line, struct wr_stand *stand);

/* Takes the first stand into the caller's hands with as many permits of the executor's as it needs, in *reserved, if `grant`
 * (or NULL), called under the lock of its part, agrees. If `grant` has dropped the stand from the line by itself, it is answered,
 * too, and nothing is left to decide. NULL: there is none, or one is being decided that may come back first, or the first gets too
 * few permits, or `grant` disagrees; the next one is not tried, so that no stand overtakes the first. */
struct wr_stand *wr_line_pull(struct wr_line *line, struct wr_root *root, uint32_t *reserved,
                              bool (*grant)(struct wr_stand *stand, void *arg), void *arg);

/* For a thread that found nothing to take: the stand that goes before others may be in the hands of a thread without a CPU, so
 * after a while this one offers its own. */
void wr_line_give_way(struct wr_line *line);

/* The stand in the caller's hands has found its place elsewhere, or at the end of this line. Under its owner's lock. */
void wr_line_decided(struct wr_line *line, const struct wr_stand *stand);

/* The stand in the caller's hands goes back to the head, where it waits for so many permits. Under its owner's lock. */
void wr_line_return(struct wr_line *line, struct wr_stand *stand, uint32_t needed);

/* Permits that the first stand needs; 0: there is none, or (`patient`) its task will not wait for ever. */
uint32_t wr_line_first_cost(struct wr_line *line, bool patient);

/* The stand's turn is over: if it is in the line, it moves to the end, with a new turn. Nothing changes if a thread has it in
 * hands. */
void wr_line_to_end(struct wr_line *line, struct wr_stand *stand);

/* A stand in the line needs something else than before: threads that sleep until there are permits for the first look again. */
void wr_line_ask_again(struct wr_line *line, const struct wr_stand *stand);

/* Each part shows its first stand, and all are counted. At rest; slow. */
bool wr_line_is_valid(const struct wr_line *line);

#endif
