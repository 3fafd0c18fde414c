/* Regular expressions: the same answers as the C library's, in time that grows with the text.
 * SPDX-License-Identifier: MIT */
#include "cli/input/regex.h"

#include "support/check.h"
#include "support/seed.h"

#include <locale.h>
#include <regex.h>
#include <string.h>

static struct regex *compiled(const char *pattern)
{
    weir_message message = { "" };
    struct regex *regex = NULL;

    if (regex_new(&regex, pattern, &message))
        fail_msg("%s: %s", pattern, message.text);
    return regex;
}

/* What the whole expression, and its first parentheses, match; "-": nothing. */
static const char *matched(const char *pattern, const char *text)
{
    static char out[200];
    struct regex *regex = compiled(pattern);
    struct span found[1 + REGEX_CAPTURES_MAX];

    strcpy(out, "-");
    if (regex_match(regex, found, text, strlen(text)) > 0) {
        snprintf(out, sizeof(out), "%.*s", (int)found[0].length, found[0].text);
        if (regex_captures(regex))
            snprintf(out + strlen(out), sizeof(out) - strlen(out), "|%.*s",
                     found[1].text ? (int)found[1].length : 1, found[1].text ? found[1].text : "-");
    }
    regex_free(regex);
    return out;
}

static void test_the_leftmost_longest_match_counts(void)
{
    assert_string_equal(matched("a|ab|abc", "xabcd"), "abc");
    assert_string_equal(matched("(a*)b", "aab"), "aab|aa");
    assert_string_equal(matched("(.)$", "hello"), "o|o");
    assert_string_equal(matched("^([a-z]+)-", "web-7"), "web-|web");
    assert_string_equal(matched("^([a-z]+)-", "7web-"), "-");
    assert_string_equal(matched("x*", "abc"), "");
    assert_string_equal(matched("(a)|(b)", "b"), "b|-");
    assert_string_equal(matched("([0-9]{2,3})", "12345"), "123|123");
    assert_string_equal(matched("[^]a]+", "a]bc"), "bc");
    assert_string_equal(matched("[[:digit:][:space:]]+", "ab 12 c"), " 12 ");
    assert_string_equal(matched("\\bcat\\b", "a cat."), "cat");
    assert_string_equal(matched("\\w+", "..a_1.."), "a_1");
    assert_string_equal(matched("a\\.b", "axb a.b"), "a.b");
    assert_string_equal(matched("(a|b)*c", "ababc"), "ababc|b");
    assert_string_equal(matched("()", "x"), "|");
}

static void test_a_character_of_several_bytes_is_one(void)
{
    setlocale(LC_CTYPE, "C.UTF-8");
    assert_string_equal(matched("(.)$", "caf\303\251"), "\303\251|\303\251");
    assert_string_equal(matched("[^a]", "a\303\251"), "\303\251");
    assert_string_equal(matched("(.)$", "x\377"), "\377|\377");
    setlocale(LC_CTYPE, "C");
}

static void test_what_is_no_expression_is_refused(void)
{
    static const char *const wrong[] = { "(", "[a", "a{2,1}", "(a)\\1", "[[:nosuch:]]", "a{300}" };
    weir_message message;
    struct regex *regex;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        message.text[0] = 0;
        assert_int_equal(regex_new(&regex, wrong[i], &message), WEIR_EINVAL);
        assert_true(message.text[0] != 0);
        assert_null(regex);
    }
}

/* Quadratic in other engines: no `b` follows. */
static void test_a_long_line_takes_time_by_its_length(void)
{
    enum { LENGTH = 1 << 20 };
    char *text = malloc(LENGTH);
    struct span found[1 + REGEX_CAPTURES_MAX];
    struct regex *regex = compiled("(a*)b");

    assert_non_null(text);
    memset(text, 'a', LENGTH);
    assert_int_equal(regex_match(regex, found, text, LENGTH), 0);
    text[LENGTH - 1] = 'b';
    assert_int_equal(regex_match(regex, found, text, LENGTH), 1);
    assert_int_equal(found[1].length, LENGTH - 1);
    regex_free(regex);
    free(text);
}

/* Random expressions and texts of a few letters: whether, where and how long, as regexec says. */
static void test_it_agrees_with_the_c_library(void)
{
    static const char *const part[] = { "a",     "b",      "c",     ".",    "[ab]",       "[^a]",
                                        "(a|b)", "(ab|c)", "(a)",   "^",    "$",          "a*",
                                        "b+",    "c?",     "(ab)*", "a{2}", "(a|bc){1,2}" };
    uint64_t state = 12345;

    for (int round = 0; round < 20000; round++) {
        char pattern[120] = "", text[16];
        struct span found[1 + REGEX_CAPTURES_MAX];
        struct regex *regex;
        regex_t theirs;
        regmatch_t match;
        int count, length, rc;
#define NEXT(n) (int)((state = state * 6364136223846793005u + 1442695040888963407u) >> 33) % (n)
        count = 1 + NEXT(4);
        for (int i = 0; i < count; i++) {
            strcat(pattern, part[NEXT(17)]);
            if (i + 1 < count && NEXT(5) == 0)
                strcat(pattern, "|");
        }
        length = NEXT(12);
        for (int i = 0; i < length; i++)
            text[i] = (char)('a' + NEXT(3));
        text[length] = 0;
        if (regcomp(&theirs, pattern, REG_EXTENDED))
            continue;
        regex = compiled(pattern);
        rc = regex_match(regex, found, text, (size_t)length);
        if ((regexec(&theirs, text, 1, &match, 0) == 0) != (rc == 1) ||
            (rc == 1 && (found[0].text - text != match.rm_so ||
                         found[0].length != (size_t)(match.rm_eo - match.rm_so))))
            fail_msg("/%s/ on \"%s\"", pattern, text);
        regex_free(regex);
        regfree(&theirs);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_the_leftmost_longest_match_counts),
        TEST(test_a_character_of_several_bytes_is_one),
        TEST(test_what_is_no_expression_is_refused),
        TEST(test_a_long_line_takes_time_by_its_length),
        TEST(test_it_agrees_with_the_c_library),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
