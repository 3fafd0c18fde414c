/* The ledger of domains: random schedules against a model that moves one unit at a time and writes down the unit that
 * each task stands on.
 * SPDX-License-Identifier: MIT */
#include "support/ledger_books.h"
#include "support/sanitized.h"
#include "support/soak.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- a model ----------------------------------------------------------------------------------- */

/* One resource, unit by unit: how many each domain has, has lent to each other, and has recalled. */
struct pot {
    uint32_t amount[D], lend_max[D];
    uint32_t at[D], loan[D][D], due[D][D], rest[D][D], low[D], forced[D];
};

/* on[d][c]: tasks of d on units of c, c == d for its own. Strays of d are on its receiver's units; if that is
 * the default domain, they are told apart from borrowed ones. Every rule moves one. */
struct model {
    uint32_t count, floor;
    struct pot pot[WR_RESOURCES];
    uint32_t on[D][D], strays[D];
    uint32_t want[D], promised[D];
    int64_t queued[D];
    int receiver[D];
    bool released[D];
    uint32_t turn, turn_left;
    const struct wr_ledger *l; /* for the fixed configuration, nothing else */
};

static uint32_t sum_of(const uint32_t *row, uint32_t count, uint32_t stride)
{
    uint32_t sum = 0;

    for (uint32_t i = 0; i < count; i++)
        sum += row[(size_t)i * stride];
    return sum;
}

static uint32_t lent_by(const struct model *m, int what, uint32_t d)
{
    return sum_of(m->pot[what].loan[d], m->count, 1);
}

static uint32_t owed_to(const struct model *m, int what, uint32_t d)
{
    return sum_of(m->pot[what].due[d], m->count, 1);
}

static uint32_t taken_by(const struct model *m, int what, uint32_t d)
{
    return sum_of(&m->pot[what].loan[0][d], m->count, D);
}

static uint32_t due_by(const struct model *m, int what, uint32_t d)
{
    return sum_of(&m->pot[what].due[0][d], m->count, D);
}

static uint32_t waiting_in(const struct model *m, uint32_t d)
{
    int64_t n = m->queued[d] - m->promised[d];

    return n > 0 ? (uint32_t)n : 0;
}

static uint32_t borrowed_by(const struct model *m, int what, uint32_t d)
{
    uint32_t waiting = waiting_in(m, d), at = m->pot[WR_PLACES].at[d];

    if (d == 0)
        return 0;
    if (what == WR_SLOTS)
        return m->on[d][0] - (m->receiver[d] == 0 ? m->strays[d] : 0);
    return m->l->share[d].places_reserved && waiting > at ? waiting - at : 0;
}

static uint32_t used_of(const struct model *m, int what, uint32_t c)
{
    uint32_t used = what == WR_SLOTS ? sum_of(&m->on[0][c], m->count, D) : waiting_in(m, c);

    for (uint32_t d = 1; what == WR_PLACES && c == 0 && d < m->count; d++)
        used += borrowed_by(m, what, d);
    return used;
}

static uint32_t idle(const struct model *m, int what, uint32_t c)
{
    uint32_t used = used_of(m, what, c), at = m->pot[what].at[c];

    assert_true(what == WR_PLACES || used <= at); /* D1, D2 */
    return used < at ? at - used : 0;
}

static bool waits(const struct model *m, uint32_t d)
{
    return !m->released[d] && m->want[d] > m->promised[d];
}

static bool can_borrow(const struct model *m, uint32_t d)
{
    uint32_t borrowed = 0;

    for (uint32_t i = 1; i < m->count; i++)
        borrowed += borrowed_by(m, WR_SLOTS, i);
    return d && m->l->share[d].slots_reserved && idle(m, WR_SLOTS, 0) && !waits(m, 0) &&
           borrowed + m->floor < m->pot[WR_SLOTS].at[0];
}

static uint32_t receiver_of(const struct model *m, uint32_t d)
{
    return m->receiver[d] < 0 ? 0 : (uint32_t)m->receiver[d];
}

static void stray_home(struct model *m, uint32_t d)
{
    m->strays[d]--;
    m->on[d][receiver_of(m, d)]--;
    m->on[d][d]++;
}

