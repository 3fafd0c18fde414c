/* weir map: what the values of its options may be.
 * SPDX-License-Identifier: MIT */
#include "cli/map_values.h"

#include "base/os.h"
#include "cli/engine/jobs.h"
#include "cli/engine/slots.h"
#include "cli/opt/quantity.h"
#include "cli/opt/refuse.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int map_value_refuse(weir_message *message, const struct opt_reader *reader, const char *wanted)
{
    return refuse(message, "--%s %.100s: use %s", reader->found->name, reader->value, wanted);
}

int map_value_duration(int64_t *ns, const struct opt_reader *reader, weir_message *message)
{
    return quantity_duration(ns, reader->value)
               ? 0
               : map_value_refuse(message, reader, "a duration such as 500ms, 30s, 5m or 1.5h");
}

int map_value_count(int64_t *n, const struct opt_reader *reader, weir_message *message, int64_t low,
                    int64_t high)
{
    char wanted[80];

    if (quantity_count(n, reader->value, low, high))
        return 0;
    snprintf(wanted, sizeof(wanted), "a number from %lld to %lld", (long long)low, (long long)high);
    return map_value_refuse(message, reader, wanted);
}

/* N, +N, N% of the CPUs, or a file that says so. */
int map_value_jobs(struct map_options *p, const struct opt_reader *reader, weir_message *message)
{
    char wanted[60];

    p->jobs_given = true;
    p->engine.jobs_file = NULL;
    if (jobs_parse(&p->engine.jobs, reader->value))
        return 0;
    if (access(reader->value, R_OK) == 0) {
        p->engine.jobs_file = reader->value;
        if (jobs_from_file(&p->engine.jobs, reader->value))
            return 0;
        return map_value_refuse(message, reader, "a file whose first line is a number, +N or N%");
    }
    if (strchr(reader->value, '%'))
        return map_value_refuse(message, reader, "a number, or a share of the CPUs such as 200%");
    snprintf(wanted, sizeof(wanted), "a number from 1 to %d, +N, N%%, or a file", SLOTS_MAX);
    return map_value_refuse(message, reader, wanted);
}

/* Text with \n, \t, \r, \0, \\ and \xHH resolved, to be freed; *length may count zero bytes. NULL: it is none, or
 * there is no memory. */
static char *unescape(size_t *length, const char *text)
{
    static const char letters[] = "ntr0\\", meanings[] = "\n\t\r\0\\";
    char *out = malloc(strlen(text) + 1);
    unsigned byte;

    for (*length = 0; out && *text; text++) {
        const char *known = *text == '\\' && text[1] ? strchr(letters, text[1]) : NULL;
        if (known) {
            out[(*length)++] = meanings[known - letters];
            text++;
        } else if (text[0] == '\\' && text[1] == 'x' && sscanf(text + 2, "%2x", &byte) == 1 &&
                   isxdigit((unsigned char)text[3])) {
            out[(*length)++] = (char)byte;
            text += 3;
        } else {
            out[(*length)++] = *text;
        }
    }
    if (out)
        out[*length] = 0;
    if (out && !*length) {
        free(out);
        out = NULL;
    }
    return out;
}

int map_value_record_end(struct map_options *p, const struct opt_reader *reader,
                         weir_message *message)
{
    free(p->record_end);
    p->record_end = unescape(&p->feed.record_end_length, reader->value);
    p->feed.record_end = p->record_end;
    return p->record_end ? 0 : map_value_refuse(message, reader, "a text such as \\r\\n or ---");
}

/* One byte, or for plain lines several. */
int map_value_delimiter(struct map_options *p, const struct opt_reader *reader,
                        weir_message *message)
{
    size_t length = 0;

    free(p->delimiter);
    p->delimiter = unescape(&length, reader->value);
    if (!p->delimiter || memchr(p->delimiter, 0, length) || strpbrk(p->delimiter, "\n\""))
        return map_value_refuse(message, reader, "one byte or more, without \\n; \\t is a tab");
    p->syntax.delimiter = length == 1 ? p->delimiter[0] : 0;
    p->syntax.delimiter_text = length > 1 ? p->delimiter : NULL;
    return 0;
}

int map_value_bytes(int64_t *n, const struct opt_reader *reader, weir_message *message)
{
    return quantity_bytes(n, reader->value) && *n > 0
               ? 0
               : map_value_refuse(message, reader, "a size such as 512k, 10M or 2G");
}

/* T, or N% of what commands usually take. */
int map_value_timeout(struct engine_options *opt, const struct opt_reader *reader,
                      weir_message *message)
{
    size_t length = strlen(reader->value);
    char digits[16] = "";

    opt->timeout_ns = opt->timeout_percent = 0;
    if (length && length < sizeof(digits) && reader->value[length - 1] == '%') {
        memcpy(digits, reader->value, length - 1);
        if (quantity_count(&opt->timeout_percent, digits, 100, 1000000))
            return 0;
        return map_value_refuse(message, reader, "a share of at least 100%");
    }
    if (quantity_duration(&opt->timeout_ns, reader->value) && opt->timeout_ns == 0)
        return map_value_refuse(message, reader,
                                "a duration that is not zero; leave it out for none");
    return opt->timeout_ns ? 0 : map_value_duration(&opt->timeout_ns, reader, message);
}

int map_value_load(double *out, const struct opt_reader *reader, weir_message *message)
{
    size_t length = strlen(reader->value);
    char *end;

    *out = strtod(reader->value, &end);
    if (length && end == reader->value + length - 1 && *end == '%') {
        *out = *out * wr_os_cpus() / 100;
        end++;
    }
    return length && !*end && *out > 0
               ? 0
               : map_value_refuse(message, reader,
                                  "a number of processes, or a share of the CPUs such as 80%");
}

/* cpu=50%, memory=10%, io=30% */
int map_value_pressure(struct gate_limits *gate, const struct opt_reader *reader,
                       weir_message *message)
{
    static const char *const names[] = { "cpu", "memory", "io" };
    const char *equals = strchr(reader->value, '=');
    char *end;

    for (int i = 0; i < 3 && equals; i++)
        if (!strncmp(reader->value, names[i], (size_t)(equals - reader->value)) &&
            strlen(names[i]) == (size_t)(equals - reader->value)) {
            gate->pressure_of = names[i];
            gate->pressure = strtod(equals + 1, &end);
            if (end > equals + 1 && (!*end || !strcmp(end, "%")) && gate->pressure > 0 &&
                gate->pressure <= 100)
                return 0;
        }
    return map_value_refuse(message, reader, "cpu=N%, memory=N% or io=N%");
}

/* "use auto, never or always" */
static int bad_choice(weir_message *message, const struct opt_reader *reader)
{
    const char *at = reader->found->choices;
    char list[120] = "";

    while (*at) {
        size_t word = strcspn(at, " "), used = strlen(list);
        const char *next = at + word + (at[word] == ' ');
        snprintf(list + used, sizeof(list) - used, "%s%.*s",
                 !used   ? ""
                 : *next ? ", "
                         : " or ",
                 (int)word, at);
        at = next;
    }
    return map_value_refuse(message, reader, list);
}

/* One of the option's choices: its place among them. */
int map_value_choice(int *out, const struct opt_reader *reader, weir_message *message)
{
    size_t length = strlen(reader->value);
    const char *at = reader->found->choices;

    for (int i = 0; *at; i++) {
        size_t word = strcspn(at, " ");
        if (word == length && !strncmp(at, reader->value, length)) {
            *out = i;
            return 0;
        }
        at += word;
        at += *at == ' ';
    }
    return bad_choice(message, reader);
}
