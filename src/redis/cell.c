/* One guard of a fleet: its life, and the calls of its scripts.
 * SPDX-License-Identifier: MIT */
#include "redis/cell.h"

#include "base/assert.h"
#include "base/os.h"
#include "redis/config.h"
#include "redis/leased.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { LEASE_S = 30, SOON_MIN_MS = 5, SOON_MAX_MS = 1000 };

/* ---- options ------------------------------------------------------------------------------------- */

static int take_options(struct wr_fleet_cell *cell, const weir_guard_options *opt,
                        weir_message *message)
{
    cell->kind = opt->kind;
    cell->mode = opt->mode;
    cell->made = cell->set = *opt;
    wr_settings_name_nothing(&cell->made);
    wr_settings_name_nothing(&cell->set);
    cell->seen_limit = opt->limit == WEIR_NO_CALLS ? 0 : opt->limit;
    cell->lease_ns = opt->lease_ns ? opt->lease_ns : LEASE_S * (1000 * WR_MS);
    cell->share = opt->share ? opt->share : 1;
    cell->when_away = opt->when_away ? opt->when_away : WEIR_AWAY_CLOSED;
    cell->keep_task = opt->keep_task;
    cell->on_lost = opt->on_lost;
    cell->lost_arg = opt->lost_arg;
    if (cell->lease_ns < WR_LEASE_MIN_MS * WR_MS || cell->lease_ns > INT64_C(86400000) * WR_MS)
        return wr_redis_fail(WEIR_EINVAL, message, "lease_ns is %" PRId64 ": use %d ms to a day",
                             cell->lease_ns, WR_LEASE_MIN_MS);
    if (opt->margin_ns < 0 || opt->margin_ns > cell->lease_ns / 2)
        return wr_redis_fail(WEIR_EINVAL, message,
                             "margin_ns is %" PRId64 ": at most half of the lease", opt->margin_ns);
    if (cell->share < 1 || cell->share > WEIR_PERMITS_MAX)
        return wr_redis_fail(WEIR_EINVAL, message, "share is %" PRId64 ": use 1 or more",
                             cell->share);
    if (cell->when_away > WEIR_AWAY_SHARE)
        return wr_redis_fail(WEIR_EINVAL, message, "when_away is %d: not one of weir_when_away",
                             (int)cell->when_away);
    if ((opt->kind == WEIR_GUARD_RATE || opt->kind == WEIR_GUARD_FREQUENCY) &&
        (opt->period_ns % 1000 || opt->initial_ns % 1000 || opt->period_ns > INT64_C(1) << 50))
        return wr_redis_fail(WEIR_EINVAL, message,
                             "period_ns is %" PRId64
                             ": a server counts whole microseconds, up to 13 days",
                             opt->period_ns);
    cell->margin_ns = opt->margin_ns ? opt->margin_ns : cell->lease_ns / 10;
    return 0;
}

/* ---- life ---------------------------------------------------------------------------------------- */

static void free_cell(struct wr_fleet_cell *cell)
{
    for (int i = 0; i < WR_KEYS; i++)
        wr_os_free(cell->key[i]);
    weir_guard_unref(cell->share_guard);
    if (cell->pool)
        wr_os_free(cell->pool->unit);
    wr_os_free(cell->pool);
    wr_os_free(cell);
}

void wr_cell_ref(struct wr_fleet_cell *cell)
{
    wr_lock(&cell->fleet->lock);
    cell->refs++;
    wr_unlock(&cell->fleet->lock);
}

void wr_cell_unref(struct wr_fleet_cell *cell)
{
    struct wr_fleet *fleet = cell->fleet;
    bool last;

    wr_lock(&fleet->lock);
    last = --cell->refs == 0;
    if (last)
        wr_list_remove(&cell->link);
    wr_unlock(&fleet->lock);
    if (last)
        free_cell(cell);
}

