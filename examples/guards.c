/* Guards, one by one, as docs/guards.md tells them. Each function checks what it claims, so the test suite runs this
 * program too.
 * SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weir.h>

#define MUST(condition)    \
    ((condition) ? (void)0 \
                 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition), exit(1)))

#define MS INT64_C(1000000)

/* ---- at most so many at a time ------------------------------------------------------------------ */

/* A database that takes ten calls at a time; whoever finds it busy waits for 200 ms at most. */
static int query(weir_guard *db)
{
    WEIR_SCOPED_PERMIT(permit);
    int rc = weir_guard_enter(&permit, db, weir_in_ms(200));

    if (rc)
        return rc; /* WEIR_EFULL */
    return weir_guard_leave(&permit, 0);
}

static void bulkhead(void)
{
    weir_guard *db;
    weir_message text;

    MUST(weir_guard_new(&db, NULL, "db", WEIR_BULKHEAD(.limit = 10), NULL) == 0);
    MUST(query(db) == 0);
    MUST(weir_guard_describe(&text, db) == 0);
    printf("%s\n", text.text);
    weir_guard_unref(db);
}

/* ---- at most so often ---------------------------------------------------------------------------- */

/* An API that allows 5 calls per 100 ms. The sixth waits for the next cycle; one that will not wait learns when. */
static void rate(void)
{
    weir_guard *api;
    weir_permit permit = WEIR_PERMIT;
    weir_time begin = weir_now();

    MUST(weir_guard_new(&api, NULL, "api", WEIR_RATE(.limit = 5, .period_ns = 100 * MS), NULL) ==
         0);
    for (int i = 0; i < 5; i++) {
        permit = WEIR_PERMIT;
        MUST(weir_guard_enter(&permit, api, WEIR_NOW_OR_NEVER) == 0);
    }
    permit = WEIR_PERMIT;
    if (weir_guard_enter(&permit, api, WEIR_NOW_OR_NEVER) == WEIR_ETOOFAST)
        printf("again in %.0f ms\n", (double)(permit.retry_at - weir_now()) / 1e6);
    permit = WEIR_PERMIT;
    MUST(weir_guard_enter(&permit, api, weir_in_s(5)) == 0);
    MUST(weir_now() - begin >= 100 * MS);
    weir_guard_unref(api);
}

/* ---- whether at all -------------------------------------------------------------------------------- */

/* A mail server that is down: after 4 failures of 5 calls none is sent, until it had time to recover. */
static int send_mail(weir_guard *mail, int outcome)
{
    WEIR_SCOPED_PERMIT(permit);
    int rc = weir_guard_enter(&permit, mail, WEIR_NOW_OR_NEVER);

    if (rc)
        return rc; /* WEIR_EBROKEN: not even tried */
    weir_guard_leave(&permit, outcome);
    return outcome;
}

static void breaker(void)
{
    weir_guard_stats stats = { .size = sizeof(stats) };
    weir_guard *mail;

    MUST(weir_guard_new(
             &mail, NULL, "mail",
             WEIR_BREAKER(.window = 5, .failure_percent = 80, .probes = 2, .open_ns = 20 * MS),
             NULL) == 0);
    MUST(send_mail(mail, 0) == 0);
    for (int i = 0; i < 4; i++)
        MUST(send_mail(mail, -ECONNREFUSED) == -ECONNREFUSED);
    MUST(send_mail(mail, 0) == WEIR_EBROKEN);
    weir_sleep(weir_in_ms(30));
    MUST(send_mail(mail, 0) == 0); /* two probes decide */
    MUST(send_mail(mail, 0) == 0);
    MUST(weir_guard_stats_get(&stats, mail) == 0 && stats.state == WEIR_CLOSED);
    printf("mail is %s again\n", weir_breaker_state_name(stats.state));
    weir_guard_unref(mail);
}

/* ---- all of them, as one step ---------------------------------------------------------------------- */

static void together(void)
{
    weir_guard *guards[3];
    weir_permit permits[3] = { WEIR_PERMIT, WEIR_PERMIT, WEIR_PERMIT };

    MUST(weir_guard_new(&guards[0], NULL, "pay", WEIR_BREAKER(), NULL) == 0);
    MUST(weir_guard_new(&guards[1], NULL, "pay rate", WEIR_RATE(.limit = 100), NULL) == 0);
    MUST(weir_guard_new(&guards[2], NULL, "pay slots", WEIR_BULKHEAD(.limit = 4), NULL) == 0);
    MUST(weir_guards_enter(permits, guards, 3, weir_in_s(1)) == 0); /* all or none */
    weir_guards_leave(permits, 3, 0);
    for (int i = 0; i < 3; i++)
        weir_guard_unref(guards[i]);
}

/* ---- trying again, but not for ever and not all at once --------------------------------------------- */

static int flaky(void *calls)
{
    return ++*(int *)calls < 3 ? -EAGAIN : 0;
}

static void retries(void)
{
    weir_guard *budget;
    uint32_t attempts;
    int calls = 0;

    MUST(weir_guard_new(&budget, NULL, "retries", WEIR_BUDGET(.budget_percent = 20), NULL) == 0);
    MUST(weir_retry(&attempts, flaky, &calls, weir_in_s(5),
                    WEIR_RETRY(.first_ns = 1 * MS, .jitter = 0.5, .budget = budget)) == 0);
    MUST(attempts == 3);
    weir_guard_unref(budget);
}

/* ---- one at a time on this machine ------------------------------------------------------------------ */

/* A nightly job that must not overlap, also not with one started by hand; a crash frees the mutex. */
static void host(void)
{
    char directory[64];
    weir_store *store;
    weir_guard *nightly;
    weir_permit permit = WEIR_PERMIT;
    weir_message why;

    snprintf(directory, sizeof(directory), "/tmp/weir-example-%d", (int)getpid());
    if (weir_store_host(&store, WEIR_HOST(.directory = directory), &why)) {
        fprintf(stderr, "%s\n", why.text);
        exit(1);
    }
    MUST(weir_guard_new(&nightly, store, "nightly", WEIR_MUTEX(), NULL) == 0);
    MUST(weir_guard_enter(&permit, nightly, WEIR_NOW_OR_NEVER) == 0);
    printf("holder number %llu\n", (unsigned long long)permit.token);
    weir_guard_leave(&permit, 0);
    weir_guard_unref(nightly);
    weir_store_free(store);
    rmdir(directory);
}

int main(void)
{
    bulkhead();
    rate();
    breaker();
    together();
    retries();
    host();
    return 0;
}
