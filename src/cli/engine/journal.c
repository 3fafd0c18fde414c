/* The journal: rows, and the thread that commits them.
 * SPDX-License-Identifier: MIT */
#include "cli/engine/journal.h"

#include "base/assert.h"
#include "cli/engine/journal_file.h"
#include "cli/engine/journal_identity.h"
#include "cli/engine/tally.h"
#include "cli/screen/say.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <sqlite3.h>

enum { MEETS_MAX = 2000 }; /* rows met before they are committed by themselves */

enum statement { FIND, INSERT, MEET, COUNT, RESULT, BEGIN, COMMIT, STATEMENTS };

static const char *const sql[STATEMENTS] = {
    [FIND] = "SELECT id, met, reason FROM task WHERE hash=?1 AND hash2=?2 AND nth=?3 AND words=?4 "
             "AND record=?5 AND \"group\"=?6 AND env=?7 AND cwd=?8",
    [INSERT] = "INSERT INTO task(hash, hash2, nth, words, record, \"group\", env, cwd, first_run, "
               "met) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9) ON CONFLICT DO UPDATE SET "
               "words=?4, record=?5, \"group\"=?6, env=?7, cwd=?8, first_run=?9, met=?9, "
               "reason=NULL RETURNING id",
    [MEET] = "UPDATE task SET met=?2 WHERE id=?1",
    [COUNT] = "INSERT INTO same VALUES(?1, ?2, ?3, 2) ON CONFLICT DO UPDATE SET "
              "count=CASE run WHEN ?3 THEN count+1 ELSE 2 END, run=?3 RETURNING count",
    [RESULT] = "UPDATE task SET run=?2, seq=?3, reason=?4, exit=?5, signal=?6, attempts=?7, "
               "started=?8, ended=?9, failed_attempts=?10 WHERE id=?1",
    [BEGIN] = "BEGIN IMMEDIATE",
    [COMMIT] = "COMMIT",
};

/* The database is under `database_lock`; the queue under `lock`. The first may be held while the second is taken. */
struct journal {
    struct engine *engine;
    struct journal_file file;
    sqlite3_stmt *statement[STATEMENTS];
    pthread_mutex_t database_lock;
    bool in_transaction;
    int meets; /* since the last commit */
    int64_t run;
    struct span env, cwd; /* what all tasks share; owned */

    pthread_mutex_t lock;
    pthread_cond_t more;
    struct wr_list queue; /* tasks whose result is to be written */
    bool closing, failed;
    char error[200]; /* why it failed; under database_lock */
    pthread_t writer;
    bool has_writer;
    int64_t epoch_ns; /* add it to a weir_time to get the time of day */
};

/* ---- statements ----------------------------------------------------------------------------------- */

/* Keeps what went wrong first: statements that follow, such as ROLLBACK, have errors of their own. */
static void note_error(struct journal *journal)
{
    if (!journal->error[0])
        journal_file_why(&journal->file, journal->error, sizeof(journal->error));
}

static int wrong(struct journal *journal, const char *what)
{
    bool said = atomic_exchange(&journal->engine->wrong, true);

    note_error(journal);
    journal->failed = true;
    if (!said)
        engine_say(
            journal->engine,
            "%s: %s: %s; starting no more commands: what succeeded since is not recorded, and "
            "will run again",
            journal->engine->opt->journal_path, what, journal->error);
    engine_ask(journal->engine, HALT_SOON);
    return WEIR_ECANCELED;
}

/* Runs a statement once; SQLITE_ROW or SQLITE_DONE, else an error. The caller resets it. */
static int step(struct journal *journal, enum statement which)
{
    return sqlite3_step(journal->statement[which]);
}

static bool run(struct journal *journal, enum statement which)
{
    int rc = step(journal, which);

    sqlite3_reset(journal->statement[which]);
    return rc == SQLITE_DONE || rc == SQLITE_ROW;
}

static bool begin(struct journal *journal)
{
    if (!journal->in_transaction)
        journal->in_transaction = run(journal, BEGIN);
    return journal->in_transaction;
}

