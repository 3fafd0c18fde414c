/* SPDX-License-Identifier: MIT */
#include "cli/input/record.h"

#include "cli/input/csv.h"
#include "support/seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MUTATIONS = 200000 };

static const struct record_syntax lines = { .form = FORM_LINES };
static const struct record_syntax csv = { .form = FORM_CSV };
static const struct record_syntax tsv = { .form = FORM_TSV };
static const struct record_syntax jsonl = { .form = FORM_JSONL };

static struct record record_of(const char *text, size_t length)
{
    struct record record = { .text = malloc(length + 1), .length = length, .line = 7 };

    assert_non_null(record.text);
    memcpy(record.text, text, length);
    record.text[length] = '\0';
    return record;
}

static struct record split(const struct record_syntax *syntax, const char *text)
{
    struct record record = record_of(text, strlen(text));
    weir_message message = { "" };

    assert_int_equal(record_split(&record, syntax, &message), 0);
    return record;
}

static void assert_span(const struct span *span, const char *text)
{
    assert_int_equal(span->length, strlen(text));
    assert_memory_equal(span->text, text, span->length);
}

/* Fields as "a|b|c". */
static void assert_fields(const struct record_syntax *syntax, const char *text, const char *fields)
{
    struct record record = split(syntax, text);
    char joined[256] = "";
    size_t used = 0;

    for (size_t i = 0; i < record.field_count; i++)
        used += (size_t)snprintf(joined + used, sizeof(joined) - used, "%s%.*s", i ? "|" : "",
                                 (int)record.fields[i].length, record.fields[i].text);
    assert_string_equal(joined, fields);
    record_fini(&record);
}

static void assert_no_split(const struct record_syntax *syntax, const char *text,
                            const char *sentence)
{
    struct record record = record_of(text, strlen(text));
    weir_message message = { "" };

    assert_int_equal(record_split(&record, syntax, &message), WEIR_EINVAL);
    assert_string_equal(message.text, sentence);
    assert_int_equal(record.field_count, 0);
    record_fini(&record);
}

static void assert_field(const struct record_syntax *syntax, const char *text, const char *name,
                         const char *value)
{
    struct record record = split(syntax, text);
    weir_message message = { "" };
    struct span span;
    char *owned;

    assert_int_equal(record_field(&span, &owned, &record, syntax, name, &message), 0);
    assert_span(&span, value);
    free(owned);
    record_fini(&record);
}

static void assert_no_field(const struct record_syntax *syntax, const char *text, const char *name,
                            const char *sentence)
{
    struct record record = split(syntax, text);
    weir_message message = { "" };
    struct span span;
    char *owned;

    assert_int_equal(record_field(&span, &owned, &record, syntax, name, &message), WEIR_EINVAL);
    assert_string_equal(message.text, sentence);
    assert_null(owned);
    record_fini(&record);
}

static struct record_syntax with_names(enum record_form form, const char *header)
{
    struct record_syntax syntax = { .form = form };
    struct record record = split(&syntax, header);
    weir_message message = { "" };

    assert_int_equal(record_syntax_set_names(&syntax, &record, &message), 0);
    record_fini(&record);
    return syntax;
}

/* ---- fields -------------------------------------------------------------------------------------- */

static void test_runs_of_blanks_separate_words(void **state)
{
    (void)state;
    assert_fields(&lines, "a b c", "a|b|c");
    assert_fields(&lines, "  a \t b\t", "a|b");
    assert_fields(&lines, "one", "one");
    assert_fields(&lines, "", "");
    assert_fields(&lines, " \t ", "");
    assert_fields(&lines, "a\r", "a\r");
}

static void test_a_delimiter_separates_exactly(void **state)
{
    const struct record_syntax colons = { .form = FORM_LINES, .delimiter = ':' };
    struct record record = split(&colons, "");
    (void)state;
    assert_int_equal(record.field_count, 1);
    record_fini(&record);
    assert_fields(&colons, "a:b", "a|b");
    assert_fields(&colons, ":a::", "|a||");
    assert_fields(&colons, " a b ", " a b ");
}

static void test_lines_may_have_zero_bytes(void **state)
{
    struct record record = record_of("a\0b c", 5);
    (void)state;
    assert_int_equal(record_split(&record, &lines, NULL), 0);
    assert_int_equal(record.field_count, 2);
    assert_int_equal(record.fields[0].length, 3);
    assert_memory_equal(record.fields[0].text, "a\0b", 3);
    record_fini(&record);
}