static int open_cell(struct wr_fleet_cell *cell, const char *name, const weir_guard_options *opt,
                     weir_message *message)
{
    bool any = opt->kind == WEIR_GUARD_ANY;
    int rc = take_options(cell, opt, message);
    int64_t asked;

    if (!rc && !wr_cell_make_keys(cell, name))
        rc = WEIR_ENOMEM;
    if (rc)
        return rc;
    asked = cell->lease_ns;
    rc = wr_cell_open(cell, !any, wr_fleet_deadline(cell->fleet, 0), message);
    if (wr_fleet_is_away(rc) && !any && cell->when_away != WEIR_AWAY_CLOSED)
        rc = 0; /* it will be opened when the server is there */
    else if (wr_fleet_is_away(rc))
        rc = WEIR_EAWAY; /* however that showed */
    if (!rc && cell->lease_ns != asked) {
        if (opt->lease_ns)
            rc = wr_redis_fail(WEIR_EEXIST, message,
                               "%.100s exists with a lease of %" PRId64 " ms, asked for: %" PRId64
                               " ms",
                               name, cell->lease_ns / WR_MS, opt->lease_ns / WR_MS);
        if (!opt->margin_ns)
            cell->margin_ns = cell->lease_ns / 10;
    }
    /* For WEIR_GUARD_ANY, the kind is known only now. */
    return rc ? rc : wr_cell_make_keys(cell, name) ? 0 : WEIR_ENOMEM;
}

int wr_fleet_open_cell(weir_cell **out, weir_store *store, weir_guard *guard,
                       const weir_guard_options *opt, weir_guard_options *made,
                       weir_guard_options *set, weir_message *message)
{
    struct wr_fleet *fleet = wr_fleet_of(store);
    struct wr_fleet_cell *cell = wr_os_alloc(sizeof(*cell));
    int rc;

    if (!cell)
        return WEIR_ENOMEM;
    cell->cell.ops = &wr_fleet_ops;
    cell->fleet = fleet;
    cell->guard = guard;
    cell->refs = 1;
    wr_list_init(&cell->holds);
    wr_list_init(&cell->waiters);
    wr_list_init(&cell->leaving);
    wr_cell_renewal_init(cell);
    rc = open_cell(cell, weir_guard_name(guard), opt, message);
    if (rc) {
        free_cell(cell);
        return rc;
    }
    *made = cell->made;
    *set = cell->set;
    made->kind = set->kind = cell->kind;
    made->mode = set->mode = cell->mode;
    made->lease_ns = set->lease_ns = 0;
    wr_lock(&fleet->lock);
    wr_list_append(&fleet->cells, &cell->link);
    wr_unlock(&fleet->lock);
    *out = &cell->cell;
    return 0;
}

/* Takes out a hold whose leave is still to be sent; NULL: there is none. The teller may look at the cell at the same time. */
static struct wr_hold *take_leaving(struct wr_fleet_cell *cell)
{
    struct wr_hold *hold = NULL;

    wr_lock(&cell->lock);
    if (!wr_list_empty(&cell->leaving)) {
        hold = WR_CONTAINER(cell->leaving.next, struct wr_hold, link);
        wr_list_remove(&hold->link);
    }
    wr_unlock(&cell->lock);
    return hold;
}

void wr_fleet_close_cell(weir_cell *base)
{
    struct wr_fleet_cell *cell = wr_cell_of(base);
    struct wr_hold *hold;

    wr_lock(&cell->lock);
    cell->closing = true;
    wr_unlock(&cell->lock);
    wr_redis_timer_stop(cell->fleet->redis, &cell->renewal);
    if (cell->pool)
        wr_leased_close(cell->pool);
    while ((hold = take_leaving(cell))) {
        wr_cell_send_leave(cell, hold->number, hold->count);
        wr_hold_free(hold);
    }
    wr_cell_unref(cell);
}

weir_time wr_cell_until(const struct wr_fleet_cell *cell, weir_time sent, int64_t clock,
                        int64_t ends)
{
    weir_time until = sent + wr_server_span(clock, ends), most = wr_os_now() + cell->lease_ns;

    return until < most ? until : most;
}

/* ---- refusals ------------------------------------------------------------------------------------ */

