/* SPDX-License-Identifier: MIT */
#include "cli/input/reader.h"

#include "support/seed.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

static const struct record_syntax lines = { .form = FORM_LINES };
static const struct record_syntax csv = { .form = FORM_CSV };
static const struct record_syntax tsv = { .form = FORM_TSV };
static const struct record_syntax jsonl = { .form = FORM_JSONL };

/* A regular file of that content. */
static int file_of(const char *text, size_t length)
{
    int fd = memfd_create("weir-reader", MFD_CLOEXEC);

    assert_true(fd >= 0);
    while (length) {
        ssize_t count = write(fd, text, length);
        assert_true(count > 0);
        text += count;
        length -= (size_t)count;
    }
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

static struct reader *open_reader(int fd, const struct record_syntax *syntax)
{
    struct reader *reader;

    assert_int_equal(reader_new(&reader, fd, "standard input", '\n', syntax, -1), 0);
    return reader;
}

static void assert_next(struct reader *reader, const char *text, size_t length, uint64_t line)
{
    weir_message message = { "" };
    struct record record;

    assert_int_equal(reader_next(&record, reader, &message), 1);
    assert_int_equal(record.length, length);
    assert_memory_equal(record.text, text, length);
    assert_int_equal(record.text[length], '\0');
    assert_int_equal(record.line, line);
    assert_null(record.fields);
    record_fini(&record);
}

static void assert_end(struct reader *reader)
{
    struct record record;

    assert_int_equal(reader_next(&record, reader, NULL), 0);
    assert_int_equal(reader_next(&record, reader, NULL), 0);
}

/* Records as "1:a|2:b", each with its line. */
static void assert_records(const struct record_syntax *syntax, char separator, const char *input,
                           size_t length, const char *expected)
{
    int fd = file_of(input, length);
    char joined[256] = "";
    struct reader *reader;
    struct record record;
    size_t used = 0;
    int rc;

    assert_int_equal(reader_new(&reader, fd, "input", separator, syntax, -1), 0);
    while ((rc = reader_next(&record, reader, NULL)) == 1) {
        used += (size_t)snprintf(joined + used, sizeof(joined) - used, "%s%d:%s", used ? "|" : "",
                                 (int)record.line, record.text);
        record_fini(&record);
    }
    assert_int_equal(rc, 0);
    assert_string_equal(joined, expected);
    assert_int_equal(reader_bytes(reader), length);
    reader_free(reader);
    close(fd);
}

#define ASSERT_RECORDS(syntax, input, expected) \
    assert_records(syntax, '\n', input, sizeof(input) - 1, expected)

/* ---- forms --------------------------------------------------------------------------------------- */

static void test_every_line_is_a_record(void **state)
{
    (void)state;
    ASSERT_RECORDS(&lines, "", "");
    ASSERT_RECORDS(&lines, "a\nb\n", "1:a|2:b");
    ASSERT_RECORDS(&lines, "a\nb", "1:a|2:b");
    ASSERT_RECORDS(&lines, "\n\nx\n", "1:|2:|3:x");
    ASSERT_RECORDS(&lines, "a\r\n", "1:a\r");
    ASSERT_RECORDS(&lines, "\xef\xbb\xbfx\n", "1:\xef\xbb\xbfx");
    assert_records(&lines, '\0', "a\nb\0c", 5, "1:a\nb|2:c");
}

static void test_lines_may_be_binary(void **state)
{
    int fd = file_of("a\0b\n\0\n\xff", 7);
    struct reader *reader = open_reader(fd, &lines);
    (void)state;
    assert_next(reader, "a\0b", 3, 1);
    assert_int_equal(reader_bytes(reader), 4);
    assert_next(reader, "\0", 1, 2);
    assert_next(reader, "\xff", 1, 3);
    assert_end(reader);
    reader_free(reader);
    close(fd);
}

static void test_rows_may_span_lines(void **state)
{
    (void)state;
    ASSERT_RECORDS(&csv, "a,b\nc,d\n", "1:a,b|2:c,d");
    ASSERT_RECORDS(&csv, "\"x\ny\",1\r\nz\n", "1:\"x\ny\",1|3:z");
    ASSERT_RECORDS(&csv, "a,\"b\"\"\n\"\"\"\nc", "1:a,\"b\"\"\n\"\"\"|3:c");
    ASSERT_RECORDS(&csv, "it\"s\nb\n", "1:it\"s|2:b");
    ASSERT_RECORDS(&csv, "\"a\"b\"\nc\n", "1:\"a\"b\"|2:c");
    ASSERT_RECORDS(&csv, "a,\"b\nc", "1:a,\"b\nc");
}

static void test_empty_lines_are_skipped_where_they_mean_nothing(void **state)
{
    (void)state;
    ASSERT_RECORDS(&csv, "\na\n\r\n\nb\n\n", "2:a|5:b");
    ASSERT_RECORDS(&csv, " \n", "1: ");
    ASSERT_RECORDS(&tsv, "\n\t\n\n", "2:\t");
    ASSERT_RECORDS(&jsonl, " \t\r\n{}\r\n\n{\"a\":1}", "2:{}|4:{\"a\":1}");
}

static void test_a_byte_order_mark_is_skipped(void **state)
{
    (void)state;
    ASSERT_RECORDS(&csv, "\xef\xbb\xbf\"a\nb\",c\nd\n", "1:\"a\nb\",c|3:d");
    ASSERT_RECORDS(&jsonl, "\xef\xbb\xbf{}\n", "1:{}");
    ASSERT_RECORDS(&csv, "\xef\xbb\xbf", "");
    ASSERT_RECORDS(&csv, "\xef\xbb", "1:\xef\xbb");
    ASSERT_RECORDS(&csv,
                   "a\n\xef\xbb\xbf"
                   "b\n",
                   "1:a|2:\xef\xbb\xbf"
                   "b");
}

/* ---- sizes --------------------------------------------------------------------------------------- */

static void test_lines_longer_than_the_buffer_are_whole(void **state)
{
    enum { LONG = 3 << 20 };
    char *text = malloc(LONG + 1);
    struct reader *reader;
    int fd;
    (void)state;
    memset(text, 'x', LONG);
    stpcpy(text, "first\n");
    text[6] = 'x';
    stpcpy(text + LONG - 6, "\nlast\n");
    fd = file_of(text, LONG);
    reader = open_reader(fd, &lines);
    assert_next(reader, "first", 5, 1);
    assert_next(reader, text + 6, LONG - 12, 2);
    assert_next(reader, "last", 4, 3);
    assert_end(reader);
    reader_free(reader);
    close(fd);
    free(text);
}

static void assert_too_long(const struct record_syntax *syntax, const char *head, const char *why)
{
    int fd = file_of(head, strlen(head));
    struct reader *reader = open_reader(fd, syntax);
    weir_message message = { "" };
    struct record record;

    assert_int_equal(ftruncate(fd, READER_RECORD_MAX + 4096), 0); /* zero bytes, no line ends */
    assert_int_equal(reader_next(&record, reader, &message), 1);
    record_fini(&record);
    assert_int_equal(reader_next(&record, reader, &message), WEIR_EINVAL);
    assert_string_equal(message.text, why);
    assert_int_equal(reader_next(&record, reader, &message), WEIR_EINVAL);
    reader_free(reader);
    close(fd);
}

static void test_a_line_beyond_the_limit_is_refused_by_number(void **state)
{
    (void)state;
    assert_too_long(&lines, "a\nb", "standard input: line 2 is longer than 64 MiB");
    assert_too_long(&csv, "a\n\"b",
                    "standard input: line 2 is longer than 64 MiB; is a quote never closed?");
}

static void test_a_million_lines_are_read_in_no_time(void **state)
{
    const size_t total = 1000000;
    char *text = malloc(8 * total + 1);
    struct reader *reader;
    struct record record;
    weir_time start;
    uint64_t count = 0;
    int fd;
    (void)state;
    for (size_t i = 0; i < total; i++)
        snprintf(text + 8 * i, 9, "%07u\n", (unsigned)i % 10000000);
    fd = file_of(text, 8 * total);
    reader = open_reader(fd, &lines);
    start = weir_now();
    while (reader_next(&record, reader, NULL) == 1) {
        assert_true(memcmp(record.text, text + 8 * count, 7) == 0 && record.length == 7);
        assert_true(record.line == ++count);
        record_fini(&record);
    }
    printf("%.1f million lines a second\n", 1e9 / (double)(weir_now() - start));
    assert_int_equal(count, total);
    assert_int_equal(reader_bytes(reader), 8 * total);
    reader_free(reader);
    close(fd);
    free(text);
}

/* ---- waiting ------------------------------------------------------------------------------------- */

static void test_records_come_as_they_arrive(void **state)
{
    struct reader *reader;
    int fds[2];
    (void)state;
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    reader = open_reader(fds[0], &lines);
    assert_int_equal(write(fds[1], "a\nb\nc", 5), 5);
    assert_next(reader, "a", 1, 1);
    assert_next(reader, "b", 1, 2);
    assert_int_equal(write(fds[1], "d\n", 2), 2);
    assert_next(reader, "cd", 2, 3);
    close(fds[1]);
    assert_end(reader);
    reader_free(reader);
    close(fds[0]);
}

static void test_a_stop_ends_the_wait_and_loses_nothing(void **state)
{
    struct reader *reader;
    struct record record;
    int input[2], stop[2];
    char byte;
    (void)state;
    assert_int_equal(pipe2(input, O_CLOEXEC), 0);
    assert_int_equal(pipe2(stop, O_CLOEXEC), 0);
    assert_int_equal(reader_new(&reader, input[0], "in", '\n', &lines, stop[0]), 0);
    assert_int_equal(write(input[1], "a\nb", 3), 3);
    assert_next(reader, "a", 1, 1);
    assert_int_equal(write(stop[1], "!", 1), 1);
    assert_int_equal(reader_next(&record, reader, NULL), WEIR_ECANCELED);
    assert_int_equal(reader_next(&record, reader, NULL), WEIR_ECANCELED);
    assert_int_equal(read(stop[0], &byte, 1), 1);
    assert_int_equal(write(input[1], "c\n", 2), 2);
    assert_next(reader, "bc", 2, 2);
    reader_free(reader);
    for (int i = 0; i < 2; i++) {
        close(input[i]);
        close(stop[i]);
    }
}

static void *write_later(void *arg)
{
    const int *fd = arg;

    usleep(20000);
    if (write(*fd, "late\n", 5) != 5)
        abort();
    return NULL;
}

static void test_input_that_does_not_block_is_waited_for(void **state)
{
    struct reader *reader;
    pthread_t thread;
    int fds[2];
    (void)state;
    assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    reader = open_reader(fds[0], &lines);
    assert_int_equal(pthread_create(&thread, NULL, write_later, &fds[1]), 0);
    assert_next(reader, "late", 4, 1);
    pthread_join(thread, NULL);
    reader_free(reader);
    close(fds[0]);
    close(fds[1]);
}

static void test_a_read_that_fails_names_its_input(void **state)
{
    int fd = open("/", O_RDONLY | O_CLOEXEC);
    struct reader *reader = open_reader(fd, &lines);
    weir_message message = { "" };
    struct record record;
    (void)state;
    assert_int_equal(reader_next(&record, reader, &message), -EISDIR);
    assert_string_equal(message.text, "standard input: Is a directory");
    reader_free(reader);
    close(fd);
    reader = open_reader(fd, &lines);
    assert_int_equal(reader_next(&record, reader, &message), -EBADF);
    reader_free(reader);
}

/* ---- luck ---------------------------------------------------------------------------------------- */

struct feeder {
    int fd;
    const char *text;
    size_t length;
    struct luck luck;
};

/* Writes in pieces, each of which the reader has most likely taken before the next one comes. */
static void *feed(void *arg)
{
    struct feeder *feeder = arg;

    for (size_t done = 0; done < feeder->length;) {
        size_t piece = 1 + luck_below(&feeder->luck, feeder->length - done);
        if (write(feeder->fd, feeder->text + done, piece) != (ssize_t)piece)
            abort();
        done += piece;
        sched_yield();
    }
    close(feeder->fd);
    return NULL;
}

static void assert_same_records(struct reader *whole, struct reader *pieces)
{
    struct record a, b;
    int rc;

    while ((rc = reader_next(&a, whole, NULL)) == 1) {
        assert_int_equal(reader_next(&b, pieces, NULL), 1);
        assert_int_equal(a.length, b.length);
        assert_memory_equal(a.text, b.text, a.length);
        assert_int_equal(a.line, b.line);
        record_fini(&a);
        record_fini(&b);
    }
    assert_int_equal(rc, 0);
    assert_int_equal(reader_next(&b, pieces, NULL), 0);
    assert_int_equal(reader_bytes(whole), reader_bytes(pieces));
}

static void test_pieces_of_any_size_give_the_same_records(void **state)
{
    static const enum record_form forms[] = { FORM_LINES, FORM_CSV, FORM_TSV, FORM_JSONL };
    static const char bytes[] = "\"\",\n\r a\xef\xbb\xbf";
    struct luck luck = luck_of(1);
    (void)state;
    for (int i = 0; i < 2000; i++) {
        struct record_syntax syntax = { .form = forms[luck_below(&luck, 4)] };
        size_t length = luck_below(&luck, 40);
        struct reader *whole, *pieces;
        struct feeder feeder;
        pthread_t thread;
        char text[40];
        int fds[2], fd;

        for (size_t k = 0; k < length; k++)
            text[k] = bytes[luck_below(&luck, sizeof(bytes) - 1)];
        fd = file_of(text, length);
        assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
        feeder = (struct feeder){ fds[1], text, length, luck };
        whole = open_reader(fd, &syntax);
        pieces = open_reader(fds[0], &syntax);
        assert_int_equal(pthread_create(&thread, NULL, feed, &feeder), 0);
        assert_same_records(whole, pieces);
        pthread_join(thread, NULL);
        reader_free(whole);
        reader_free(pieces);
        close(fd);
        close(fds[0]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_line_is_a_record),
        cmocka_unit_test(test_lines_may_be_binary),
        cmocka_unit_test(test_rows_may_span_lines),
        cmocka_unit_test(test_empty_lines_are_skipped_where_they_mean_nothing),
        cmocka_unit_test(test_a_byte_order_mark_is_skipped),
        cmocka_unit_test(test_lines_longer_than_the_buffer_are_whole),
        cmocka_unit_test(test_a_line_beyond_the_limit_is_refused_by_number),
        cmocka_unit_test(test_a_million_lines_are_read_in_no_time),
        cmocka_unit_test(test_records_come_as_they_arrive),
        cmocka_unit_test(test_a_stop_ends_the_wait_and_loses_nothing),
        cmocka_unit_test(test_input_that_does_not_block_is_waited_for),
        cmocka_unit_test(test_a_read_that_fails_names_its_input),
        cmocka_unit_test(test_pieces_of_any_size_give_the_same_records),
    };
    seed_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
