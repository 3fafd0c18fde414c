/* SPDX-License-Identifier: MIT */
#include "base/json.h"

#include "support/seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <weir/error.h>

#include <cmocka.h>

enum { MUTATIONS = 200000 };

/* Parses a copy that ends where an allocation does, so that ASan sees a step too far. The copy is kept
 * until the next call. */
static int parse_bytes(struct wr_json *out, size_t *at, const char *text, size_t length)
{
    static char *copy;

    free(copy);
    copy = malloc(length ? length : 1);
    assert_non_null(copy);
    memcpy(copy, text, length);
    return wr_json_parse(out, at, copy, length);
}

static struct wr_json parsed(const char *text)
{
    struct wr_json value;
    size_t at;

    assert_int_equal(parse_bytes(&value, &at, text, strlen(text)), 0);
    assert_int_equal(at, strlen(text));
    return value;
}

static void assert_value(const struct wr_json *value, enum wr_json_type type, const char *text)
{
    assert_int_equal(value->type, type);
    assert_int_equal(value->length, strlen(text));
    assert_memory_equal(value->text, text, value->length);
}

static void assert_decoded(const char *json, const char *bytes, size_t length)
{
    struct wr_json value = parsed(json);
    char *out = malloc(value.length);
    size_t got;

    assert_non_null(out);
    got = wr_json_decode(out, &value);
    assert_int_equal(got, length);
    assert_memory_equal(out, bytes, length);
    free(out);
}

static void assert_quoted(const char *bytes, size_t length, const char *json)
{
    char out[256];
    size_t got = wr_json_quote(out, sizeof(out), bytes, length);

    assert_int_equal(got, strlen(json));
    assert_memory_equal(out, json, got);
}

/* ---- checking ------------------------------------------------------------------------------------ */

static void test_every_kind_of_value_is_known(void **state)
{
    static const struct {
        const char *text, *value;
        enum wr_json_type type;
    } cases[] = {
        { "null", "null", WR_JSON_NULL },
        { " true ", "true", WR_JSON_BOOL },
        { "\tfalse\r\n", "false", WR_JSON_BOOL },
        { "0", "0", WR_JSON_NUMBER },
        { " -0.5e+10 ", "-0.5e+10", WR_JSON_NUMBER },
        { "12E-3", "12E-3", WR_JSON_NUMBER },
        { "\"\"", "\"\"", WR_JSON_STRING },
        { "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\"", "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\"",
          WR_JSON_STRING },
        { "\"h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\x7f\"",
          "\"h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\x7f\"", WR_JSON_STRING },
        { " [ ] ", "[ ]", WR_JSON_ARRAY },
        { "[1, [2,[]], {}]", "[1, [2,[]], {}]", WR_JSON_ARRAY },
        { "{}", "{}", WR_JSON_OBJECT },
        { " { \"a\" : 1 , \"b\":[{}] } ", "{ \"a\" : 1 , \"b\":[{}] }", WR_JSON_OBJECT },
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wr_json value = parsed(cases[i].text);
        assert_value(&value, cases[i].type, cases[i].value);
    }
}