static void leave(struct model *m, uint32_t d)
{
    if (d == 0 || (due_by(m, WR_SLOTS, d) && m->on[d][d]))
        m->on[d][d]--;
    else if (borrowed_by(m, WR_SLOTS, d))
        m->on[d][0]--;
    else if (m->strays[d])
        m->strays[d]--, m->on[d][receiver_of(m, d)]--;
    else
        m->on[d][d]--;
}

/* Whether anything was not recalled before. */
static bool recall_all(struct model *m, int what, uint32_t lender)
{
    struct pot *p = &m->pot[what];
    bool any = false;

    for (uint32_t i = 0; i < m->count; i++) {
        if (p->loan[lender][i] == p->due[lender][i])
            continue;
        p->rest[lender][i] = m->l->lending.hold;
        p->due[lender][i] = p->loan[lender][i];
        any = true;
    }
    return any;
}

static uint32_t keep_free(const struct model *m, int what, uint32_t d)
{
    return (m->pot[what].amount[d] * m->l->lending.headroom + 99) / 100;
}

static void move_one(struct pot *p, uint32_t from, uint32_t to)
{
    p->at[from]--;
    p->at[to]++;
}

/* One unit back home for a domain that is being restored. Units its receiver has on loan are not touched. */
static bool restore_one(struct model *m, int what, uint32_t d)
{
    struct pot *p = &m->pot[what];
    uint32_t r = receiver_of(m, d), strays = what == WR_SLOTS ? m->strays[d] : 0;

    if (m->released[d] || m->receiver[d] < 0 || !p->forced[d])
        return false;
    if (p->at[r] <= taken_by(m, what, r) || !(strays || idle(m, what, r)))
        return recall_all(m, what, r);
    if (strays)
        stray_home(m, d);
    move_one(p, r, d);
    p->forced[d]--;
    return true;
}

/* One that is recalled goes back if it is idle, or if it is the default domain's and a task of the lender's stands
 * on it. */
static bool return_one(struct model *m, int what, uint32_t lender, uint32_t borrower)
{
    struct pot *p = &m->pot[what];
    bool stands = borrower == 0 && borrowed_by(m, what, lender);

    if (!p->due[lender][borrower] || !(stands || idle(m, what, borrower)))
        return false;
    if (stands && what == WR_SLOTS)
        m->on[lender][0]--, m->on[lender][lender]++;
    p->due[lender][borrower]--;
    p->loan[lender][borrower]--;
    move_one(p, borrower, lender);
    return true;
}

static bool step_home(struct model *m, int what)
{
    for (uint32_t d = 0; d < m->count; d++)
        if (restore_one(m, what, d))
            return true;
    for (uint32_t d = 0; d < m->count; d++)
        for (uint32_t i = 0; i < m->count; i++)
            if (return_one(m, what, d, i))
                return true;
    return false;
}

static bool step_recall(struct model *m, int what)
{
    for (uint32_t d = 0; d < m->count; d++) {
        bool is_short = what == WR_SLOTS ? waits(m, d) : used_of(m, what, d) > m->pot[what].at[d];
        if ((is_short || due_by(m, what, d) ||
             lent_by(m, what, d) - owed_to(m, what, d) > m->pot[what].lend_max[d] ||
             idle(m, what, d) < keep_free(m, what, d)) &&
            recall_all(m, what, d))
            return true;
    }
    return false;
}

/* A promise of a domain with workers of its own, which none of them carries yet, on a unit that another needs. */
static bool step_revoke(struct model *m)
{
    for (uint32_t d = 0; d < m->count; d++) {
        uint32_t borrowed = borrowed_by(m, WR_SLOTS, d), others = borrowed + m->strays[d];
        bool lender_waits = due_by(m, WR_SLOTS, d) && m->promised[d] > others;
        bool default_waits = borrowed && waits(m, 0) && !idle(m, WR_SLOTS, 0);
        if (m->l->apart >> d & 1 && m->promised[d] && (lender_waits || default_waits)) {
            m->promised[d]--;
            leave(m, d);
            return true;
        }
    }
    return false;
}

