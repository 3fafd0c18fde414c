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

/* The match of the whole expression, and of its first parentheses; "-": nothing. */
static const char *matched(const char *pattern, const char *text)
{
    static char out[200];
    struct regex *regex = compiled(pattern);
    struct span found[1 + REGEX_CAPTURES_MAX];

    strcpy(out, "-");
    if (regex_match(regex, found, text, strlen(text), -1) > 0) {
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
    assert_string_equal(matched("a{,2}b", "aaab"), "aab");
    assert_string_equal(matched("a|b)c", "xb)c"), "b)c");
    assert_string_equal(matched("[a\\]+", "x\\a"), "\\a");
}

static void test_a_character_of_several_bytes_is_one(void)
{
    setlocale(LC_CTYPE, "C.UTF-8");
    assert_string_equal(matched("(.)$", "caf\303\251"), "\303\251|\303\251");
    assert_string_equal(matched("[^a]", "a\303\251"), "\303\251");
    assert_string_equal(matched("(.)$", "x\377"), "\377|\377");
    setlocale(LC_CTYPE, "C");
}

static void test_text_that_is_no_expression_is_refused_with_the_fault(void)
{
    static const struct {
        const char *pattern, *reason;
    } wrong[] = {
        { "(a", "( is never closed" },
        { "[a", "[ is never closed" },
        { "[[:alpha", "[: is never closed" },
        { "a{2,1}", "{2,1}: the smaller number comes first" },
        { "a{300}", "at most 255" },
        { "a{99999999999999999999}", "at most 255" },
        { "a{x}", "{ begins a count" },
        { "a{2", "{ begins a count" },
        { "*a", "nothing to repeat before *" },
        { "(a|+)", "nothing to repeat before +" },
        { "^*", "nothing to repeat before *" },
        { "a\\", "\\ at the end" },
        { "[z-a]", "[z-a]: the range is the wrong way round" },
        { "[[:nosuch:]]", "[:nosuch:]: no such class" },
        { "(a)\\1", "back-references" },
    };
    weir_message message;
    struct regex *regex;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        message.text[0] = 0;
        assert_int_equal(regex_new(&regex, wrong[i].pattern, &message), WEIR_EINVAL);
        if (!strstr(message.text, wrong[i].reason))
            fail_msg("/%s/: %s", wrong[i].pattern, message.text);
        assert_null(regex);
    }
}

/* The C library took gigabytes for the first of these. */
static void test_no_expression_takes_much_memory_or_time(void)
{
    static const struct {
        const char *begin, *more, *end;
        int rc;
    } large[] = {
        { "a", "+", "", 0 },
        { "a", "?", "", WEIR_EINVAL },
        { "a", "{255}", "", WEIR_EINVAL },
        { "", "(", "", WEIR_EINVAL },
        { "a", "|", "", WEIR_EINVAL },
        { "", "[a-z]", "", WEIR_EINVAL },
        { "[", "a", "]", WEIR_EINVAL },
    };
    enum { TIMES = 15000, LENGTH = 5 * TIMES + 3 };
    char *pattern = malloc(LENGTH);
    struct span found[1 + REGEX_CAPTURES_MAX];
    struct regex *regex;
    weir_message message;

    assert_non_null(pattern);
    for (size_t i = 0; i < sizeof(large) / sizeof(*large); i++) {
        char *at = stpcpy(pattern, large[i].begin);
        int times = large[i].more[0] == '[' || large[i].more[0] == 'a' ? 3 * TIMES : TIMES;
        if (large[i].rc && large[i].more[0] == '?')
            times = 2 * TIMES;
        for (int n = 0; n < times && at + 7 < pattern + LENGTH; n++)
            at = stpcpy(at, large[i].more);
        strcpy(at, large[i].end);
        assert_int_equal(regex_new(&regex, pattern, &message), large[i].rc);
        if (large[i].rc == 0)
            assert_int_equal(regex_match(regex, found, "xaa", 3, -1), 1);
        regex_free(regex);
    }
    free(pattern);
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
    assert_int_equal(regex_match(regex, found, text, LENGTH, -1), 0);
    text[LENGTH - 1] = 'b';
    assert_int_equal(regex_match(regex, found, text, LENGTH, -1), 1);
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
        rc = regex_match(regex, found, text, (size_t)length, -1);
        if ((regexec(&theirs, text, 1, &match, 0) == 0) != (rc == 1) ||
            (rc == 1 && (found[0].text - text != match.rm_so ||
                         found[0].length != (size_t)(match.rm_eo - match.rm_so))))
            fail_msg("/%s/ on \"%s\"", pattern, text);
        regex_free(regex);
        regfree(&theirs);
    }
}

/* Random characters: an expression here is one for the C library. Counts are kept low, since that copies. */
static void test_it_takes_the_expressions_that_the_c_library_takes(void)
{
    static const char *const part[] = { "a",   "b",     "(", ")", "[",         "]",  "{",  "}", "*",
                                        "+",   "?",     "|", "^", "$",         "\\", ",",  "1", "2",
                                        "{2}", "{1,2}", "-", ":", "[:alpha:]", "^",  "[^", "." };
    uint64_t state = 54321;

    for (int round = 0; round < 50000; round++) {
        char pattern[120] = "";
        weir_message message = { "" };
        struct regex *regex;
        regex_t theirs;
        int count = 1 + NEXT(8), rc, error;
        for (int i = 0; i < count; i++)
            strcat(pattern, part[NEXT(26)]);
        if (strstr(pattern, "{\\") || strstr(pattern, ",\\"))
            continue; /* glibc takes a backslash in a count for nothing */
        error = regcomp(&theirs, pattern, REG_EXTENDED);
        rc = regex_new(&regex, pattern, &message);
        if ((rc == 0) != (error == 0) && !strstr(message.text, "are not known") &&
            !strstr(message.text, "at most"))
            fail_msg("/%s/: %s, but %d there", pattern, rc ? message.text : "taken", error);
        if (error == 0)
            regfree(&theirs);
        regex_free(regex);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_the_leftmost_longest_match_counts),
        TEST(test_a_character_of_several_bytes_is_one),
        TEST(test_text_that_is_no_expression_is_refused_with_the_fault),
        TEST(test_no_expression_takes_much_memory_or_time),
        TEST(test_a_long_line_takes_time_by_its_length),
        TEST(test_it_agrees_with_the_c_library),
        TEST(test_it_takes_the_expressions_that_the_c_library_takes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
