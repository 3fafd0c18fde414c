/* Tests of URLs and options: what they mean, and what is wrong with others.
 * SPDX-License-Identifier: MIT */
#include "redis/config.h"

#include "support/check.h"

#include <string.h>

/* The parts of a good URL: kind, TLS, first host, port, number of hosts, user, password, database, master. */
struct good {
    const char *url;
    enum wr_redis_kind kind;
    bool tls;
    const char *host;
    int port, hosts;
    const char *user, *password;
    uint32_t database;
    const char *master;
};

static bool same(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

static void test_urls_say_where_the_server_is(void)
{
    static const struct good rows[] = {
        { "redis://localhost", WR_REDIS_DIRECT, false, "localhost", 6379, 1, NULL, NULL, 0, NULL },
        { "redis://h:1/15", WR_REDIS_DIRECT, false, "h", 1, 1, NULL, NULL, 15, NULL },
        { "redis://h/", WR_REDIS_DIRECT, false, "h", 6379, 1, NULL, NULL, 0, NULL },
        { "rediss://:p@h:65535", WR_REDIS_DIRECT, true, "h", 65535, 1, NULL, "p", 0, NULL },
        { "redis://u:p%40%2f@[::1]:7/2", WR_REDIS_DIRECT, false, "::1", 7, 1, "u", "p@/", 2, NULL },
        { "redis://u:a@b@[fe80::1]", WR_REDIS_DIRECT, false, "fe80::1", 6379, 1, "u", "a@b", 0,
          NULL },
        { "redis://u:@h", WR_REDIS_DIRECT, false, "h", 6379, 1, "u", "", 0, NULL },
        { "unix:///a%20b/s", WR_REDIS_DIRECT, false, "/a b/s", 0, 1, NULL, NULL, 0, NULL },
        { "unix://u:p@/s?db=3", WR_REDIS_DIRECT, false, "/s", 0, 1, "u", "p", 3, NULL },
        { "redis+sentinel://a,b:2,[::3]:4/main/5", WR_REDIS_SENTINEL, false, "a", 26379, 3, NULL,
          NULL, 5, "main" },
        { "rediss+sentinel://a/m%2fn", WR_REDIS_SENTINEL, true, "a", 26379, 1, NULL, NULL, 0,
          "m/n" },
        { "redis+cluster://a:1,b:2", WR_REDIS_CLUSTER, false, "a", 1, 2, NULL, NULL, 0, NULL },
        { "rediss+cluster://x:y@a", WR_REDIS_CLUSTER, true, "a", 6379, 1, "x", "y", 0, NULL },
    };
    struct wr_redis_config config;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct good *row = &rows[i];
        weir_message message = { "" };
        int rc = wr_redis_config_init(&config, WEIR_REDIS(.url = row->url), &message);
        if (!CHECK_EQUAL(rc, 0)) {
            printf("%s: %s\n", row->url, message.text);
            continue;
        }
        if (!CHECK(config.kind == row->kind && config.tls == row->tls &&
                   same(config.hosts[0].host, row->host) && config.hosts[0].port == row->port &&
                   config.host_count == row->hosts && same(config.opt.user, row->user) &&
                   same(config.opt.password, row->password) &&
                   config.opt.database == row->database && same(config.master, row->master)))
            printf("%s\n", row->url);
        wr_redis_config_fini(&config);
    }
}

static void test_no_url_is_the_usual_port_of_this_machine(void)
{
    struct wr_redis_config config;
    char text[64];

    assert_int_equal(wr_redis_config_init(&config, NULL, NULL), 0);
    wr_endpoint_text(text, sizeof(text), &config.hosts[0]);
    assert_string_equal(text, "127.0.0.1:6379");
    assert_int_equal(config.opt.connections, 1);
    assert_int_equal(config.opt.connect_ms, 5000);
    assert_int_equal(config.opt.reply_ms, 5000);
    wr_redis_config_fini(&config);
}

static void test_options_go_before_the_url(void)
{
    struct wr_redis_config config;

    assert_int_equal(wr_redis_config_init(&config,
                                          WEIR_REDIS(.url = "redis://u:p@h/3", .user = "v",
                                                     .password = "q", .database = 4),
                                          NULL),
                     0);
    assert_string_equal(config.opt.user, "v");
    assert_string_equal(config.opt.password, "q");
    assert_int_equal(config.opt.database, 4);
    wr_redis_config_fini(&config);
}