/* The first rule that applies; false: none does. Recalled units leave before any domain is given some. */
static bool step_slots(struct model *m)
{
    for (uint32_t d = 0; d < m->count; d++)
        if (m->promised[d] > (m->released[d] ? 0 : m->want[d])) {
            m->promised[d]--;
            leave(m, d);
            return true;
        }
    if (step_home(m, WR_SLOTS))
        return true;
    for (uint32_t d = 1; d < m->count; d++)
        if ((m->strays[d] || m->on[d][0]) && idle(m, WR_SLOTS, d)) {
            if (m->strays[d])
                stray_home(m, d);
            else
                m->on[d][0]--, m->on[d][d]++;
            return true;
        }
    if (step_revoke(m))
        return true;
    for (uint32_t d = 0; d < m->count; d++)
        if (waits(m, d) && idle(m, WR_SLOTS, d)) {
            m->on[d][d]++;
            m->promised[d]++;
            return true;
        }
    for (uint32_t i = m->turn_left ? 0 : 1; i <= m->count; i++) {
        uint32_t d = (m->turn + i) % m->count;
        if (waits(m, d) && can_borrow(m, d)) {
            m->turn = d;
            m->turn_left = 0; /* all weights are 1 */
            m->on[d][0]++;
            m->promised[d]++;
            return true;
        }
    }
    return step_recall(m, WR_SLOTS);
}

/* Places depend on which tasks have a slot, so they come last. */
static void model_settle(struct model *m)
{
    while (step_slots(m))
        ;
    while (step_home(m, WR_PLACES) || step_recall(m, WR_PLACES))
        ;
}

/* ---- its sampling ------------------------------------------------------------------------------- */

static uint32_t per_cent(const struct model *m, int what, uint32_t d)
{
    uint32_t at = m->pot[what].at[d];

    return at ? used_of(m, what, d) * 100 / at : 100;
}

static uint32_t wants(const struct model *m, int what, uint32_t d)
{
    if (m->released[d])
        return 0;
    return what == WR_SLOTS ? m->want[d] - m->promised[d] : waiting_in(m, d);
}

static uint32_t can_lend(const struct model *m, int what, uint32_t d, uint32_t b)
{
    const struct pot *p = &m->pot[what];
    uint32_t keep = keep_free(m, what, d) + (d || what == WR_PLACES ? 0 : m->floor),
             can = idle(m, what, d), lent = lent_by(m, what, d);
    uint32_t may = p->lend_max[d] > lent ? p->lend_max[d] - lent : 0;

    if (d == b || m->released[d] || p->forced[d] || taken_by(m, what, d) ||
        p->low[d] < m->l->lending.hold || p->rest[d][b] || can <= keep)
        return 0;
    return can - keep < may ? can - keep : may;
}

static void model_lend(struct model *m, int what, uint32_t b)
{
    struct pot *p = &m->pot[what];
    uint32_t best = 0, from = 0, units = wants(m, what, b);

    if (!units || per_cent(m, what, b) < m->l->lending.high ||
        lent_by(m, what, b) != owed_to(m, what, b) || p->forced[b])
        return;
    for (uint32_t d = 0; d < m->count; d++)
        if (can_lend(m, what, d, b) > best)
            best = can_lend(m, what, d, b), from = d;
    units = units < best ? units : best;
    units = units < m->l->lending.step ? units : m->l->lending.step;
    for (; units; units--) {
        p->loan[from][b]++;
        move_one(p, from, b);
    }
}

static void model_sample(struct model *m)
{
    for (int what = WR_SLOTS; what < WR_RESOURCES; what++) {
        struct pot *p = &m->pot[what];
        for (uint32_t d = 0; d < m->count; d++) {
            bool low = per_cent(m, what, d) < m->l->lending.low &&
                       (what == WR_PLACES || (!waits(m, d) && !waiting_in(m, d)));
            p->low[d] = low ? p->low[d] + 1 : 0;
        }
        for (uint32_t b = 0; b < m->count; b++)
            model_lend(m, what, b);
        for (uint32_t i = 0; i < m->count; i++)
            for (uint32_t j = 0; j < m->count; j++)
                p->rest[i][j] -= p->rest[i][j] > 0;
        model_settle(m);
    }
}

/* ---- its orders --------------------------------------------------------------------------------- */