static void note_refusal(struct wr_fleet_cell *cell, const char *text)
{
    wr_lock(&cell->lock);
    snprintf(cell->refusal, sizeof(cell->refusal), "%s", text);
    wr_store(&cell->refused, text[0] != '\0', relaxed);
    wr_unlock(&cell->lock);
}

int wr_cell_judge(struct wr_fleet_cell *cell, int error, const struct wr_reply *reply,
                  weir_message *message)
{
    static const char own[] = "FOREIGN ";
    bool foreign, wrong;
    weir_message words;

    if (!error && wr_load(&cell->refused, relaxed))
        note_refusal(cell, "");
    if (!reply || reply->type != WR_REPLY_ERROR)
        return error;
    foreign = strncmp(reply->text, own, sizeof(own) - 1) == 0;
    wrong = wr_reply_is_error(reply, "WRONGTYPE");
    if (foreign)
        wr_redis_fail(0, &words, "%s", reply->text + sizeof(own) - 1);
    else if (wrong)
        wr_redis_fail(0, &words, "%.*s* is not all weir's: %s",
                      (int)cell->key_size[WR_KEY_SETTINGS] - 3, cell->key[WR_KEY_SETTINGS],
                      reply->text);
    else
        wr_redis_fail(0, &words, "%s", reply->text);
    note_refusal(cell, words.text);
    if (!foreign && !wrong)
        return error;
    return wr_redis_fail(WEIR_EFOREIGN, message, "%s", words.text);
}

void wr_cell_say_refused(struct wr_fleet_cell *cell, weir_message *out)
{
    size_t used = strlen(out->text);

    wr_lock(&cell->lock);
    if (cell->refusal[0])
        snprintf(out->text + used, sizeof(out->text) - used, ", the server refuses: %s",
                 cell->refusal);
    wr_unlock(&cell->lock);
}

weir_time wr_cell_soon(const struct wr_fleet_cell *cell, weir_time now)
{
    int64_t pause = cell->lease_ns / 10;

    if (pause < SOON_MIN_MS * WR_MS)
        pause = SOON_MIN_MS * WR_MS;
    return now + (pause > SOON_MAX_MS * WR_MS ? SOON_MAX_MS * WR_MS : pause);
}

/* ---- calls --------------------------------------------------------------------------------------- */

int wr_cell_call(struct wr_reply **out, struct wr_fleet_cell *cell, const struct wr_script *script,
                 const struct wr_words *words, int keys, weir_time deadline)
{
    struct wr_command command = wr_words_command(words, script, keys);
    int rc = words->failed ? WEIR_ENOMEM : 0;

    command.patience = deadline > wr_os_now() && cell->when_away == WEIR_AWAY_CLOSED ? deadline : 0;
    deadline = wr_fleet_deadline(cell->fleet, deadline);
    *out = NULL;
    for (int i = 0; !rc && i < 3; i++) {
        wr_reply_free(*out);
        rc = wr_redis_call(out, cell->fleet->redis, &command, deadline, NULL);
        rc = wr_cell_judge(cell, rc, *out, NULL);
        WR_ASSERT(rc || *out);
        if (rc || (*out)->type == WR_REPLY_INTEGER || wr_reply_number(*out, 0) >= 0)
            break;
        rc = wr_cell_open(cell, true, deadline, NULL); /* the server has forgotten it */
        if (!rc && i == 2)
            rc = WEIR_ENOGUARD;
    }
    if (rc) {
        wr_reply_free(*out);
        *out = NULL;
    }
    return rc;
}

const struct wr_script *wr_cell_script(const struct wr_fleet_cell *cell, int *keys)
{
    *keys = cell->kind == WEIR_GUARD_RATE ? 2 : cell->kind == WEIR_GUARD_FREQUENCY ? 4 : WR_KEYS;
    return cell->kind == WEIR_GUARD_RATE        ? &cell->fleet->rate
           : cell->kind == WEIR_GUARD_FREQUENCY ? &cell->fleet->window
                                                : &cell->fleet->permits;
}
