/* Every block of the pages that show commands is run, and prints what it says.
 * SPDX-License-Identifier: MIT */
#include "command/command.h"

#include <stdio.h>
#include <stdlib.h>

/* One block: `$ command`, and what it prints, with four blanks before each line. */
struct block {
    char command[1200], output[2000];
    int line;
};

static const char *const pages[] = { "from-parallel.md", "from-xargs.md", "map.md" };

/* The next block of a page; false: there are no more. */
static bool next_block(struct block *block, FILE *page, int *line)
{
    char text[1200];
    bool inside = false;

    *block = (struct block){ .line = 0 };
    while (fgets(text, sizeof(text), page)) {
        ++*line;
        if (!inside && !strncmp(text, "    $ ", 6)) {
            inside = true;
            block->line = *line;
            snprintf(block->command, sizeof(block->command), "%s", text + 6);
        } else if (inside && !strncmp(text, "    ", 4)) {
            strncat(block->output, text + 4, sizeof(block->output) - strlen(block->output) - 1);
        } else if (inside) {
            return true;
        }
    }
    return inside;
}

/* Compares its output: standard output, then the messages. */
static void try_block(const struct block *block, const char *page)
{
    char line[1400], printed[4000];
    const struct ran *r;

    snprintf(line, sizeof(line), "rm -rf tried; mkdir tried; cd tried; %s", block->command);
    r = SCRIPT(NULL, line);
    snprintf(printed, sizeof(printed), "%s%s", r->out, r->err);
    if (strcmp(printed, block->output))
        fail_msg("docs/%s:%d: %sprints:\n%sexpected:\n%s", page, block->line, block->command,
                 printed, block->output);
}

static void try_page(const char *name, int least)
{
    char path[500];
    FILE *page;
    struct block block;
    int line = 0, blocks = 0;

    snprintf(path, sizeof(path), "%s/docs/%s", WEIR_SOURCE, name);
    page = fopen(path, "r");
    assert_non_null(page);
    for (; next_block(&block, page, &line); blocks++)
        try_block(&block, name);
    fclose(page);
    assert_true(blocks >= least); /* or the pages are not what they were */
}

static void test_from_parallel_shows_what_happens(void)
{
    try_page(pages[0], 15);
}

static void test_from_xargs_shows_what_happens(void)
{
    try_page(pages[1], 8);
}

static void test_map_shows_what_happens(void)
{
    try_page(pages[2], 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_from_parallel_shows_what_happens),
        TEST(test_from_xargs_shows_what_happens),
        TEST(test_map_shows_what_happens),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
