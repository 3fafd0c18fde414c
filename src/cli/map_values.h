/* weir map: what the values of its options may be. Each takes the value of the option that was read: 0, WEIR_ENOMEM, or
 * WEIR_EINVAL with a sentence that says what to use.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_MAP_VALUES_H
#define WR_CLI_MAP_VALUES_H

#include "cli/map_options.h"
#include "cli/opt/opt.h"

/* Refuses the value: "--retries x: use WANTED". */
int map_value_refuse(weir_message *message, const struct opt_reader *reader, const char *wanted);

int map_value_duration(int64_t *ns, const struct opt_reader *reader, weir_message *message);
int map_value_count(int64_t *n, const struct opt_reader *reader, weir_message *message, int64_t low,
                    int64_t high);
int map_value_jobs(struct map_options *p, const struct opt_reader *reader, weir_message *message);
int map_value_record_end(struct map_options *p, const struct opt_reader *reader,
                         weir_message *message);
int map_value_delimiter(struct map_options *p, const struct opt_reader *reader,
                        weir_message *message);
int map_value_bytes(int64_t *n, const struct opt_reader *reader, weir_message *message);
int map_value_timeout(struct engine_options *opt, const struct opt_reader *reader,
                      weir_message *message);
int map_value_load(double *out, const struct opt_reader *reader, weir_message *message);
int map_value_pressure(struct gate_limits *gate, const struct opt_reader *reader,
                       weir_message *message);
int map_value_choice(int *out, const struct opt_reader *reader, weir_message *message);

#endif