static void test_csv_has_quotes(void **state)
{
    const struct record_syntax semicolons = { .form = FORM_CSV, .delimiter = ';' };
    (void)state;
    assert_fields(&csv, "a,b,c", "a|b|c");
    assert_fields(&csv, ",a,", "|a|");
    assert_fields(&csv, "", "");
    assert_fields(&csv, "\"a,b\",c", "a,b|c");
    assert_fields(&csv, "\"\",\"\"", "|");
    assert_fields(&csv, "\"say \"\"hi\"\"\",\"\"\"\"", "say \"hi\"|\"");
    assert_fields(&csv, "\"two\r\nlines\",x", "two\r\nlines|x");
    assert_fields(&csv, "a \"b\" c,d\"", "a \"b\" c|d\"");
    assert_fields(&csv, " \"a\"", " \"a\"");
    assert_fields(&semicolons, "a,b;\"c;d\"", "a,b|c;d");
}

static void test_wrong_csv_is_refused(void **state)
{
    (void)state;
    assert_no_split(&csv, "a,\"b", "line 7: a quote is never closed");
    assert_no_split(&csv, "\"", "line 7: a quote is never closed");
    assert_no_split(&csv, "\"\"\"", "line 7: a quote is never closed");
    assert_no_split(&csv, "\"a\"b,c", "line 7: text after the closing quote of column 1");
    assert_no_split(&csv, "x,\"a\"\"b\" ,c", "line 7: text after the closing quote of column 2");
}

static void test_tsv_has_escapes(void **state)
{
    (void)state;
    assert_fields(&tsv, "a b\tc\t", "a b|c|");
    assert_fields(&tsv, "a\\tb\t\\n\\r\\\\\tx", "a\tb|\n\r\\|x");
    assert_fields(&tsv, "\\\\t\t\\x\t\\", "\\t|\\x|\\");
    assert_fields(&tsv, "\"a\tb\"", "\"a|b\"");
}

static void test_json_records_are_objects(void **state)
{
    (void)state;
    assert_fields(&jsonl, " {\"a\": 1} ", "");
    assert_no_split(&jsonl, "[1]", "line 7: expected a JSON object such as {\"a\": 1}");
    assert_no_split(&jsonl, "{\"a\": }", "line 7: not valid JSON at byte 7");
    assert_no_split(&jsonl, "a", "line 7: not valid JSON at byte 1");
}

static void test_splitting_again_starts_afresh(void **state)
{
    struct record record = split(&csv, "\"a\"\"\",b");
    (void)state;
    assert_int_equal(record_split(&record, &csv, NULL), 0);
    assert_int_equal(record.field_count, 2);
    assert_span(&record.fields[0], "a\"");
    record_fini(&record);
    record_fini(&record);
}

/* ---- names --------------------------------------------------------------------------------------- */

static void test_columns_have_numbers(void **state)
{
    (void)state;
    assert_field(&lines, "a b c", "1", "a");
    assert_field(&lines, "a b c", "3", "c");
    assert_field(&csv, "a,\"b\"\"\"", "2", "b\"");
    assert_no_field(&lines, "a b", "3", "line 7: no column \"3\", only 2 columns");
    assert_no_field(&lines, "a", "2", "line 7: no column \"2\", only 1 column");
    assert_no_field(&lines, "a", "0", "line 7: no column \"0\"");
    assert_no_field(&lines, "a", "", "line 7: no column \"\"");
    assert_no_field(&lines, "a", "name", "line 7: no column \"name\"");
}

static void test_columns_have_the_headers_names(void **state)
{
    struct record_syntax syntax = with_names(FORM_CSV, "id,\"full, name\",,2024");
    (void)state;
    assert_int_equal(syntax.name_count, 4);
    assert_field(&syntax, "1,x,y,z", "id", "1");
    assert_field(&syntax, "1,x,y,z", "full, name", "x");
    assert_field(&syntax, "1,x,y,z", "3", "y");
    assert_field(&syntax, "1,x,y,z", "2024", "z");
    assert_no_field(&syntax, "1", "full, name", "line 7: no column \"full, name\", only 1 column");
    assert_no_field(&syntax, "1", "i", "line 7: no column \"i\"");
    assert_true(record_may_have(&syntax, "id", 2));
    assert_true(record_may_have(&syntax, "idx", 2));
    assert_true(record_may_have(&syntax, "4", 1));
    assert_false(record_may_have(&syntax, "ID", 2));
    assert_false(record_may_have(&syntax, "i", 1));
    assert_false(record_may_have(&syntax, "", 0));
    record_syntax_fini(&syntax);
}