/* Loans out are the receiver's now; all are recalled. Units on loan go home, the rest to the receiver. */
static void release_pot(struct model *m, int what, uint32_t d, uint32_t r)
{
    struct pot *p = &m->pot[what];

    for (uint32_t i = 0; i < m->count; i++) {
        uint32_t out = p->loan[d][i], due = p->due[d][i];
        if (i != d && p->loan[i][d] > p->due[i][d])
            p->rest[i][d] = m->l->lending.hold, p->due[i][d] = p->loan[i][d];
        p->forced[d] += out;
        if (i != r && out) {
            if (p->loan[r][i] + out > p->due[r][i] + due)
                p->rest[r][i] = m->l->lending.hold;
            p->loan[r][i] += out;
            p->due[r][i] = p->loan[r][i];
        }
        p->loan[d][i] = p->due[d][i] = 0;
    }
    while (p->at[d] > taken_by(m, what, d)) {
        move_one(p, d, r);
        p->forced[d]++;
    }
}

static void model_release(struct model *m, uint32_t d, uint32_t r)
{
    m->released[d] = true;
    m->receiver[d] = (int)r;
    while (m->promised[d])
        m->promised[d]--, leave(m, d);
    release_pot(m, WR_SLOTS, d, r);
    release_pot(m, WR_PLACES, d, r);
    while (m->on[d][d] > m->pot[WR_SLOTS].at[d])
        m->on[d][d]--, m->on[d][r]++, m->strays[d]++;
    model_settle(m);
}

/* One unit of `from` is `to`'s from now on: one that `to` has on loan, else one that `from` has, else one that
 * `from` has lent to another. */
static void reassign_one(struct model *m, int what, uint32_t from, uint32_t to)
{
    struct pot *p = &m->pot[what];
    uint32_t i = 0;

    p->amount[from]--;
    p->amount[to]++;
    if (p->loan[from][to]) {
        p->loan[from][to]--;
        p->due[from][to] -= p->due[from][to] > 0;
        return;
    }
    if (p->at[from] > taken_by(m, what, from)) {
        p->loan[to][from]++;
        p->due[to][from]++;
        return;
    }
    while (!p->loan[from][i])
        i++;
    if (p->loan[from][i] > p->due[from][i])
        p->rest[from][i] = m->l->lending.hold;
    p->due[from][i] = --p->loan[from][i];
    p->loan[to][i]++;
    p->due[to][i]++;
}

static void model_resize(struct model *m, int what, uint32_t d, uint32_t amount)
{
    const struct wr_share *share = &m->l->share[d];

    while (m->pot[what].amount[d] > amount)
        reassign_one(m, what, d, 0);
    while (m->pot[what].amount[d] < amount)
        reassign_one(m, what, 0, d);
    if (what == WR_SLOTS ? share->slots.lends_half : share->places.lends_half)
        m->pot[what].lend_max[d] = amount / 2;
    model_settle(m);
}

/* ---- both side by side -------------------------------------------------------------------------- */

static uint64_t luck;

static uint32_t pick(uint32_t below)
{
    luck ^= luck << 13;
    luck ^= luck >> 7;
    luck ^= luck << 17;
    return (uint32_t)((luck >> 11) % below);
}

struct run {
    struct books b;
    struct model m;
    uint32_t running[D]; /* tasks that were taken and not given back */
    uint32_t unready[D]; /* queued tasks whose group keeps them      */
};