static bool commit(struct journal *journal)
{
    bool done = !journal->in_transaction || run(journal, COMMIT);

    if (!done) {
        note_error(journal);
        sqlite3_exec(journal->file.database, "ROLLBACK", NULL, NULL, NULL);
    }
    journal->in_transaction = false;
    journal->meets = 0;
    return done;
}

/* ---- identity ------------------------------------------------------------------------------------- */

static void bind_span(sqlite3_stmt *statement, int index, const struct span *span)
{
    sqlite3_bind_blob64(statement, index, span->length ? span->text : "", span->length,
                        SQLITE_STATIC);
}

static void bind_identity(sqlite3_stmt *statement, const struct identity *identity, int64_t nth)
{
    sqlite3_bind_int64(statement, 1, (int64_t)identity->hash[0]);
    sqlite3_bind_int64(statement, 2, (int64_t)identity->hash[1]);
    sqlite3_bind_int64(statement, 3, nth);
    bind_span(statement, 4, &identity->words);
    bind_span(statement, 5, &identity->record);
    bind_span(statement, 6, &identity->group);
    bind_span(statement, 7, &identity->env);
    bind_span(statement, 8, &identity->cwd);
}

/* ---- meeting tasks -------------------------------------------------------------------------------- */

struct met {
    int64_t id, run; /* 0: there is none */
    enum journal_verdict verdict;
};

static enum journal_verdict judge(const struct journal *journal, const char *reason)
{
    const struct engine_options *opt = journal->engine->opt;

    if (!opt->resume || !reason)
        return JOURNAL_RUN;
    if (!strcmp(reason, "done"))
        return JOURNAL_DONE;
    return opt->retry_failed ? JOURNAL_RUN : JOURNAL_FAILED;
}

/* The nth task of that content; false: an error. */
static bool find(struct met *out, struct journal *journal, const struct identity *identity,
                 int64_t nth)
{
    sqlite3_stmt *statement = journal->statement[FIND];
    int rc;

    *out = (struct met){ 0 };
    bind_identity(statement, identity, nth);
    rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW) {
        out->id = sqlite3_column_int64(statement, 0);
        out->run = sqlite3_column_int64(statement, 1);
        out->verdict = judge(journal, (const char *)sqlite3_column_text(statement, 2));
    }
    sqlite3_reset(statement);
    return rc == SQLITE_ROW || rc == SQLITE_DONE;
}

static bool insert(struct met *out, struct journal *journal, const struct identity *identity,
                   int64_t nth)
{
    sqlite3_stmt *statement = journal->statement[INSERT];
    int rc;

    bind_identity(statement, identity, nth);
    sqlite3_bind_int64(statement, 9, journal->run);
    rc = sqlite3_step(statement);
    *out = (struct met){ .run = journal->run };
    if (rc == SQLITE_ROW)
        out->id = sqlite3_column_int64(statement, 0);
    sqlite3_reset(statement);
    return rc == SQLITE_ROW;
}

static bool mark(struct journal *journal, int64_t id)
{
    sqlite3_bind_int64(journal->statement[MEET], 1, id);
    sqlite3_bind_int64(journal->statement[MEET], 2, journal->run);
    return run(journal, MEET);
}

/* How many equal tasks this run has met, this one included; it has met one before. */
static bool count_same(int64_t *count, struct journal *journal, const struct identity *identity)
{
    sqlite3_stmt *statement = journal->statement[COUNT];
    int rc;

    sqlite3_bind_int64(statement, 1, (int64_t)identity->hash[0]);
    sqlite3_bind_int64(statement, 2, (int64_t)identity->hash[1]);
    sqlite3_bind_int64(statement, 3, journal->run);
    rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW)
        *count = sqlite3_column_int64(statement, 0);
    sqlite3_reset(statement);
    return rc == SQLITE_ROW;
}

static bool meet(struct met *out, struct journal *journal, const struct identity *identity)
{
    int64_t nth = 1;

    if (!begin(journal) || !find(out, journal, identity, nth))
        return false;
    if (out->id && out->run == journal->run &&
        (!count_same(&nth, journal, identity) || !find(out, journal, identity, nth)))
        return false;
    if (!out->id)
        return insert(out, journal, identity, nth);
    return mark(journal, out->id);
}