static void test_a_header_names_each_column_once(void **state)
{
    struct record_syntax syntax = { .form = FORM_CSV };
    struct record header = split(&csv, "a,b,,,a");
    struct record zero = record_of("a\0b", 3);
    weir_message message = { "" };
    (void)state;
    assert_int_equal(record_syntax_set_names(&syntax, &header, &message), WEIR_EINVAL);
    assert_string_equal(message.text, "the header has two columns named \"a\"");
    assert_null(syntax.names);
    record_fini(&header);
    assert_int_equal(record_split(&zero, &csv, NULL), 0);
    assert_int_equal(record_syntax_set_names(&syntax, &zero, &message), WEIR_EINVAL);
    record_fini(&zero);
}

static void test_messages_do_not_carry_control_characters(void **state)
{
    struct record_syntax syntax = { .form = FORM_CSV };
    struct record header = split(&csv, "\x1b[2J,\x1b[2J");
    weir_message message = { "" };
    (void)state;
    assert_int_equal(record_syntax_set_names(&syntax, &header, &message), WEIR_EINVAL);
    assert_string_equal(message.text, "the header has two columns named \"?[2J\"");
    record_fini(&header);
}

static void test_members_are_reached_by_name_and_path(void **state)
{
    static const char text[] =
        " {\"a\":{\"b\":\"x\\ty\",\"n\":null,\"deep\":[1,[true],{\"c\":-1.5}]},"
        "\"dotted.name\":{\"e.f\":\"g\"},\"s\":\"plain\",\"1\":\"one\"} ";
    (void)state;
    assert_field(&jsonl, text, "s", "plain");
    assert_field(&jsonl, text, "a.b", "x\ty");
    assert_field(&jsonl, text, "a.n", "");
    assert_field(&jsonl, text, "a.deep", "[1,[true],{\"c\":-1.5}]");
    assert_field(&jsonl, text, "a.deep.0", "1");
    assert_field(&jsonl, text, "a.deep.1.0", "true");
    assert_field(&jsonl, text, "a.deep.2.c", "-1.5");
    assert_field(&jsonl, text, "dotted.name.e.f", "g");
    assert_field(&jsonl, text, "1", "one");
    assert_no_field(&jsonl, text, "x", "line 7: the object has no field \"x\"");
    assert_no_field(&jsonl, text, "a.x", "line 7: the object has no field \"a.x\"");
    assert_no_field(&jsonl, text, "s.x", "line 7: the object has no field \"s.x\"");
    assert_no_field(&jsonl, text, "a.deep.3", "line 7: the object has no field \"a.deep.3\"");
    assert_no_field(&jsonl, text, "a.deep.x", "line 7: the object has no field \"a.deep.x\"");
    assert_no_field(&jsonl, text, "a.", "line 7: the object has no field \"a.\"");
    assert_no_field(&jsonl, text, "", "line 7: the object has no field \"\"");
    assert_no_field(&jsonl, text, "....", "line 7: the object has no field \"....\"");
}

static void test_decoded_values_may_have_zero_bytes(void **state)
{
    struct record record = split(&jsonl, "{\"a\":\"x\\u0000y\"}");
    struct span span;
    char *owned;
    (void)state;
    assert_int_equal(record_field(&span, &owned, &record, &jsonl, "a", NULL), 0);
    assert_int_equal(span.length, 3);
    assert_memory_equal(span.text, "x\0y", 3);
    free(owned);
    record_fini(&record);
}

static void test_only_text_that_looks_like_a_name_may_be_a_member(void **state)
{
    static const char *const names[] = { "a", "a.b", "_x-1", "a.0.b", "1", "42", "h\xc3\xa9" };
    static const char *const others[] = { "",   "0",    "01",       "1a",        "-a",  ".a",
                                          "a.", "a..b", "a..z",     "1..3",      "a b", "a,b",
                                          "$a", "a/b",  "print $1", "1234567890" };
    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        assert_true(record_may_have(&jsonl, names[i], strlen(names[i])));
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        assert_false(record_may_have(&jsonl, others[i], strlen(others[i])));
    assert_false(record_may_have(&lines, "a", 1));
    assert_true(record_may_have(&lines, "12", 2));
}

/* ---- luck ---------------------------------------------------------------------------------------- */

static void append_quoted(char *row, size_t *used, const char *field, size_t length)
{
    row[(*used)++] = '"';
    for (size_t i = 0; i < length; i++) {
        if (field[i] == '"')
            row[(*used)++] = '"';
        row[(*used)++] = field[i];
    }
    row[(*used)++] = '"';
}

