/* The keys of a guard of a fleet.
 * SPDX-License-Identifier: MIT */
#include "redis/cell.h"

#include "base/os.h"

#include <stdio.h>
#include <string.h>

/* Braces in a name would end the hash tag early: they, and the percent sign, become %XX. */
static size_t escape(char *out, const char *name)
{
    size_t used = 0;

    for (; *name; name++)
        if (*name == '{' || *name == '}' || *name == '%')
            used += (size_t)sprintf(out + used, "%%%02X", (unsigned char)*name);
        else
            out[used++] = *name;
    out[used] = '\0';
    return used;
}

/* weir:{name}:kind; of an application: weir:{name-application}:kind. */
bool wr_cell_make_keys(struct wr_fleet_cell *cell, const char *name)
{
    static const char *const permits[WR_KEYS] = { "cfg", "held", "info", "line", "wants", "audit" };
    static const char *const timed[WR_KEYS] = { "cfg", "use", "log", "line", "wants", "audit" };
    bool is_timed = cell->kind == WEIR_GUARD_RATE || cell->kind == WEIR_GUARD_FREQUENCY;
    const char *application = cell->fleet->application;
    size_t most = 3 * (strlen(name) + (application ? strlen(application) + 1 : 0)) + 32;
    char *tag = wr_os_alloc(most);
    bool made = true;
    size_t used;

    if (!tag)
        return false;
    used = escape(tag, name);
    if (application) {
        tag[used++] = '-';
        escape(tag + used, application);
    }
    for (int i = 0; i < WR_KEYS; i++) {
        wr_os_free(cell->key[i]);
        cell->key[i] = wr_os_alloc(strlen(tag) + 32);
        if (!cell->key[i]) {
            made = false;
            break;
        }
        cell->key_size[i] =
            (size_t)sprintf(cell->key[i], "weir:{%s}:%s", tag, (is_timed ? timed : permits)[i]);
    }
    wr_os_free(tag);
    return made;
}

int wr_cell_keys(struct wr_words *words, const struct wr_fleet_cell *cell, int count)
{
    for (int i = 0; i < count; i++)
        wr_words_bytes(words, cell->key[i], cell->key_size[i]);
    return count;
}
