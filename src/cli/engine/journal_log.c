/* What a journal says.
 * SPDX-License-Identifier: MIT */
#include "cli/engine/journal_log.h"

#include "base/json.h"
#include "cli/engine/journal_schema.h"
#include "cli/opt/quantity.h"
#include "cli/screen/quote.h"
#include "cli/screen/say.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sqlite3.h>

/* ---- opening --------------------------------------------------------------------------------------- */

/* path as a file: URI that SQLite takes for never changing: needed where there is no log beside it and none can be
 * made. */
static char *immutable_uri(const char *path)
{
    char *uri = malloc(3 * strlen(path) + 40), *at = uri;

    if (!uri)
        return NULL;
    at = stpcpy(at, "file:");
    for (; *path; path++)
        at += sprintf(at, strchr("%?# ", *path) ? "%%%02X" : "%c", (unsigned char)*path);
    strcpy(at, "?immutable=1");
    return uri;
}

static bool is_journal(sqlite3 *database)
{
    sqlite3_stmt *statement = NULL;
    bool ours = sqlite3_prepare_v2(database, "PRAGMA application_id", -1, &statement, NULL) == 0 &&
                sqlite3_step(statement) == SQLITE_ROW &&
                sqlite3_column_int64(statement, 0) == atoll(JOURNAL_APPLICATION);

    sqlite3_finalize(statement);
    return ours;
}

static sqlite3 *open_to_read(const char *path)
{
    sqlite3 *database = NULL;
    struct stat st;
    char *uri;

    if (access(path, R_OK) < 0 || stat(path, &st) < 0) {
        say("%s: %m", path);
        return NULL;
    }
    if (!S_ISREG(st.st_mode)) { /* opening a pipe would wait for ever */
        say("%s: not a regular file", path);
        return NULL;
    }
    if (sqlite3_open_v2(path, &database, SQLITE_OPEN_READONLY, NULL) == 0 &&
        sqlite3_busy_timeout(database, JOURNAL_PATIENCE_MS) == 0 && is_journal(database))
        return database;
    sqlite3_close(database);
    database = NULL;
    uri = immutable_uri(path);
    if (uri && sqlite3_open_v2(uri, &database, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL) == 0 &&
        is_journal(database)) {
        free(uri);
        return database;
    }
    free(uri);
    sqlite3_close(database);
    say("%s: not a journal of weir, or damaged", path);
    return NULL;
}

/* ---- values ---------------------------------------------------------------------------------------- */

static void put_json(const char *text, size_t length)
{
    size_t size = 6 * length + 2;
    char *quoted = malloc(size);

    if (quoted)
        fwrite(quoted, 1, wr_json_quote(quoted, size, text, length), stdout);
    else
        fputs("null", stdout);
    free(quoted);
}

static void put_csv(const char *text, size_t length)
{
    bool plain = !memchr(text, '"', length) && !memchr(text, ',', length) &&
                 !memchr(text, '\n', length) && !memchr(text, '\r', length);

    if (plain) {
        fwrite(text, 1, length, stdout);
        return;
    }
    putchar('"');
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '"')
            putchar('"');
        putchar(text[i]);
    }
    putchar('"');
}

/* Words with a zero byte behind each, as a shell would take them. To be freed. */
static char *shell_words(const char *text, size_t length)
{
    size_t count = 0, size;
    char **words, *out = NULL;
    FILE *file;

    for (size_t i = 0; i < length; i++)
        count += !text[i];
    words = calloc(count + 1, sizeof(*words));
    file = words ? open_memstream(&out, &size) : NULL;
    if (file) {
        for (size_t i = 0; i < count; i++) {
            words[i] = (char *)text;
            text += strlen(text) + 1;
        }
        quote_command(file, words);
        fclose(file);
    }
    free(words);
    return out;
}

static void put_words_json(const char *text, size_t length)
{
    const char *end = text + length;

    putchar('[');
    for (const char *at = text; at < end; at += strlen(at) + 1) {
        if (at > text)
            putchar(',');
        put_json(at, strlen(at));
    }
    putchar(']');
}

/* One value of a row. Words come as an array in JSON, and quoted elsewhere. */
static void put_value(sqlite3_stmt *row, int column, enum log_form form)
{
    const char *name = sqlite3_column_name(row, column);
    const char *text = sqlite3_column_blob(row, column);
    size_t length = (size_t)sqlite3_column_bytes(row, column);
    int type = sqlite3_column_type(row, column);
    bool is_command = !strcmp(name, "command");
    char *words = NULL;

    if (is_command && form == LOG_JSONL) {
        put_words_json(text ? text : "", length);
        return;
    }
    if (is_command)
        words = shell_words(text ? text : "", length);
    if (words) {
        text = words;
        length = strlen(words);
    }
    if (type == SQLITE_NULL)
        fputs(form == LOG_JSONL ? "null" : form == LOG_TEXT ? "-" : "", stdout);
    else if (type == SQLITE_INTEGER)
        printf("%lld", (long long)sqlite3_column_int64(row, column));
    else if (type == SQLITE_FLOAT)
        printf("%.6f", sqlite3_column_double(row, column));
    else if (form == LOG_JSONL)
        put_json(text ? text : "", length);
    else if (form == LOG_CSV)
        put_csv(text ? text : "", length);
    else {
        char line[400];
        snprintf(line, sizeof(line), "%.*s", (int)length, text ? text : "");
        say_clean(line, sizeof(line));
        fputs(line[0] ? line : "-", stdout);
    }
    free(words);
}

