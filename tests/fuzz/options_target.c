/* Fuzzing: options of weir map, any words; one per line.
 * SPDX-License-Identifier: MIT */
#include "cli/map_options.h"
#include "fuzz/fuzz_target.h"

#include <stdlib.h>
#include <string.h>

const char *const fuzz_words[] = {
    "-j",          "4",      "--jobs=",     "+2",       "50%",     "--timeout",  "200%",
    "1.5h",        "--halt", "soon,fail=3", "--rate",   "a=1/s:2", "--limit",    "x*=3",
    "-n",          "--pipe", "--block",     "64k",      "-d",      "\\t",        "--record-end",
    "\\x00",       "--csv",  "--jsonl",     "-k",       "--tag",   "--files",    "d",
    "--if-exists", "new",    "--",          "echo",     ":::",     ":::+",       "a",
    "\n",          "\n",     "\n",          "--env",    "X=1",     "--mem-free", "1G",
    "--pressure",  "cpu=5%", "-P",          "--joblog", "=",       NULL
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { WORDS_MAX = 64 };
    char *text = fuzz_text(data, size), *words[WORDS_MAX + 1], *at = text, *rest;
    struct map_options opt;
    weir_message message = { "" };
    size_t count = 0;

    if (!text)
        return 0;
    while (count < WORDS_MAX && (words[count] = strtok_r(at, "\n", &rest))) {
        at = NULL;
        count++;
    }
    words[count] = NULL;
    map_options_read(&opt, words, &message);
    map_options_fini(&opt);
    free(text);
    return 0;
}