#define AGREE(a, b)                                                                         \
    do {                                                                                    \
        if ((uint64_t)(a) != (uint64_t)(b))                                                 \
            fail_msg("seed %llu: %s is %llu, but %s is %llu", (unsigned long long)seed, #a, \
                     (unsigned long long)(a), #b, (unsigned long long)(b));                 \
    } while (0)

static void compare_stock(const struct run *r, uint64_t seed, int what, uint32_t d)
{
    const struct wr_stock *stock = what == WR_SLOTS ? &r->b.share[d].slots : &r->b.share[d].places;
    const struct pot *p = &r->m.pot[what];

    AGREE(stock->amount, p->amount[d]);
    AGREE(stock->limit, p->at[d]);
    AGREE(stock->lent, lent_by(&r->m, what, d));
    AGREE(stock->owed, owed_to(&r->m, what, d));
    AGREE(stock->received, taken_by(&r->m, what, d));
    AGREE(stock->due, due_by(&r->m, what, d));
    AGREE(stock->forced, p->forced[d]);
}

static void compare(const struct run *r, uint64_t seed)
{
    uint64_t limits = 0, places = 0, granted = 0;

    for (uint32_t d = 0; d < r->m.count; d++) {
        const struct wr_share *s = &r->b.share[d];
        compare_stock(r, seed, WR_SLOTS, d);
        compare_stock(r, seed, WR_PLACES, d);
        AGREE(s->own, r->m.on[d][d]);
        AGREE(s->strays, r->m.strays[d]);
        AGREE(s->promised, r->m.promised[d]);
        AGREE(used(&r->b, d), r->running[d] + s->promised); /* D9: one return per grant */
        limits += s->slots.limit;
        places += s->places.limit;
        granted += used(&r->b, d);
    }
    AGREE(limits, r->b.l.total); /* D3 */
    AGREE(places, r->b.l.places_total);
    if (granted > r->b.l.total || !wr_ledger_is_valid(&r->b.l))
        fail_msg("seed %llu: the ledger is not valid", (unsigned long long)seed);
}

static void run_init(struct run *r)
{
    uint32_t count = 2 + pick(D - 1), total = 1 + pick(12), places = pick(14), left = total,
             places_left = places;
    struct given given[D] = { { 0 } };

    memset(r, 0, sizeof(*r));
    for (uint32_t d = 1; d < count; d++) {
        given[d].slots = pick(left + 1);
        given[d].places = pick(places_left + 1);
        left -= given[d].slots;
        places_left -= given[d].places;
        given[d].slots_reserved = pick(2);
        given[d].places_reserved = pick(2);
        given[d].lend_max = pick(given[d].slots + 1);
        given[d].places_lend_max = pick(given[d].places + 1);
    }
    given[0].lend_max = pick(3) ? 0 : pick(left + 1);
    given[0].places_lend_max = pick(3) ? 0 : pick(places_left + 1);
    books_init(&r->b, total, places, count, given);
    for (uint32_t d = 1; d < count; d++) { /* for when it is resized */
        r->b.share[d].slots.lends_half = pick(2);
        r->b.share[d].places.lends_half = pick(2);
        r->b.l.apart |= pick(4) == 0 ? wr_domain_bit(d) : 0;
    }
    r->b.l.floor = pick(3) ? 0 : pick(left + 1);
    r->b.l.lending.hold = 1 + pick(3);
    r->b.l.lending.headroom = pick(2) ? 0 : 25;
    r->b.l.lending.step = pick(2) ? WR_INF : 1 + pick(3);
    r->m = (struct model){ .count = count, .floor = r->b.l.floor, .l = &r->b.l, .turn_left = 1 };
    for (uint32_t d = 0; d < count; d++) {
        const struct wr_share *share = &r->b.share[d];
        for (int what = WR_SLOTS; what < WR_RESOURCES; what++) {
            const struct wr_stock *from = what == WR_SLOTS ? &share->slots : &share->places;
            r->m.pot[what].amount[d] = r->m.pot[what].at[d] = from->amount;
            r->m.pot[what].lend_max[d] = from->lend_max;
        }
        r->m.receiver[d] = -1;
    }
}

static bool do_admit(struct run *r, uint32_t d, uint64_t seed)
{
    struct model *m = &r->m;
    bool ready = pick(4) > 0;
    uint32_t before = waiting_in(m, d), whose;
    weir_reason reason = WEIR_REASON_NONE, got = wr_ledger_admit(&r->b.l, d, ready);

    if (m->released[d]) {
        AGREE(got, WEIR_REASON_DOMAIN_RELEASED);
        return false;
    }
    m->queued[d]++;
    m->want[d] += ready;
    model_settle(m);
    whose = borrowed_by(m, WR_PLACES, d) ? 0 : d;
    if (waiting_in(m, d) > before && used_of(m, WR_PLACES, whose) > m->pot[WR_PLACES].at[whose]) {
        reason = WEIR_REASON_DOMAIN_QUEUE_FULL;
        m->queued[d]--;
        m->want[d] -= ready;
        model_settle(m);
    } else {
        r->unready[d] += !ready;
    }
    AGREE(got, reason); /* D6 */
    return true;
}

static bool do_take(struct run *r, uint32_t d, uint64_t seed)
{
    struct model *m = &r->m;

    (void)seed;
    if (!m->promised[d])
        return false;
    wr_ledger_take(&r->b.l, d);
    m->promised[d]--;
    m->want[d]--;
    m->queued[d]--;
    r->running[d]++;
    return true;
}

static bool do_give(struct run *r, uint32_t d, uint64_t seed)
{
    (void)seed;
    if (!r->running[d])
        return false;
    wr_ledger_give(&r->b.l, d);
    r->running[d]--;
    leave(&r->m, d);
    model_settle(&r->m);
    return true;
}

/* A group is paused, or resumed. */
static bool do_want(struct run *r, uint32_t d, uint64_t seed)
{
    bool less = r->m.want[d] && pick(2);

    (void)seed;
    if (!less && !r->unready[d])
        return false;
    wr_ledger_want(&r->b.l, d, less ? -1 : 1);
    r->m.want[d] += less ? -1u : 1u;
    r->unready[d] += less ? 1u : -1u;
    model_settle(&r->m);
    return true;
}

/* One that its group keeps is cancelled. */
static bool do_withdraw(struct run *r, uint32_t d, uint64_t seed)
{
    (void)seed;
    if (!r->unready[d])
        return false;
    wr_ledger_queued(&r->b.l, d, -1);
    r->m.queued[d]--;
    r->unready[d]--;
    model_settle(&r->m);
    return true;
}

/* A started one is put back. */
static bool do_untake(struct run *r, uint32_t d, uint64_t seed)
{
    (void)seed;
    if (!r->running[d])
        return false;
    wr_ledger_untake(&r->b.l, d);
    r->m.queued[d]++;
    r->running[d]--;
    r->unready[d]++;
    leave(&r->m, d);
    model_settle(&r->m);
    return true;
}

/* One hands its slot over to the next, which cannot use it perhaps. */
static bool do_hand_over(struct run *r, uint32_t d, uint64_t seed)
{
    if (!r->running[d] || !r->unready[d] || !wr_ledger_hand_over(&r->b.l, d))
        return false;
    r->m.queued[d]--;
    r->unready[d]--;
    model_settle(&r->m);
    if (pick(2))
        return true;
    compare(r, seed);
    wr_ledger_queued(&r->b.l, d, 1);
    r->m.queued[d]++;
    r->unready[d]++;
    model_settle(&r->m);
    return true;
}

static bool do_sample(struct run *r, uint32_t d, uint64_t seed)
{
    (void)d, (void)seed;
    wr_ledger_sample(&r->b.l);
    model_sample(&r->m);
    return true;
}

static bool do_restore(struct run *r, uint32_t d, uint64_t seed)
{
    (void)seed;
    if (!r->m.released[d])
        return false;
    wr_ledger_restore(&r->b.l, d);
    r->m.released[d] = false;
    model_settle(&r->m);
    return true;
}

/* The tasks that wait in the domain are refused, one by one. */
static bool do_release(struct run *r, uint32_t d, uint64_t seed)
{
    uint32_t to = pick(r->m.count);

    if (pick(2) || !wr_ledger_can_release(&r->b.l, d, to))
        return false;
    wr_ledger_release(&r->b.l, d, to);
    model_release(&r->m, d, to);
    while (r->m.queued[d]) {
        bool ready = r->m.queued[d] > r->unready[d];
        compare(r, seed);
        wr_ledger_queued(&r->b.l, d, -1);
        r->m.queued[d]--;
        r->unready[d] -= !ready;
        if (ready) {
            wr_ledger_want(&r->b.l, d, -1);
            r->m.want[d]--;
        }
        model_settle(&r->m);
    }
    return true;
}

static bool do_resize(struct run *r, uint32_t d, uint64_t seed)
{
    enum wr_resource what = pick(2) ? WR_SLOTS : WR_PLACES;
    uint32_t amount = pick(wr_ledger_most(&r->b.l, what, d) + 1);

    (void)seed;
    if (d == 0 || wr_ledger_in_release(&r->b.l, d))
        return false;
    wr_ledger_resize(&r->b.l, what, d, amount);
    model_resize(&r->m, what, d, amount);
    return true;
}

/* All but so many tasks of each domain end, one after the other, and none waits but one in d. */
static bool model_serves(struct model m, uint32_t d, const uint64_t *stuck)
{
    for (uint32_t i = 0; i < m.count; i++)
        m.want[i] = 0;
    model_settle(&m);
    for (uint32_t i = 0; i < m.count; i++)
        while (sum_of(m.on[i], m.count, 1) > stuck[i]) {
            leave(&m, i);
            model_settle(&m);
        }
    m.want[d] = 1;
    model_settle(&m);
    return m.promised[d];
}

/* Some of the running ones will never end. Nothing changes by the question. */
static bool do_ask(struct run *r, uint32_t d, uint64_t seed)
{
    struct books copy;
    const struct model *m = &r->m;
    struct wr_hopes hopes;
    uint64_t stuck[D];
    bool has_slots = m->pot[WR_SLOTS].amount[d] ||
                     (r->b.share[d].slots_reserved && m->pot[WR_SLOTS].amount[0] > m->floor);

    copy.l = (struct wr_ledger){ .share = copy.share, .loan = copy.loan };
    for (uint32_t i = 0; i < m->count; i++)
        stuck[i] = pick(r->running[i] + 1);
    AGREE(wr_ledger_may_get_slot(&r->b.l, &copy.l, d, stuck, &hopes),
          m->released[d] || !has_slots || m->promised[d] || model_serves(*m, d, stuck));
    return true;
}

/* Each answers whether anything happened; those that stand here twice happen twice as often. */
static bool (*const events[])(struct run *r, uint32_t d, uint64_t seed) = {
    do_admit,  do_admit,   do_admit,   do_take,     do_take,   do_take,
    do_give,   do_give,    do_want,    do_withdraw, do_untake, do_hand_over,
    do_sample, do_restore, do_release, do_resize,   do_ask
};

static bool do_step(struct run *r, uint64_t seed)
{
    uint32_t event = pick(sizeof(events) / sizeof(events[0]));

    return events[event](r, pick(r->m.count), seed);
}

/* D7: everything ends, is restored, and the books are as in the beginning. */
static void wind_up(struct run *r, uint64_t seed)
{
    struct wr_ledger *l = &r->b.l;

    for (uint32_t d = 1; d < l->count; d++)
        if (r->b.share[d].released)
            wr_ledger_restore(l, d);
    for (uint32_t d = 0; d < l->count; d++) {
        while (r->running[d]--)
            wr_ledger_give(l, d);
        while (r->b.share[d].queued > 0) {
            wr_ledger_queued(l, d, -1);
            if (r->b.share[d].want)
                wr_ledger_want(l, d, -1);
        }
    }
    for (uint32_t d = 0; d < l->count; d++) {
        const struct wr_share *share = &r->b.share[d];
        AGREE(used(&r->b, d), 0);
        AGREE(share->charged, 0);
        for (const struct wr_stock *stock = &share->slots; stock;
             stock = stock == &share->slots ? &share->places : NULL) {
            AGREE(stock->forced, 0);
            AGREE(stock->due, 0);
            AGREE(stock->limit + stock->lent, stock->amount + stock->received);
        }
    }
}

static void test_random_schedules_agree_with_the_model(void **state)
{
    enum { SCHEDULES = SANITIZED ? 10000 : 50000, STEPS = 40 };
    static struct run r;
    const char *only = getenv("WEIR_SEED");
    uint64_t from = only ? strtoull(only, NULL, 10) : soak_seed(1);
    uint64_t to = only ? from : from + soak_times(SCHEDULES) - 1;
    (void)state;

    for (uint64_t seed = from; seed <= to; seed++) {
        luck = seed * 0x9E3779B97F4A7C15u;
        run_init(&r);
        for (int i = 0; i < STEPS; i++) {
            if (do_step(&r, seed))
                compare(&r, seed);
        }
        wind_up(&r, seed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_schedules_agree_with_the_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
