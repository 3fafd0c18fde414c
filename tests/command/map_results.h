/* The file that --results writes, read back.
 * SPDX-License-Identifier: MIT */
#ifndef WR_TESTS_MAP_RESULTS_H
#define WR_TESTS_MAP_RESULTS_H

#include "base/json.h"

#include "command/command.h"

enum { RESULTS_MAX = 1000 };

struct results {
    size_t count;
    char *text;
    struct wr_json line[RESULTS_MAX]; /* by seq - 1 */
};

static inline struct wr_json member(const struct wr_json *object, const char *name)
{
    struct wr_json value;

    if (!wr_json_member(&value, object, name, strlen(name)))
        fail_msg("no \"%s\" in %.*s", name, (int)object->length, object->text);
    return value;
}

/* A number; -1: null. */
static inline double number(const struct results *results, size_t seq, const char *name)
{
    struct wr_json value = member(&results->line[seq - 1], name);

    if (value.type == WR_JSON_NULL)
        return -1;
    assert_int_equal(value.type, WR_JSON_NUMBER);
    return strtod(value.text, NULL);
}

/* As integers: what cmocka makes of a negative double is anything. */
static inline void assert_number(const struct results *results, size_t seq, const char *name,
                                 int wanted)
{
    assert_int_equal((int)number(results, seq, name), wanted);
}

/* The bytes of a string. Lent until the next call. */
static inline const char *string(const struct wr_json *value)
{
    static char text[4096];

    assert_int_equal(value->type, WR_JSON_STRING);
    assert_true(value->length < sizeof(text));
    text[wr_json_decode(text, value)] = 0;
    return text;
}

static inline const char *text_of(const struct results *results, size_t seq, const char *name)
{
    struct wr_json value = member(&results->line[seq - 1], name);

    return string(&value);
}

static inline const char *word_of(const struct results *results, size_t seq, size_t index)
{
    struct wr_json words = member(&results->line[seq - 1], "command"), word;

    assert_int_equal(words.type, WR_JSON_ARRAY);
    if (!wr_json_element(&word, &words, index))
        return NULL;
    return string(&word);
}

/* Every line is an object, and every number from 1 on is there once. */
static inline void read_results(struct results *results, const char *name)
{
    const char *found = scratch_read(name);
    char *at, *end;

    assert_non_null(found);
    *results = (struct results){ .text = strdup(found) };
    for (at = results->text; *at; at = end + 1) {
        struct wr_json line, seq;
        long n;

        end = strchr(at, '\n');
        assert_non_null(end);
        assert_int_equal(wr_json_parse(&line, NULL, at, (size_t)(end - at)), 0);
        assert_int_equal(line.type, WR_JSON_OBJECT);
        seq = member(&line, "seq");
        n = strtol(seq.text, NULL, 10);
        assert_in_range(n, 1, RESULTS_MAX);
        assert_null(results->line[n - 1].text);
        results->line[n - 1] = line;
        results->count++;
    }
    for (size_t i = 0; i < results->count; i++)
        assert_non_null(results->line[i].text);
}

#endif