/* Each URL is refused, and the message contains this text. */
static void test_malformed_urls_are_refused_and_the_sentence_says_why(void)
{
    static const struct {
        const char *url, *says;
    } rows[] = {
        { "", "begins with none of" },
        { "http://h", "begins with none of" },
        { "redis:/h", "begins with none of" },
        { "redis://", "empty host" },
        { "redis://:1", "empty host" },
        { "redis://h:", "port is '': not a number from 1 to 65535" },
        { "redis://h:0", "port is '0'" },
        { "redis://h:65536", "port is '65536'" },
        { "redis://h:99999999999999999999", "not a number from 1" },
        { "redis://h:6x", "port is '6x'" },
        { "redis://h/x", "database is 'x'" },
        { "redis://h/-1", "database is '-1'" },
        { "redis://h/1/2", "database is '1/2'" },
        { "redis://h?db=1", "behind a '/'" },
        { "redis://h/1?x=1", "behind a '/'" },
        { "redis://a,b", "several hosts" },
        { "redis://::1", "in [ ]" },
        { "redis://[::1", "[::1]:port" },
        { "redis://[::1]7", "[::1]:port" },
        { "redis://[]", "empty host" },
        { "redis://user@h", "a user without a password" },
        { "redis://u:%4@h", "two hexadecimal digits" },
        { "redis://u:%zz@h", "two hexadecimal digits" },
        { "redis://u:%00@h", "not 00" },
        { "redis://u:%", "port is '%'" },
        { "unix://run/s", "begins with /" },
        { "unix://", "begins with /" },
        { "unix:///s?x=1", "only ?db=number is" },
        { "unix:///s?db=", "database is ''" },
        { "unix:///"
          "0123456789012345678901234567890123456789012345678901234567890123456789012345678901"
          "2345678901234567890123456789",
          "at most 107 bytes" },
        { "redis+sentinel://h", "NAME" },
        { "redis+sentinel://h/", "NAME" },
        { "redis+sentinel://h,/m", "empty host" },
        { "redis+sentinel://h/m/x", "database is 'x'" },
        { "redis+cluster://h/1", "no databases" },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        weir_message message = { "" };
        if (!CHECK_EQUAL(weir_redis_check(WEIR_REDIS(.url = rows[i].url), &message), WEIR_EINVAL) ||
            !CHECK(strstr(message.text, rows[i].says)))
            printf("%s: %s\n", rows[i].url, message.text);
    }
}

static void test_a_password_never_shows_in_a_sentence(void)
{
    static const char *const urls[] = { "redis://u:secret@h:x", "redis://u:secret%@h",
                                        "redis://u:secret@", "unix://u:secret@s" };

    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        weir_message message = { "" };
        CHECK_EQUAL(weir_redis_check(WEIR_REDIS(.url = urls[i]), &message), WEIR_EINVAL);
        CHECK(!strstr(message.text, "secret"));
    }
}

static void test_options_that_make_no_sense_are_refused(void)
{
    const struct {
        const weir_redis_options *opt;
        const char *says;
    } rows[] = {
        { WEIR_REDIS(.user = "u"), "without a password" },
        { WEIR_REDIS(.sentinel_password = "p"), "names no sentinels" },
        { WEIR_REDIS(.connections = 17), "connections is 17: use 1 to 16" },
        { WEIR_REDIS(.connect_ms = 3600001), "connect_ms" },
        { WEIR_REDIS(.backoff_ms = 100, .backoff_max_ms = 50), "less than backoff_ms" },
        { WEIR_REDIS(.tls_ca = "x"), "not one of rediss" },
        { WEIR_REDIS(.url = "rediss://h", .tls_key = "x"), "without tls_cert" },
        { WEIR_REDIS(.url = "redis+cluster://h", .database = 1), "no database but 0" },
        { WEIR_REDIS(.name = "a b"), "blank" },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        weir_message message = { "" };
        CHECK_EQUAL(weir_redis_check(rows[i].opt, &message), WEIR_EINVAL);
        if (!CHECK(strstr(message.text, rows[i].says)))
            printf("%s\n", message.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_urls_say_where_the_server_is),
        TEST(test_no_url_is_the_usual_port_of_this_machine),
        TEST(test_options_go_before_the_url),
        TEST(test_malformed_urls_are_refused_and_the_sentence_says_why),
        TEST(test_a_password_never_shows_in_a_sentence),
        TEST(test_options_that_make_no_sense_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