static void test_any_fields_survive_csv(void **state)
{
    struct luck luck = luck_of(1);
    (void)state;
    for (int i = 0; i < MUTATIONS; i++) {
        size_t count = 1 + luck_below(&luck, 4), used = 0, lengths[4];
        enum csv_place place = CSV_FIELD_START;
        char fields[4][8], row[128];
        struct record record;

        for (size_t k = 0; k < count; k++) {
            lengths[k] = luck_below(&luck, 8);
            for (size_t b = 0; b < lengths[k]; b++)
                fields[k][b] = "\"\"\",,\n\r a"[luck_below(&luck, 9)];
            if (k)
                row[used++] = ',';
            append_quoted(row, &used, fields[k], lengths[k]);
        }
        row[used++] = '\n';
        assert_ptr_equal(csv_row_end(&place, row, used, ',', '\n'), row + used - 1);
        record = record_of(row, used - 1);
        assert_int_equal(record_split(&record, &csv, NULL), 0);
        assert_int_equal(record.field_count, count);
        for (size_t k = 0; k < count; k++) {
            assert_int_equal(record.fields[k].length, lengths[k]);
            assert_memory_equal(record.fields[k].text, fields[k], lengths[k]);
        }
        record_fini(&record);
    }
}

static void test_mutated_rows_are_split_within_their_bounds(void **state)
{
    static const enum record_form forms[] = { FORM_LINES, FORM_CSV, FORM_TSV, FORM_JSONL };
    static const char bytes[] = "\"\",,\t\\\\nt \n{}:a.1\xff";
    struct luck luck = luck_of(2);
    (void)state;
    for (int i = 0; i < MUTATIONS; i++) {
        struct record_syntax syntax = { .form = forms[luck_below(&luck, 4)] };
        char text[32];
        size_t length = luck_below(&luck, sizeof(text));
        struct record record;
        struct span span;
        char *owned = NULL;

        for (size_t k = 0; k < length; k++)
            text[k] = bytes[luck_below(&luck, sizeof(bytes))];
        for (size_t k = 0; k < 6 && syntax.form == FORM_JSONL && length > 6; k++)
            text[k] = "{\"a\":1"[k];
        record = record_of(text, length);
        if (record_split(&record, &syntax, NULL) == 0) {
            for (size_t k = 0; k < record.field_count; k++)
                for (size_t b = 0; b < record.fields[k].length; b++)
                    (void)*(const volatile char *)(record.fields[k].text + b);
            if (record_field(&span, &owned, &record, &syntax, "a.1", NULL) == 0)
                assert_true(span.length <= length);
            free(owned);
        }
        record_fini(&record);
    }
}

/* A row's end does not depend on how the text came in pieces. */
static void test_rows_end_where_they_end_in_any_pieces(void **state)
{
    static const char bytes[] = "\"\",\na ";
    struct luck luck = luck_of(3);
    (void)state;
    for (int i = 0; i < MUTATIONS / 4; i++) {
        char text[24];
        size_t length = luck_below(&luck, sizeof(text)), done = 0;
        enum csv_place whole = CSV_FIELD_START, place = CSV_FIELD_START;
        const char *end, *found = NULL;

        for (size_t k = 0; k < length; k++)
            text[k] = bytes[luck_below(&luck, sizeof(bytes) - 1)];
        end = csv_row_end(&whole, text, length, ',', '\n');
        while (done < length && !found) {
            size_t piece = 1 + luck_below(&luck, length - done);
            found = csv_row_end(&place, text + done, piece, ',', '\n');
            done += piece;
        }
        assert_ptr_equal(found, end);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runs_of_blanks_separate_words),
        cmocka_unit_test(test_a_delimiter_separates_exactly),
        cmocka_unit_test(test_lines_may_have_zero_bytes),
        cmocka_unit_test(test_csv_has_quotes),
        cmocka_unit_test(test_wrong_csv_is_refused),
        cmocka_unit_test(test_tsv_has_escapes),
        cmocka_unit_test(test_json_records_are_objects),
        cmocka_unit_test(test_splitting_again_starts_afresh),
        cmocka_unit_test(test_columns_have_numbers),
        cmocka_unit_test(test_columns_have_the_headers_names),
        cmocka_unit_test(test_a_header_names_each_column_once),
        cmocka_unit_test(test_messages_do_not_carry_control_characters),
        cmocka_unit_test(test_members_are_reached_by_name_and_path),
        cmocka_unit_test(test_decoded_values_may_have_zero_bytes),
        cmocka_unit_test(test_only_text_that_looks_like_a_name_may_be_a_member),
        cmocka_unit_test(test_any_fields_survive_csv),
        cmocka_unit_test(test_mutated_rows_are_split_within_their_bounds),
        cmocka_unit_test(test_rows_end_where_they_end_in_any_pieces),
    };
    seed_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
