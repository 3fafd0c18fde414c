/* Tests of what commands look like on the wire and of how replies are read from it.
 * SPDX-License-Identifier: MIT */
#include "redis/wire.h"

#include "base/os.h"
#include "support/check.h"

#include <string.h>

static void check_bytes(struct wr_bytes *bytes, const char *wanted)
{
    assert_int_equal(bytes->size, strlen(wanted));
    assert_memory_equal(bytes->data, wanted, bytes->size);
    wr_bytes_clear(bytes);
}

static void test_commands_and_scripts_are_arrays_of_words(void)
{
    struct wr_bytes bytes = { 0 };
    struct wr_script script;
    const char *const words[] = { "k", "a\0b" };
    const size_t sizes[] = { 1, 3 };
    struct wr_command command = {
        .script = &script, .keys = 1, .count = 2, .words = words, .sizes = sizes
    };

    wr_script_init(&script, "return 1");
    assert_string_equal(script.sha, "e0e1f9fabfc9d4800c877a703b823ac0578ff8db");
    assert_int_equal(wr_command_format(&bytes, WR_COMMAND("GET", "x"), false, false), 0);
    check_bytes(&bytes, "*2\r\n$3\r\nGET\r\n$1\r\nx\r\n");
    assert_int_equal(wr_command_format(&bytes, WR_COMMAND("GET", "x"), false, true), 0);
    check_bytes(&bytes, "*1\r\n$6\r\nASKING\r\n*2\r\n$3\r\nGET\r\n$1\r\nx\r\n");
    assert_int_equal(wr_command_format(&bytes, &command, true, false), 0);
    assert_int_equal(bytes.size, 51);
    assert_memory_equal(bytes.data, "*5\r\n$4\r\nEVAL\r\n$8\r\nreturn 1\r\n$1\r\n1\r\n", 35);
    wr_bytes_clear(&bytes);

    struct wr_command *copy = wr_command_copy(&command);
    assert_int_equal(wr_command_format(&bytes, copy, false, false), 0);
    assert_non_null(memmem(bytes.data, bytes.size, script.sha, 40));
    assert_non_null(memmem(bytes.data, bytes.size, "$3\r\na\0b\r\n", 9));
    wr_os_free(copy);
    wr_bytes_free(&bytes);
}

static void test_the_key_says_where_a_command_goes(void)
{
    struct wr_script script = { 0 };
    size_t size = 9;

    assert_string_equal(wr_command_key(WR_COMMAND("GET", "x"), &size), "x");
    assert_int_equal(size, 1);
    assert_null(wr_command_key(WR_COMMAND("PING"), &size));
    assert_string_equal(wr_command_key(&(struct wr_command){ .script = &script,
                                                             .keys = 1,
                                                             .count = 1,
                                                             .words = (const char *[]){ "k1" } },
                                       &size),
                        "k1");
    assert_null(wr_command_key(
        &(struct wr_command){ .script = &script, .count = 1, .words = (const char *[]){ "k1" } },
        &size));
}

/* Fed byte by byte, so that every place of a cut is tried. */
static void test_replies_are_read_wherever_the_stream_is_cut(void)
{
    static const char stream[] =
        "+OK\r\n:-7\r\n$3\r\na\0b\r\n$-1\r\n-ERR no\r\n*3\r\n:1\r\n*1\r\n$0\r\n\r\n$-1\r\n*0\r\n";
    struct wr_reply *reply;
    struct wr_wire wire;
    int seen = 0;

    assert_int_equal(wr_wire_init(&wire), 0);
    for (size_t i = 0; i < sizeof(stream) - 1; i++) {
        assert_int_equal(wr_wire_feed(&wire, stream + i, 1), 0);
        int rc = wr_wire_next(&reply, &wire, NULL);
        assert_true(rc >= 0);
        if (!rc)
            continue;
        switch (seen++) {
        case 0:
            CHECK(reply->type == WR_REPLY_STATUS && !strcmp(reply->text, "OK"));
            break;
        case 1:
            CHECK(reply->type == WR_REPLY_INTEGER && reply->integer == -7);
            break;
        case 2:
            CHECK(reply->type == WR_REPLY_STRING && reply->size == 3 &&
                  !memcmp(reply->text, "a\0b", 4));
            break;
        case 3:
            CHECK(reply->type == WR_REPLY_NIL);
            break;
        case 4:
            CHECK(wr_reply_is_error(reply, "ERR") && !wr_reply_is_error(reply, "ER") &&
                  !wr_reply_is_error(reply, "ERR no way"));
            break;
        case 5:
            CHECK(reply->type == WR_REPLY_ARRAY && reply->count == 3 &&
                  reply->items[1]->items[0]->size == 0 && reply->items[2]->type == WR_REPLY_NIL);
            break;
        default:
            CHECK(reply->type == WR_REPLY_ARRAY && reply->count == 0);
        }
        wr_reply_free(reply);
    }
    CHECK_EQUAL(seen, 7);
    wr_wire_fini(&wire);
}

static void test_a_text_that_is_not_a_reply_is_an_error_with_a_sentence(void)
{
    static const char *const streams[] = {
        "HTTP/1.1 200 OK\r\n\r\n",
        "$x\r\n",
        "*99999999\r\n",
        "*-2\r\n",
        ":12a\r\n",
        "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
    };

    for (size_t i = 0; i < sizeof(streams) / sizeof(streams[0]); i++) {
        weir_message message = { "" };
        struct wr_reply *reply;
        struct wr_wire wire;
        assert_int_equal(wr_wire_init(&wire), 0);
        assert_int_equal(wr_wire_feed(&wire, streams[i], strlen(streams[i])), 0);
        if (!CHECK_EQUAL(wr_wire_next(&reply, &wire, &message), WEIR_EPROTO) ||
            !CHECK(strstr(message.text, "no valid reply: ")))
            printf("%s\n", streams[i]);
        CHECK(!reply);
        wr_wire_fini(&wire);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_commands_and_scripts_are_arrays_of_words),
        TEST(test_the_key_says_where_a_command_goes),
        TEST(test_replies_are_read_wherever_the_stream_is_cut),
        TEST(test_a_text_that_is_not_a_reply_is_an_error_with_a_sentence),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
