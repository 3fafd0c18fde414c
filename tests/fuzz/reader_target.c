/* Fuzzing: records of every form, from a pipe of any bytes.
 * SPDX-License-Identifier: MIT */
#include "cli/input/reader.h"
#include "fuzz/fuzz_target.h"

#include <sys/mman.h>
#include <unistd.h>

const char *const fuzz_words[] = { "a",  ",",   "\"",        "\"\"", "\n",    "\r\n",
                                   "\t", "\\t", "{\"a\":1}", "{",    "[1,2]", "\xef\xbb\xbf",
                                   "--", " ",   "name,id\n", NULL };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char separators[] = { '\n', 0 };
    uint8_t first = size ? data[0] : 0;
    struct record_syntax syntax = { .form = (enum record_form)(first & 3),
                                    .delimiter = first & 4 ? ';' : 0 };
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    struct reader *reader = NULL;
    struct record record;
    weir_message message;
    volatile char last = 0; /* of a field: that it can be read */

    if (fd < 0 || (size && write(fd, data, size) != (ssize_t)size) || lseek(fd, 0, SEEK_SET) != 0 ||
        reader_new(&reader, fd, "fuzz", separators[first >> 3 & 1], &syntax, -1))
        return 0;
    if (first & 16 && syntax.form == FORM_LINES)
        reader_set_end(reader, "--", 2);
    while (reader_next(&record, reader, &message) > 0) {
        struct span field;
        char *owned = NULL;
        if (record_split(&record, &syntax, &message) == 0 &&
            record_field(&field, &owned, &record, &syntax, first & 32 ? "a" : "2", &message) == 0)
            last = field.length ? field.text[field.length - 1] : 0;
        free(owned);
        record_fini(&record);
    }
    reader_free(reader);
    close(fd);
    return last * 0;
}
