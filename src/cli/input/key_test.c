/* SPDX-License-Identifier: MIT */
#include "cli/input/key.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct record_syntax lines = { .form = FORM_LINES };
static const struct record_syntax jsonl = { .form = FORM_JSONL };

static char *columns[] = { "id", "host", "url", "a/b", "/x/" };
static const struct record_syntax named = { .form = FORM_CSV, .names = columns, .name_count = 5 };

static struct record record_of(const struct record_syntax *syntax, const char *text, size_t length)
{
    struct record record = { .text = malloc(length + 1), .length = length, .line = 7 };
    weir_message message = { "" };

    assert_non_null(record.text);
    memcpy(record.text, text, length);
    record.text[length] = '\0';
    assert_int_equal(record_split(&record, syntax, &message), 0);
    return record;
}

/* The key, or NULL and the sentence. */
static char *key_in(const struct record_syntax *syntax, const char *spec, const char *text,
                    size_t length, weir_message *message)
{
    struct record record = record_of(syntax, text, length);
    struct key_rule *rule;
    char *key;
    int rc;

    assert_int_equal(key_rule_new(&rule, spec, syntax, -1, message), 0);
    rc = key_of(&key, rule, &record, syntax, message);
    assert_true(rc == (key ? 0 : WEIR_EINVAL));
    key_rule_free(rule);
    record_fini(&record);
    return key;
}

static void assert_key(const struct record_syntax *syntax, const char *spec, const char *text,
                       const char *expected)
{
    weir_message message = { "" };
    char *key = key_in(syntax, spec, text, strlen(text), &message);

    assert_non_null(key);
    assert_string_equal(key, expected);
    free(key);
}

static void assert_no_key(const struct record_syntax *syntax, const char *spec, const char *text,
                          size_t length, const char *sentence)
{
    weir_message message = { "" };

    assert_null(key_in(syntax, spec, text, length, &message));
    assert_string_equal(message.text, sentence);
}

static void assert_no_rule(const struct record_syntax *syntax, const char *spec,
                           const char *sentence)
{
    weir_message message = { "" };
    struct key_rule *rule;

    assert_int_equal(key_rule_new(&rule, spec, syntax, -1, &message), WEIR_EINVAL);
    assert_null(rule);
    assert_string_equal(message.text, sentence);
}

static void assert_host(const char *text, const char *host)
{
    struct span span = { NULL, 0 };

    assert_int_equal(url_host(&span, text, strlen(text)), host != NULL);
    if (host) {
        assert_int_equal(span.length, strlen(host));
        assert_memory_equal(span.text, host, span.length);
    }
}

static void test_a_key_may_be_a_field(void **state)
{
    (void)state;
    assert_key(&lines, "2", "a b c", "b");
    assert_key(&named, "id", "1,2,3,4,5", "1");
    assert_key(&named, "2", "1,2,3,4,5", "2");
    assert_key(&named, "/x/", "1,2,3,4,5", "5");
    assert_key(&jsonl, "user.name", "{\"user\":{\"name\":\"x\\ty\"}}", "x\ty");
    assert_key(&jsonl, "n", "{\"n\":null}", "");
    assert_no_key(&lines, "2", "a", 1, "line 7: no column \"2\", only 1 column");
    assert_no_key(&jsonl, "x", "{}", 2, "line 7: the object has no field \"x\"");
}

static void test_a_key_may_be_the_match_of_a_regular_expression(void **state)
{
    (void)state;
    assert_key(&lines, "/user=([a-z]+)/", "x user=bob y", "bob");
    assert_key(&lines, "/[0-9]+/", "ab 123 456", "123");
    assert_key(&lines, "/^(a)|(b)/", "xb", "b");
    assert_key(&lines, "/a(b)?/", "a", "");
    assert_key(&lines, "/zzz/", "abc", "");
    assert_key(&lines, "/./", "", "");
    assert_key(&lines, "/a/b/", "x a/b", "a/b");
    assert_key(&jsonl, "/\"n\":([0-9])/", "{\"n\":7}", "7");
}

static void test_regular_expressions_see_past_zero_bytes(void **state)
{
    weir_message message = { "" };
    char *key = key_in(&lines, "/id=([0-9])/", "\0\0id=5\0", 7, &message);
    (void)state;
    assert_string_equal(key, "5");
    free(key);
    assert_no_key(&lines, "/a[^x]b/", "a\0b", 3, "line 7: the group's key contains a zero byte");
}

static void test_a_key_may_be_a_host(void **state)
{
    (void)state;
    assert_key(&lines, "host", "GET https://User:pw@WWW.Example.com:8080/x?y 200",
               "www.example.com");
    assert_key(&lines, "host", "no url", "");
    assert_key(&lines, "host:2", "http://a/ http://b/", "b");
    assert_key(&named, "host:url", "1,x,http://c/,4,5", "c");
    assert_key(&jsonl, "host:u", "{\"u\":\"http:\\/\\/D\\/\"}", "d");
}

