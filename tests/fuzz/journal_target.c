/* Fuzzing: a journal some of whose bytes were changed is read, or refused. Each three bytes are a place and a value.
 * SPDX-License-Identifier: MIT */
#include "cli/engine/journal_log.h"
#include "cli/engine/journal_schema.h"
#include "fuzz/fuzz_target.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sqlite3.h>

const char *const fuzz_words[] = { "\x00\x10\xff", "\x01\x00\x00", "\x10\x05\x0d",
                                   "\x20\x00\x7f", "abc",          NULL };

static char path[] = "/tmp/weir-fuzz-XXXXXX";
static unsigned char *journal;
static size_t journal_size;

static void remove_file(void)
{
    unlink(path);
}

/* A journal with some rows, as bytes. */
static void make_journal(void)
{
    sqlite3 *database = NULL;
    FILE *file;
    int fd = mkstemp(path), null = open("/dev/null", O_WRONLY);

    atexit(remove_file);
    if (fd < 0 || null < 0 || dup2(null, 1) < 0 || sqlite3_open(path, &database) ||
        sqlite3_exec(database, JOURNAL_SCHEMA, NULL, NULL, NULL))
        abort();
    for (int i = 0; i < 50; i++)
        sqlite3_exec(
            database,
            "INSERT INTO task(hash, hash2, nth, words, record, \"group\", env, cwd, met, run, seq, "
            "reason, started, ended) VALUES(random(), random(), 1, x'6563686f006100', 'a', 'g', "
            "'', '/', "
            "1, 1, 1, 'failed', 1.5, 2.5); INSERT INTO run(began) VALUES(1)",
            NULL, NULL, NULL);
    sqlite3_close(database);
    file = fopen(path, "r");
    journal = malloc(1 << 20);
    journal_size = file && journal ? fread(journal, 1, 1 << 20, file) : 0;
    if (!journal_size)
        abort();
    fclose(file);
    close(fd);
    if (!freopen("/dev/null", "w", stderr)) /* what is refused is said there */
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int calls;
    unsigned char *changed;
    FILE *file;

    if (!journal)
        make_journal();
    if (calls++ % 16) /* each takes a file: fewer will do */
        return 0;
    changed = malloc(journal_size);
    if (!changed)
        return 0;
    memcpy(changed, journal, journal_size);
    for (size_t i = 0; i + 2 < size; i += 3)
        changed[(data[i] << 8 | data[i + 1]) * 7u % journal_size] = data[i + 2];
    file = fopen(path, "w");
    if (file) {
        fwrite(changed, 1, journal_size, file);
        fclose(file);
        journal_log(&(struct journal_log_options){
            .path = path, .form = (enum log_form)(calls / 16 % 3), .by_group = calls / 64 % 2 });
    }
    free(changed);
    return 0;
}
