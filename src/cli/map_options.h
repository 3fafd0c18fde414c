/* weir map: its options, as they were given.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_MAP_OPTIONS_H
#define WR_CLI_MAP_OPTIONS_H

#include "cli/engine/engine.h"
#include "cli/input/feed.h"

/* In the order of the table, and of the functions that read them. */
enum map_option {
    MAP_INPUT = 1,
    MAP_NUL,
    MAP_CSV,
    MAP_TSV,
    MAP_JSONL,
    MAP_NO_HEADER,
    MAP_DELIMITER,
    MAP_RECORD_END,
    MAP_SHUF,
    MAP_GROUP_BY,
    MAP_JOBS,
    MAP_PER_GROUP,
    MAP_LIMIT,
    MAP_RATE,
    MAP_WEIGHT,
    MAP_MAX_WAIT,
    MAP_LOAD,
    MAP_MEM_FREE,
    MAP_PRESSURE,
    MAP_TIMEOUT,
    MAP_GRACE,
    MAP_RETRIES,
    MAP_BACKOFF,
    MAP_BACKOFF_MAX,
    MAP_DELAY,
    MAP_COOL_CODE,
    MAP_COOL_DOWN,
    MAP_CWD,
    MAP_SHELL,
    MAP_STDIN,
    MAP_NO_APPEND,
    MAP_RECORDS,
    MAP_FIT,
    MAP_PIPE,
    MAP_BLOCK,
    MAP_ENV,
    MAP_TTY,
    MAP_KEEP_ORDER,
    MAP_TAG,
    MAP_TRACE,
    MAP_LINE_BUFFER,
    MAP_FILES,
    MAP_RESULTS,
    MAP_JOURNAL,
    MAP_RESUME,
    MAP_RETRY_FAILED,
    MAP_IF_EXISTS,
    MAP_SHOW_RETRIES,
    MAP_PROGRESS,
    MAP_HALT,
    MAP_DRY_RUN,
    MAP_HELP,
    MAP_OPTIONS,
};

struct map_options {
    struct engine_options engine;
    struct feed_options feed;
    struct record_syntax syntax;
    bool dry_run, help;
    bool given[MAP_OPTIONS]; /* by enum map_option */
    bool no_header, jobs_given;
    bool pipe;
    int64_t records, block;       /* -n, --block; 0: not given */
    char **lists;                 /* from ::: on; NULL: none */
    char **words;                 /* the command */
    const char **inputs;          /* of -a, as many as feed.input_count */
    char **env;                   /* of --env, as many as engine.env_count */
    char *record_end, *delimiter; /* with escapes resolved */
    weir_message *message;
};

/* Reads the arguments after `weir map`. WEIR_EINVAL with a sentence. To be given back in any case. */
int map_options_read(struct map_options *out, char **argv, weir_message *message);
void map_options_fini(struct map_options *options);

/* Refuses options that have no meaning together, or not on this machine; for map_options_read. */
int map_options_check(const struct map_options *options, weir_message *message);

#endif