static void test_a_field_named_host_goes_first(void **state)
{
    (void)state;
    assert_key(&named, "host", "1,Mine,http://c/,4,5", "Mine");
    assert_key(&jsonl, "host", "{\"host\":\"Mine\",\"u\":\"http://c/\"}", "Mine");
    assert_key(&jsonl, "host", "{\"u\":\"http://C/\"}", "c");
    assert_key(&jsonl, "host", "{}", "");
}

static void test_a_key_may_be_a_template(void **state)
{
    (void)state;
    assert_key(&lines, "{1}-{2}", "a b", "a-b");
    assert_key(&lines, "{}", "a b", "a b");
    assert_key(&lines, "{//}", "/x/y/z", "/x/y");
    assert_key(&named, "{id}/{host}", "1,h,3,4,5", "1/h");
    assert_no_key(&lines, "{}", "a\0b", 3,
                  "line 7: {} contains a zero byte, which an argument cannot");
}

static void test_nonsense_is_refused_with_a_sentence(void **state)
{
    struct key_rule *rule;
    weir_message message = { "" };
    (void)state;
    assert_no_rule(
        &lines, "name",
        "--group-by: \"name\" is not a column: use its number, host, /REGEX/, or a text with {}");
    assert_no_rule(
        &lines, "",
        "--group-by: \"\" is not a column: use its number, host, /REGEX/, or a text with {}");
    assert_no_rule(&named, "nam", "--group-by: the header has no column \"nam\"");
    assert_no_rule(&named, "host:nam", "--group-by: the header has no column \"nam\"");
    assert_no_rule(&lines, "{ x }",
                   "--group-by: \"{ x }\" has no placeholder: use {}, a column such as {1}, or a "
                   "field such as {name}");
    assert_no_rule(&lines, "{key}", "--group-by: use fields of the record, not {key} or {seq}");
    assert_no_rule(&lines, "{}{seq}", "--group-by: use fields of the record, not {key} or {seq}");
    assert_int_equal(key_rule_new(&rule, "/a(/", &lines, -1, &message), WEIR_EINVAL);
    assert_non_null(strstr(message.text, "/a(/"));
    key_rule_free(NULL);
}

static void test_keys_have_a_longest(void **state)
{
    char text[4098], *key;
    weir_message message = { "" };
    (void)state;
    memset(text, 'x', sizeof(text));
    key = key_in(&lines, "1", text, 4096, &message);
    assert_int_equal(strlen(key), 4096);
    free(key);
    assert_no_key(&lines, "1", text, 4097, "line 7: the group's key is longer than 4096 bytes");
    assert_no_key(&lines, "{}", text, 4097, "line 7: the group's key is longer than 4096 bytes");
    assert_no_key(&lines, "/x+/", text, 4097, "line 7: the group's key is longer than 4096 bytes");
}

static void test_hosts_are_found_in_urls(void **state)
{
    (void)state;
    assert_host("http://example.com", "example.com");
    assert_host("http://example.com/", "example.com");
    assert_host("http://example.com:80", "example.com");
    assert_host("http://example.com?q", "example.com");
    assert_host("http://example.com#f", "example.com");
    assert_host("http://a@b@c/d@e", "c");
    assert_host("http://user:p:w@h:1/", "h");
    assert_host("http://[::1]:80/", "::1");
    assert_host("ftp://u@[2001:db8::1%25eth0]/", "2001:db8::1%25eth0");
    assert_host("git+ssh://h", "h");
    assert_host("see <http://a.b>, or", "a.b");
    assert_host("(http://a.b)", "a.b");
    assert_host("'http://a.b'", "a.b");
    assert_host("{\"u\":\"http://a.b\"}", "a.b");
    assert_host("http://a.b\\@evil", "a.b");
    assert_host("http:///path http://x", "x");
    assert_host("file:///path", NULL);
    assert_host("http://", NULL);
    assert_host("://a", NULL);
    assert_host("http://:80", NULL);
    assert_host("http://[::1", NULL);
    assert_host("http://[]/", NULL);
    assert_host("http://u@/", NULL);
    assert_host("//a.b/c", NULL);
    assert_host("a.b", NULL);
    assert_host("", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_key_may_be_a_field),
        cmocka_unit_test(test_a_key_may_be_the_match_of_a_regular_expression),
        cmocka_unit_test(test_regular_expressions_see_past_zero_bytes),
        cmocka_unit_test(test_a_key_may_be_a_host),
        cmocka_unit_test(test_a_field_named_host_goes_first),
        cmocka_unit_test(test_a_key_may_be_a_template),
        cmocka_unit_test(test_nonsense_is_refused_with_a_sentence),
        cmocka_unit_test(test_keys_have_a_longest),
        cmocka_unit_test(test_hosts_are_found_in_urls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
