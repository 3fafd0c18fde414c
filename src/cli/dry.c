/* --dry-run: commands as a shell would take them.
 * SPDX-License-Identifier: MIT */
#include "cli/dry.h"

#include "cli/reader.h"

#include <stdlib.h>
#include <string.h>

/* Nothing in it that a shell would look at twice. */
static bool is_plain(const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "@%+=:,./-_";

    return *word && !word[strspn(word, plain)];
}

static void print_word(const char *word)
{
    if (is_plain(word)) {
        fputs(word, stdout);
        return;
    }
    putchar('\'');
    for (; *word; word++) {
        if (*word == '\'')
            fputs("'\\''", stdout);
        else
            putchar(*word);
    }
    putchar('\'');
}

static int print_command(const struct map *map, struct record *record, uint64_t seq,
                         weir_message *message)
{
    struct template_values values = { .record = record, .syntax = &map->syntax, .seq = seq };
    char *key = NULL, *tag = NULL, **argv = NULL;
    int rc = map->needs_fields ? record_split(record, &map->syntax, message) : 0;

    if (!rc && map->key_rule)
        rc = key_of(&key, map->key_rule, record, &map->syntax, message);
    values.key = key ? key : "";
    if (!rc)
        rc = template_fill(&argv, map->command, &values, message);
    if (!rc && map->tag)
        rc = template_fill_one(&tag, map->tag, &values, message);
    if (!rc && tag)
        printf("%s\t", tag);
    for (char **word = argv; !rc && *word; word++) {
        if (word != argv)
            putchar(' ');
        print_word(*word);
    }
    if (!rc)
        putchar('\n');
    free(key);
    free(tag);
    free(argv);
    return rc;
}

int dry_run(struct map *map)
{
    weir_message message = { "" };
    struct record record;
    uint64_t seq = 0, failed = 0;
    int rc;

    while ((rc = reader_next(&record, map->reader, &message)) > 0) {
        if (print_command(map, &record, ++seq, &message)) {
            fprintf(stderr, "weir: %s\n", message.text);
            failed++;
        }
        record_fini(&record);
    }
    if (rc < 0)
        fprintf(stderr, "weir: %s\n", message.text);
    return rc < 0 ? 255 : failed > 100 ? 101 : (int)failed;
}