static void put_names(sqlite3_stmt *row, enum log_form form)
{
    for (int i = 0; i < sqlite3_column_count(row); i++)
        printf("%s%s", i ? form == LOG_CSV ? "," : "\t" : "", sqlite3_column_name(row, i));
    putchar('\n');
}

static void put_row(sqlite3_stmt *row, enum log_form form)
{
    for (int i = 0; i < sqlite3_column_count(row); i++) {
        if (form == LOG_JSONL)
            printf("%s\"%s\":", i ? "," : "{", sqlite3_column_name(row, i));
        else if (i)
            putchar(form == LOG_CSV ? ',' : '\t');
        put_value(row, i, form);
    }
    fputs(form == LOG_JSONL ? "}\n" : "\n", stdout);
}

/* ---- queries --------------------------------------------------------------------------------------- */

#define SECONDS "round(ended - started, 6) AS seconds"

static const char tasks[] =
    "SELECT run, seq, \"group\", reason, exit, signal, attempts, " SECONDS
    ", record, words AS command FROM task WHERE reason IS NOT NULL AND (NOT ?1 OR reason <> 'done')"
    " ORDER BY CASE WHEN ?2 > 0 THEN started - ended ELSE 0 END, run, seq"
    " LIMIT CASE WHEN ?2 > 0 THEN ?2 ELSE -1 END";

static const char groups[] =
    "SELECT \"group\", count(*) AS tasks, sum(reason = 'done') AS done, "
    "sum(reason <> 'done') AS failed, round(avg(ended - started), 6) AS average, "
    "round(max(ended - started), 6) AS slowest FROM task WHERE reason IS NOT NULL AND (NOT ?1 OR "
    "reason <> 'done') GROUP BY \"group\" ORDER BY 1 LIMIT CASE WHEN ?2 > 0 THEN ?2 ELSE -1 END";

/* The tasks that the last run ran. A task that it met for the first time is compared with another task of the same record,
 * or of the same words, that it did not meet. */
static const char reruns[] =
    "WITH last AS (SELECT max(id) AS id FROM run) SELECT t.seq, t.\"group\", "
    "CASE WHEN t.first_run < last.id THEN 'it had not succeeded, or --resume was not given' "
    "WHEN o.id IS NULL THEN 'it is new' "
    "ELSE trim(CASE WHEN o.words <> t.words THEN 'the command changed; ' ELSE '' END || "
    "CASE WHEN o.record <> t.record THEN 'the record changed; ' ELSE '' END || "
    "CASE WHEN o.\"group\" <> t.\"group\" THEN 'the group changed; ' ELSE '' END || "
    "CASE WHEN o.env <> t.env THEN 'the environment changed; ' ELSE '' END || "
    "CASE WHEN o.cwd <> t.cwd THEN 'the directory changed; ' ELSE '' END, '; ') END AS why, "
    "t.record, t.words AS command FROM task t JOIN last LEFT JOIN task o ON o.id = "
    "(SELECT max(p.id) FROM temp.before p WHERE p.record = t.record)"
    " WHERE t.run = last.id AND (NOT ?1 OR t.reason <> 'done') ORDER BY t.seq"
    " LIMIT CASE WHEN ?2 > 0 THEN ?2 ELSE -1 END";

/* Tasks that earlier runs met and the last one did not. */
static const char before[] = "CREATE TEMP TABLE before AS SELECT id, record, words FROM task WHERE "
                             "met < (SELECT max(id) FROM "
                             "run); CREATE INDEX temp.before_record ON before(record)";

static int print(sqlite3 *database, const char *query, const struct journal_log_options *opt)
{
    sqlite3_stmt *row = NULL;
    int rc = sqlite3_prepare_v2(database, query, -1, &row, NULL);

    if (rc == 0) {
        sqlite3_bind_int(row, 1, opt->failed);
        sqlite3_bind_int64(row, 2, opt->slowest);
        if (opt->form != LOG_JSONL)
            put_names(row, opt->form);
        while ((rc = sqlite3_step(row)) == SQLITE_ROW)
            put_row(row, opt->form);
    }
    if (rc != SQLITE_DONE)
        say("%s: %s", opt->path, sqlite3_errmsg(database));
    sqlite3_finalize(row);
    return rc == SQLITE_DONE ? 0 : SAY_WRONG;
}

int journal_log(const struct journal_log_options *opt)
{
    sqlite3 *database = open_to_read(opt->path);
    int status;

    if (!database)
        return SAY_WRONG;
    sqlite3_busy_timeout(database, 5000);
    if (opt->why_rerun && sqlite3_exec(database, before, NULL, NULL, NULL) != 0) {
        say("%s: %s", opt->path, sqlite3_errmsg(database));
        status = SAY_WRONG;
    } else {
        status = print(database, opt->why_rerun ? reruns : opt->by_group ? groups : tasks, opt);
    }
    sqlite3_close(database);
    return status;
}