int journal_meet(enum journal_verdict *verdict, struct task *task)
{
    struct journal *journal = task->engine->journal;
    struct identity identity;
    struct met met = { 0 };
    int rc = identity_of(&identity, &task->plan, journal->env, journal->cwd);

    if (!rc) {
        pthread_mutex_lock(&journal->database_lock);
        if (!meet(&met, journal, &identity))
            rc = wrong(journal, "cannot write the journal");
        else if (++journal->meets >= MEETS_MAX && !commit(journal))
            rc = wrong(journal, "cannot write the journal");
        pthread_mutex_unlock(&journal->database_lock);
    }
    identity_fini(&identity);
    task->journal_id = met.id;
    *verdict = met.verdict;
    return rc;
}

/* ---- results -------------------------------------------------------------------------------------- */

static void bind_status(sqlite3_stmt *statement, const struct task *task)
{
    sqlite3_bind_null(statement, 5);
    sqlite3_bind_null(statement, 6);
    if (task->outcome == OUTCOME_CANNOT_RUN)
        sqlite3_bind_int(statement, 5, task->exec_error == ENOENT ? 127 : 126);
    else if (task->status >= 0 && WIFSIGNALED(task->status))
        sqlite3_bind_int(statement, 6, WTERMSIG(task->status));
    else if (task->status >= 0)
        sqlite3_bind_int(statement, 5, WEXITSTATUS(task->status));
}

static void bind_time(const struct journal *journal, int index, weir_time when)
{
    if (when)
        sqlite3_bind_double(journal->statement[RESULT], index,
                            (double)(when + journal->epoch_ns) / 1e9);
    else
        sqlite3_bind_null(journal->statement[RESULT], index);
}

static bool write_result(struct journal *journal, const struct task *task)
{
    sqlite3_stmt *statement = journal->statement[RESULT];

    sqlite3_bind_int64(statement, 1, task->journal_id);
    sqlite3_bind_int64(statement, 2, journal->run);
    sqlite3_bind_int64(statement, 3, (int64_t)task->seq);
    sqlite3_bind_text(statement, 4, outcome_name(task->outcome), -1, SQLITE_STATIC);
    bind_status(statement, task);
    sqlite3_bind_int64(statement, 7, task->attempts);
    bind_time(journal, 8, task->started_at);
    bind_time(journal, 9, task->ended_at);
    if (task->failed_attempts)
        sqlite3_bind_text(statement, 10, task->failed_attempts, -1, SQLITE_STATIC);
    else
        sqlite3_bind_null(statement, 10);
    return run(journal, RESULT);
}

/* All of a list in one commit. */
static bool write_list(struct journal *journal, struct wr_list *list)
{
    bool fine;

    pthread_mutex_lock(&journal->database_lock);
    fine = !journal->failed && begin(journal);
    wr_list_each(link, list) {
        struct task *task = WR_CONTAINER(link, struct task, link);
        fine = fine && (!task->journal_id || write_result(journal, task));
    }
    fine = fine && commit(journal);
    if (!fine && !journal->failed)
        wrong(journal, "cannot write the journal");
    pthread_mutex_unlock(&journal->database_lock);
    return fine;
}

static void write_and_tell(struct journal *journal, struct wr_list *list)
{
    bool fine = write_list(journal, list);

    wr_list_each_safe(link, list) {
        struct task *task = WR_CONTAINER(link, struct task, link);
        wr_list_remove(&task->link);
        if (!fine && task->outcome == OUTCOME_DONE)
            task->outcome = OUTCOME_NOT_RECORDED;
        task->tell(task);
    }
}

