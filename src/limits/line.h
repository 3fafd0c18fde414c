/* Lines: who is served next, by turns and weight, and with how many of the executor's permits.
 *
 * One who stands in a line (struct wr_stand) is served once per slice, and a turn is as many slices as its weight. Its next turn
 * comes after all others; a turn that was only interrupted goes on before them.
 *
 * Whoever serves a line takes a stand out of it, and decides: it finds it another place, or puts it back first. In between it
 * is in hands. Others do not see it then and may go to sleep, so whoever has decided looks whether somebody stands in line, and
 * is to be woken.
 *
 * A line may be in parts, so that those who serve it do not all meet at one lock. Its order is one all the same: a stand draws a
 * ticket when it comes, each part shows the ticket of its first, and who serves the line locks the part that shows the lowest
 * and looks again. Stands of weight > 1 go before all others while they are being decided, too: a count of such decisions that
 * has not changed says that none was overlooked. Nobody holds two parts' locks.
 *
 * Who adds a stand writes its part's ticket, and then looks at `needed`; who is refused permits for the first one writes
 * `needed`, and then looks at the tickets: not both may miss the other, so all four are seq_cst.
 * SPDX-License-Identifier: MIT */
#ifndef WR_LIMITS_LINE_H
#define WR_LIMITS_LINE_H

#include "base/list.h"
#include "base/lock.h"
#include "limits/admit.h"

enum { WR_PARTS = 4 };

/* In stand->place, beside that of the line: just taken out of it, and yet to be decided. */
enum { WR_IN_HANDS = 8 };

/* stand->needs: permits that its first task costs, shown up to COST_MAX; whether that will not wait for ever; and a bit that is
 * its owner's. */
#define WR_TIMED    ((uint32_t)1 << 31)
#define WR_OWNERS   ((uint32_t)1 << 30)
#define WR_COST_MAX (WR_OWNERS - 1)

/* One who stands in a line, or could. Under its owner's lock; link and ticket under the part's while it is in. What is atomic is
 * read under either, and written under its owner's; but `place`, as long as it stands in a line, under the part's. */
struct wr_stand {
    struct wr_list link; /* its owner's to use while it stands in no line                        */
    uint32_t ticket;     /* likewise                                                            */
    _Atomic uint32_t needs;
    _Atomic uint16_t weight; /* at least 1                                                        */
    uint16_t turn_left; /* slices that are left of its turn: its owner counts them down         */
    uint8_t part;       /* of a line in parts. Changed only while it stands in none             */
    /* Of the line that it stands in, or, with IN_HANDS, was taken from. 0, and what is no line's, is its owner's. */
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
    _Atomic uint64_t *set; /* has the bit while there are stands; NULL: there is no such set      */
    uint64_t bit;
    _Atomic uint32_t needed; /* permits of the executor's that the first one waits for           */
    /* In hands, of weight > 1: its turn may last, so it goes before others */
    _Atomic(struct wr_stand *) deciding;
    _Atomic uint32_t decisions; /* how often that has changed                                     */
    _Atomic uint32_t looks;     /* for another, since then                                        */
    char apart[64]; /* who comes writes what is behind this, who serves what is before it         */
    _Atomic uint32_t tickets; /* the next one                                                     */
};

/* What a part shows that has no stand. */
#define WR_SHOWS_NONE UINT64_MAX

/* Whether its turn has begun, and was only interrupted. */
static inline bool wr_stand_is_in_turn(const struct wr_stand *stand)
{
    return stand->turn_left > 0 && stand->turn_left < wr_load(&stand->weight, relaxed);
}

/* Whether there are stands in line, but for those in hands. */
static inline bool wr_line_has_stands(const struct wr_line *line)
{
    for (uint32_t i = 0; i < line->parts; i++)
        if (wr_load(&line->first[i], seq_cst) != WR_SHOWS_NONE)
            return true;
    return false;
}

/* How many they are. */
static inline uint32_t wr_line_count(const struct wr_line *line)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < line->parts; i++)
        count += wr_load(&line->part[i].count, relaxed);
    return count;
}

/* Both were zero. A place other than 0, less than WR_IN_HANDS; a set only if the line is in one part. */
void wr_stand_init(struct wr_stand *stand, uint32_t hash);
void wr_line_init(struct wr_line *line, uint8_t place, uint8_t parts, _Atomic uint64_t *set,
                  uint64_t bit);

/* ---- under the lock of its part, the first if there is but one -------------------------------------- */

/* As the last; or as the first, if it goes `ahead` or its turn was only interrupted: then the answer is true. */
bool wr_line_add(struct wr_line *line, struct wr_stand *stand, bool ahead);

/* Takes this one out for good, if it is in. False: it is in somebody's hands. */
bool wr_line_drop(struct wr_line *line, struct wr_stand *stand);

/* Takes the first of a line in one part into the caller's hands; wr_line_decided or wr_line_return must follow. NULL: there is
 * none, or it may come back yet, because it is being decided. */
struct wr_stand *wr_line_take(struct wr_line *line);

/* ---- without it ---------------------------------------------------------------------------------- */

bool wr_line_enter(struct wr_line *line, struct wr_stand *stand, bool ahead);
bool wr_line_remove(struct wr_line *line, struct wr_stand *stand);

/* Takes the first into the caller's hands with as many permits of the executor's as it needs, in *reserved, and if `grant`
 * (or NULL) gives it what the caller came with, under the lock of its part; or answers NULL, so that nobody overtakes it. What
 * `grant` has dropped from the line by itself is answered, too, and then nothing is left to decide. */
struct wr_stand *wr_line_pull(struct wr_line *line, struct wr_root *root, uint32_t *reserved,
                              bool (*grant)(struct wr_stand *stand, void *arg), void *arg);

/* By who found nothing to take: the stand that goes before others may be in the hands of a thread without a CPU. */
void wr_line_give_way(struct wr_line *line);

/* What was taken has found its place elsewhere, or at the end of this line; or goes back to the head, where it waits for so many
 * permits. Under its owner's lock. */
void wr_line_decided(struct wr_line *line, const struct wr_stand *stand);
void wr_line_return(struct wr_line *line, struct wr_stand *stand, uint32_t needed);

/* What the first one needs; 0: there is none, or (`patient`) it will not wait for ever. */
uint32_t wr_line_first_cost(struct wr_line *line, bool patient);

/* Its turn is over: from wherever it stands to the end, for the next one. Or it is in somebody's hands, and stays there. */
void wr_line_to_end(struct wr_line *line, struct wr_stand *stand);

/* One that stands in it needs something else than it did. */
void wr_line_ask_again(struct wr_line *line, const struct wr_stand *stand);

/* Each part shows its first stand, and all are counted. At rest; slow. */
bool wr_line_is_valid(const struct wr_line *line);

#endif