static void test_text_that_is_not_json_is_refused_where_it_goes_wrong(void **state)
{
    static const struct {
        const char *text;
        size_t fine;
    } cases[] = {
        { "", 0 },          { "  ", 2 },
        { "nul", 3 },       { "nulL", 3 },
        { "True", 0 },      { "NaN", 0 },
        { "-", 1 },         { "+1", 0 },
        { "01", 1 },        { ".5", 0 },
        { "1.", 2 },        { "1e", 2 },
        { "1e+", 3 },       { "0x1", 1 },
        { "1 2", 2 },       { "'a'", 0 },
        { "\"", 1 },        { "\"a", 2 },
        { "\"\\", 1 },      { "\"\\x\"", 1 },
        { "\"\\u12\"", 1 }, { "\"\\u12g4\"", 1 },
        { "\"a\nb\"", 2 },  { "\"\x1f\"", 1 },
        { "[", 1 },         { "[1", 2 },
        { "[1,", 3 },       { "[1,]", 3 },
        { "[,1]", 1 },      { "[1}", 2 },
        { "]", 0 },         { "{", 1 },
        { "{a:1}", 1 },     { "{\"a\"}", 4 },
        { "{\"a\":}", 5 },  { "{\"a\":1,}", 7 },
        { "{\"a\":1", 6 },  { "{\"a\":1]", 6 },
        { "{1:1}", 1 },     { "{} {}", 3 },
        { "/**/1", 0 },     { "\xef\xbb\xbf{}", 0 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wr_json value;
        size_t at = 99;
        assert_int_equal(parse_bytes(&value, &at, cases[i].text, strlen(cases[i].text)),
                         WEIR_EINVAL);
        assert_int_equal(at, cases[i].fine);
    }
    assert_int_equal(wr_json_parse(&(struct wr_json){ 0 }, NULL, "1\0", 2), WEIR_EINVAL);
    assert_int_equal(wr_json_parse(&(struct wr_json){ 0 }, NULL, "\"\\\0\"", 4), WEIR_EINVAL);
}

static void test_strings_must_be_utf8(void **state)
{
    static const char *const wrong[] = {
        "\x80",
        "\xbf",
        "\xc0\x80",
        "\xc1\xbf",
        "\xc3",
        "\xc3(",
        "\xe2\x82",
        "\xe0\x80\x80",
        "\xed\xa0\x80",
        "\xed\xbf\xbf",
        "\xf0\x80\x80\x80",
        "\xf0\x9f\x98",
        "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80",
        "\xff",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct wr_json value;
        char text[16];
        snprintf(text, sizeof(text), "\"%s\"", wrong[i]);
        assert_int_equal(parse_bytes(&value, NULL, text, strlen(text)), WEIR_EINVAL);
    }
}

static void test_depth_has_a_limit(void **state)
{
    const size_t deep = 1000000, limit = WR_JSON_DEPTH;
    char *text = malloc(2 * deep);
    struct wr_json value;
    size_t at;
    (void)state;
    assert_non_null(text);
    memset(text, '[', deep);
    memset(text + deep, ']', deep);
    assert_int_equal(wr_json_parse(&value, &at, text, 2 * deep), WEIR_EINVAL);
    assert_int_equal(at, limit);
    assert_int_equal(wr_json_parse(&value, &at, text + deep - limit, 2 * limit), 0);
    assert_int_equal(wr_json_parse(&value, &at, text + deep - limit - 1, 2 * limit + 2),
                     WEIR_EINVAL);
    free(text);
}

/* ---- looking inside ------------------------------------------------------------------------------ */

static void test_members_are_found_by_name(void **state)
{
    struct wr_json object = parsed(
        "{ \"a\" : 1,\"b\":{\"a\":\"},\\\"\"} , \"c\":[1,{\"a\":2}],\"\":null,\"dd\":true }");
    struct wr_json value;
    (void)state;
    assert_true(wr_json_member(&value, &object, "a", 1));
    assert_value(&value, WR_JSON_NUMBER, "1");
    assert_true(wr_json_member(&value, &object, "b", 1));
    assert_value(&value, WR_JSON_OBJECT, "{\"a\":\"},\\\"\"}");
    assert_true(wr_json_member(&value, &value, "a", 1));
    assert_value(&value, WR_JSON_STRING, "\"},\\\"\"");
    assert_true(wr_json_member(&value, &object, "c", 1));
    assert_value(&value, WR_JSON_ARRAY, "[1,{\"a\":2}]");
    assert_true(wr_json_member(&value, &object, "", 0));
    assert_value(&value, WR_JSON_NULL, "null");
    assert_true(wr_json_member(&value, &object, "dd", 2));
    assert_value(&value, WR_JSON_BOOL, "true");
    assert_false(wr_json_member(&value, &object, "d", 1));
    assert_false(wr_json_member(&value, &object, "ddd", 3));
    object = parsed("{}");
    assert_false(wr_json_member(&value, &object, "a", 1));
    object = parsed("[\"a\",1]");
    assert_false(wr_json_member(&value, &object, "a", 1));
}

static void test_the_last_of_equal_members_counts(void **state)
{
    struct wr_json object = parsed("{\"a\":1,\"b\":2,\"\\u0061\":3}");
    struct wr_json value;
    (void)state;
    assert_true(wr_json_member(&value, &object, "a", 1));
    assert_value(&value, WR_JSON_NUMBER, "3");
}

static void test_names_compare_decoded(void **state)
{
    struct wr_json object = parsed("{\"\\u00e9\\t\":1,\"x\\u0000y\":2,\"\\ud83d\\ude00z\":3}");
    struct wr_json value;
    (void)state;
    assert_true(wr_json_member(&value, &object, "\xc3\xa9\t", 3));
    assert_value(&value, WR_JSON_NUMBER, "1");
    assert_true(wr_json_member(&value, &object, "x\0y", 3));
    assert_value(&value, WR_JSON_NUMBER, "2");
    assert_false(wr_json_member(&value, &object, "x", 1));
    assert_true(wr_json_member(&value, &object, "\xf0\x9f\x98\x80z", 5));
    assert_false(wr_json_member(&value, &object, "\xf0\x9f\x98\x80", 4));
    assert_false(wr_json_member(&value, &object, "\xf0\x9f\x98", 3));
}

static void test_elements_count_from_zero(void **state)
{
    struct wr_json array = parsed("[ 1 , \"a,b\",[2,3],{}]");
    struct wr_json value;
    (void)state;
    assert_true(wr_json_element(&value, &array, 0));
    assert_value(&value, WR_JSON_NUMBER, "1");
    assert_true(wr_json_element(&value, &array, 1));
    assert_value(&value, WR_JSON_STRING, "\"a,b\"");
    assert_true(wr_json_element(&value, &array, 3));
    assert_value(&value, WR_JSON_OBJECT, "{}");
    assert_false(wr_json_element(&value, &array, 4));
    assert_true(wr_json_element(&value, &array, 2));
    assert_true(wr_json_element(&value, &value, 1));
    assert_value(&value, WR_JSON_NUMBER, "3");
    array = parsed("[]");
    assert_false(wr_json_element(&value, &array, 0));
    array = parsed("{\"0\":1}");
    assert_false(wr_json_element(&value, &array, 0));
}

/* ---- strings ------------------------------------------------------------------------------------- */

static void test_escapes_are_decoded(void **state)
{
    (void)state;
    assert_decoded("\"\"", "", 0);
    assert_decoded("\"plain\"", "plain", 5);
    assert_decoded("\"a\\\"\\\\\\/\\b\\f\\n\\r\\tz\"", "a\"\\/\b\f\n\r\tz", 10);
    assert_decoded("\"\\u0041\\u00E9\\u20ac\\ud83d\\uDE00\"",
                   "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 10);
    assert_decoded("\"a\\u0000b\"", "a\0b", 3);
    assert_decoded("\"\xc3\xa9\"", "\xc3\xa9", 2);
}

static void test_lone_surrogates_are_bytes_or_replaced(void **state)
{
    (void)state;
    assert_decoded("\"\\udc80\\udcff\"", "\x80\xff", 2);
    assert_decoded("\"\\udc7f\"", "\xef\xbf\xbd", 3);
    assert_decoded("\"\\udd00\"", "\xef\xbf\xbd", 3);
    assert_decoded("\"\\ud800\"", "\xef\xbf\xbd", 3);
    assert_decoded("\"\\ud800x\\ud800\\u0041\"",
                   "\xef\xbf\xbdx\xef\xbf\xbd"
                   "A",
                   8);
    assert_decoded("\"\\ud800\\ud83d\\udc80\"", "\xef\xbf\xbd\xf0\x9f\x92\x80", 7);
}

static void test_text_is_quoted(void **state)
{
    (void)state;
    assert_quoted("", 0, "\"\"");
    assert_quoted(NULL, 0, "\"\"");
    assert_quoted("plain / 'text'", 14, "\"plain / 'text'\"");
    assert_quoted("\"\\\b\f\n\r\t", 7, "\"\\\"\\\\\\b\\f\\n\\r\\t\"");
    assert_quoted("\0\x01\x1f\x7f", 4, "\"\\u0000\\u0001\\u001f\x7f\"");
    assert_quoted("\xc3\xa9\xf0\x9f\x98\x80", 6, "\"\xc3\xa9\xf0\x9f\x98\x80\"");
}

static void test_bytes_that_are_not_utf8_are_kept_as_escapes(void **state)
{
    (void)state;
    assert_quoted("a\xff\xc3", 3, "\"a\\udcff\\udcc3\"");
    assert_quoted("\xed\xa0\x80", 3, "\"\\udced\\udca0\\udc80\"");
    assert_quoted("\xe2\x82x", 3, "\"\\udce2\\udc82x\"");
}

static void test_a_quote_stops_at_its_room_but_tells_its_length(void **state)
{
    static const char text[] = "a\xff\"b\xc3\xa9";
    char full[64], part[64];
    size_t length = wr_json_quote(full, sizeof(full), text, strlen(text));
    (void)state;
    assert_int_equal(wr_json_quote(NULL, 0, text, strlen(text)), length);
    for (size_t size = 0; size <= length; size++) {
        memset(part, '#', sizeof(part));
        assert_int_equal(wr_json_quote(part, size, text, strlen(text)), length);
        assert_memory_equal(part, full, size);
        assert_int_equal(part[size], '#');
    }
}

/* ---- luck ---------------------------------------------------------------------------------------- */

static void test_any_bytes_survive_quoting_and_decoding(void **state)
{
    struct luck luck = luck_of(1);
    (void)state;
    for (int i = 0; i < MUTATIONS; i++) {
        size_t length = luck_below(&luck, 24), size;
        char *bytes = malloc(length ? length : 1), *json, *back;
        struct wr_json value;

        /* Few different bytes, so that halves of characters meet. */
        for (size_t k = 0; k < length; k++)
            bytes[k] = luck_below(&luck, 3)
                           ? "\xf0\x9f\x98\x80\xed\xa0\xc3\xff\\\"u\0"[luck_below(&luck, 12)]
                           : (char)luck_next(&luck);
        size = wr_json_quote(NULL, 0, bytes, length);
        json = malloc(size);
        back = malloc(size);
        assert_int_equal(wr_json_quote(json, size, bytes, length), size);
        assert_int_equal(wr_json_parse(&value, NULL, json, size), 0);
        assert_int_equal(value.type, WR_JSON_STRING);
        assert_int_equal(wr_json_decode(back, &value), length);
        assert_memory_equal(back, bytes, length);
        free(bytes);
        free(json);
        free(back);
    }
}

/* Looks at all there is to see. */
static void visit(const struct wr_json *value, int depth)
{
    struct wr_json inner;
    char *out;

    if (value->type == WR_JSON_STRING) {
        out = malloc(value->length);
        assert_true(wr_json_decode(out, value) + 2 <= value->length);
        free(out);
    }
    if (depth == 4)
        return;
    for (size_t i = 0; wr_json_element(&inner, value, i); i++)
        visit(&inner, depth + 1);
    if (wr_json_member(&inner, value, "a", 1))
        visit(&inner, depth + 1);
    if (wr_json_member(&inner, value, "\xc3\xa9", 2))
        visit(&inner, depth + 1);
}

static void test_mutated_text_is_judged_within_its_bounds(void **state)
{
    static const char model[] = "{\"a\":[1,-2.5e+3,\"x\\u00e9\\ud83d\\ude00\\n\",{\"a\":null}],"
                                "\"\\u00e9\":{\"a\":[[],{}]},\"b\":\"h\xc3\xa9\xf0\x9f\x98\x80\"}";
    static const char bytes[] = "{}[]\",:\\u0123dc8ntf-+.e \x80\xc3\xff";
    struct luck luck = luck_of(2);
    int fine = 0;
    (void)state;
    for (int i = 0; i < MUTATIONS; i++) {
        size_t length = sizeof(model) - 1, at, changes = luck_below(&luck, 4);
        char text[sizeof(model)];
        struct wr_json value;

        memcpy(text, model, length);
        if (luck_below(&luck, 4) == 0)
            length = luck_below(&luck, length + 1);
        for (size_t k = 0; k < changes && length; k++)
            text[luck_below(&luck, length)] = bytes[luck_below(&luck, sizeof(bytes))];
        if (parse_bytes(&value, &at, text, length) == 0) {
            fine++;
            visit(&value, 0);
        }
        assert_true(at <= length);
    }
    assert_true(fine > 0);
}

/* A caller that did not check first gets nonsense, but from inside the text. */
static void test_unchecked_text_is_walked_within_its_bounds(void **state)
{
    static const char bytes[] = "{{[]}\"\"::,,\\ua1 dc";
    struct luck luck = luck_of(3);
    (void)state;
    for (int i = 0; i < MUTATIONS; i++) {
        size_t length = 1 + luck_below(&luck, 24);
        char *text = malloc(length);
        struct wr_json value = { WR_JSON_OBJECT, text, length };

        for (size_t k = 0; k < length; k++)
            text[k] = bytes[luck_below(&luck, sizeof(bytes) - 1)];
        wr_json_member(&(struct wr_json){ 0 }, &value, "a", 1);
        value.type = WR_JSON_ARRAY;
        wr_json_element(&(struct wr_json){ 0 }, &value, 3);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kind_of_value_is_known),
        cmocka_unit_test(test_text_that_is_not_json_is_refused_where_it_goes_wrong),
        cmocka_unit_test(test_strings_must_be_utf8),
        cmocka_unit_test(test_depth_has_a_limit),
        cmocka_unit_test(test_members_are_found_by_name),
        cmocka_unit_test(test_the_last_of_equal_members_counts),
        cmocka_unit_test(test_names_compare_decoded),
        cmocka_unit_test(test_elements_count_from_zero),
        cmocka_unit_test(test_escapes_are_decoded),
        cmocka_unit_test(test_lone_surrogates_are_bytes_or_replaced),
        cmocka_unit_test(test_text_is_quoted),
        cmocka_unit_test(test_bytes_that_are_not_utf8_are_kept_as_escapes),
        cmocka_unit_test(test_a_quote_stops_at_its_room_but_tells_its_length),
        cmocka_unit_test(test_any_bytes_survive_quoting_and_decoding),
        cmocka_unit_test(test_mutated_text_is_judged_within_its_bounds),
        cmocka_unit_test(test_unchecked_text_is_walked_within_its_bounds),
    };
    seed_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