static void *write_all(void *arg)
{
    struct journal *journal = arg;

    for (;;) {
        struct wr_list list;
        bool over;
        wr_list_init(&list);
        pthread_mutex_lock(&journal->lock);
        while (wr_list_empty(&journal->queue) && !journal->closing)
            pthread_cond_wait(&journal->more, &journal->lock);
        while (!wr_list_empty(&journal->queue)) {
            struct wr_list *link = journal->queue.next;
            wr_list_remove(link);
            wr_list_append(&list, link);
        }
        over = wr_list_empty(&list);
        pthread_mutex_unlock(&journal->lock);
        if (over)
            return NULL;
        write_and_tell(journal, &list);
    }
}

void journal_add(struct journal *journal, struct task *task, void (*tell)(struct task *task))
{
    task->tell = tell;
    pthread_mutex_lock(&journal->lock);
    wr_list_append(&journal->queue, &task->link);
    pthread_cond_signal(&journal->more);
    pthread_mutex_unlock(&journal->lock);
}

/* ---- opening and closing -------------------------------------------------------------------------- */

/* NAME=VALUE of what --env declares. */
static int join_environment(struct journal *journal)
{
    const struct engine_options *opt = journal->engine->opt;
    char *text = NULL;
    size_t length;
    FILE *file = open_memstream(&text, &length);

    if (!file)
        return -1;
    for (size_t i = 0; i < opt->env_count; i++) {
        const char *value = strchr(opt->env[i], '=') ? NULL : getenv(opt->env[i]);
        fprintf(file, "%s%s%s", opt->env[i], value ? "=" : "", value ? value : "");
        putc(0, file);
    }
    if (fclose(file))
        return -1;
    journal->env = (struct span){ text, length };
    return 0;
}

static int prepare(struct journal *journal)
{
    char *cwd = getcwd(NULL, 0);

    if (!cwd) {
        snprintf(journal->error, sizeof(journal->error), "the current directory: %s",
                 strerror(errno));
        return SQLITE_CANTOPEN;
    }
    journal->cwd = (struct span){ cwd, strlen(cwd) };
    if (join_environment(journal))
        return SQLITE_NOMEM;
    for (int i = 0; i < STATEMENTS; i++) {
        int rc = sqlite3_prepare_v3(journal->file.database, sql[i], -1, SQLITE_PREPARE_PERSISTENT,
                                    &journal->statement[i], NULL);
        if (rc)
            return rc;
    }
    return 0;
}

int journal_open(struct journal **out, struct engine *engine)
{
    struct journal *journal = *out = calloc(1, sizeof(*journal));
    struct timespec now;
    int status;

    if (!journal)
        return SAY_WRONG;
    journal->engine = engine;
    wr_list_init(&journal->queue);
    pthread_mutex_init(&journal->lock, NULL);
    pthread_mutex_init(&journal->database_lock, NULL);
    pthread_cond_init(&journal->more, NULL);
    clock_gettime(CLOCK_REALTIME, &now);
    journal->epoch_ns = now.tv_sec * INT64_C(1000000000) + now.tv_nsec - weir_now();
    status = journal_file_open(&journal->file, engine->opt->journal_path);
    if (!status && (prepare(journal) || !journal_file_begin_run(&journal->file, &journal->run) ||
                    pthread_create(&journal->writer, NULL, write_all, journal))) {
        note_error(journal);
        say("--journal %s: %s", engine->opt->journal_path, journal->error);
        status = SAY_WRONG;
    }
    journal->has_writer = !status;
    return status;
}

void journal_close(struct journal *journal)
{
    if (!journal)
        return;
    if (journal->has_writer) {
        pthread_mutex_lock(&journal->lock);
        journal->closing = true;
        pthread_cond_signal(&journal->more);
        pthread_mutex_unlock(&journal->lock);
        pthread_join(journal->writer, NULL);
        commit(journal);
        journal_file_end_run(&journal->file, journal->run);
    }
    for (int i = 0; i < STATEMENTS; i++)
        sqlite3_finalize(journal->statement[i]);
    journal_file_close(&journal->file);
    free((char *)journal->env.text);
    free((char *)journal->cwd.text);
    pthread_mutex_destroy(&journal->lock);
    pthread_mutex_destroy(&journal->database_lock);
    pthread_cond_destroy(&journal->more);
    free(journal);
}
