/* Files of cells: how they are made, and what is refused.
 *
 * A file is complete before it has a name. So a file that has a name and is not valid is not ours, or damaged: it is refused,
 * and never repaired or overwritten.
 * SPDX-License-Identifier: MIT */
#include "store/host.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { NAME_MAX_ENCODED = 200, NAME_KEPT = 150 };

void wr_host_say(weir_message *message, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    if (message)
        vsnprintf(message->text, sizeof(message->text), format, args);
    va_end(args);
}

/* FNV-1a: against accidents, not against attacks; only the user can write the file. */
static uint64_t sum_of(uint64_t sum, const void *bytes, size_t size)
{
    const unsigned char *byte = bytes;

    for (size_t i = 0; i < size; i++)
        sum = (sum ^ byte[i]) * 0x100000001b3u;
    return sum;
}

uint64_t wr_host_header_sum(const struct wr_host_file *file)
{
    uint64_t sum = sum_of(0xcbf29ce484222325u, &file->header, offsetof(struct wr_host_header, sum));

    return sum_of(sum, file->name,
                  file->header.name_length <= WEIR_KEY_MAX ? file->header.name_length : 0);
}

/* "guard-" and the name, with bytes that a file name should not have as %XX; long names end in a sum instead. */
static char *file_name_of(const char *name)
{
    size_t length = 6, size = NAME_MAX_ENCODED + 8;
    char *out = wr_os_alloc(size);

    if (!out)
        return NULL;
    memcpy(out, "guard-", length);
    for (const char *c = name; *c; c++) {
        bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                     (*c >= '0' && *c <= '9') || *c == '-' || *c == '_' || *c == '.';
        if (length + 4 > NAME_MAX_ENCODED) {
            snprintf(out + NAME_KEPT, size - NAME_KEPT, "~%016llx",
                     (unsigned long long)sum_of(0xcbf29ce484222325u, name, strlen(name)));
            return out;
        }
        length += (size_t)snprintf(out + length, size - length, plain ? "%c" : "%%%02X",
                                   plain ? *c : (unsigned char)*c);
    }
    return out;
}

static size_t stride_of(uint64_t state_size)
{
    return (size_t)(state_size + 63) / 64 * 64;
}

static size_t file_size_of(uint64_t state_size)
{
    return sizeof(struct wr_host_file) + 2 * stride_of(state_size);
}

/* ---- making ---------------------------------------------------------------------------------- */

static void fill(struct wr_host_file *file, const struct wr_host_cell *cell,
                 const weir_cell_spec *spec)
{
    struct wr_host_header *h = &file->header;

    h->magic = WR_HOST_MAGIC;
    h->layout = WR_HOST_LAYOUT;
    h->kind = spec->kind;
    h->version = spec->version;
    h->name_length = (uint32_t)strlen(spec->name);
    h->state_size = spec->state_size;
    h->file_size = file_size_of(spec->state_size);
    memcpy(h->machine, cell->store->machine, sizeof(h->machine));
    memcpy(file->name, spec->name, h->name_length);
    h->birth = wr_os_random();
    h->sum = wr_host_header_sum(file);
    spec->init(file->state, spec->arg);
}

/* Makes the file and gives it its name. -EEXIST: another process was faster. */
static int make(struct wr_host_cell *cell, const weir_cell_spec *spec)
{
    size_t size = file_size_of(spec->state_size);
    int fd = wr_os_file_make(cell->store->dir, size), rc;
    struct wr_host_file *file;

    if (fd < 0)
        return fd;
    file = wr_os_file_map(fd, size);
    if (!file) {
        wr_os_close(fd);
        return WEIR_ENOMEM;
    }
    fill(file, cell, spec);
    rc = wr_os_file_name(fd, cell->store->dir, cell->file_name);
    wr_os_unmap(file, size);
    wr_os_close(fd);
    return rc;
}

/* ---- checking -------------------------------------------------------------------------------- */

static int refuse(const struct wr_host_cell *cell, weir_message *message, const char *why)
{
    wr_host_say(message, "%.200s/%.200s: %s", cell->store->path, cell->file_name, why);
    return WEIR_EFOREIGN;
}

static bool is_of_this_boot(const struct wr_host_cell *cell, const struct wr_host_header *h)
{
    return memcmp(h->machine, cell->store->machine, 16) == 0;
}

static int check_header(struct wr_host_cell *cell, const struct wr_host_file *file, int64_t size,
                        const weir_cell_spec *spec, weir_message *message)
{
    const struct wr_host_header *h = &file->header;

    if (h->magic != WR_HOST_MAGIC)
        return refuse(cell, message, "not a guard of weir");
    if (h->layout != WR_HOST_LAYOUT || h->version != spec->version)
        return refuse(cell, message, "made by another version of weir");
    if (h->name_length > WEIR_KEY_MAX || h->state_size > INT32_MAX ||
        wr_host_header_sum(file) != h->sum || h->file_size != (uint64_t)size ||
        h->file_size != file_size_of(h->state_size))
        return refuse(cell, message, "damaged: its header is not valid");
    if (strcmp(file->name, spec->name) != 0)
        return refuse(cell, message, "it belongs to a guard of another name");
    if (memcmp(h->machine, cell->store->machine, sizeof(h->machine)) != 0)
        return refuse(
            cell, message,
            "made in another pid namespace, whose processes cannot be seen from this one");
    return 0;
}

/* What is wrong with the values by which other bytes are found, or permits counted; NULL: nothing. Under the lock. */
static const char *fault_of(struct wr_host_cell *cell, const weir_cell_spec *spec)
{
    struct wr_host_file *file = cell->file;
    uint64_t active = wr_load(&file->active, relaxed), head = wr_load(&file->head, relaxed);
    int64_t used = 0, held;

    if (active > 1 || !spec->is_sound(file->state + active * cell->stride, file->header.state_size))
        return "damaged: its state is not valid";
    if (wr_load(&file->tail, relaxed) - head > WR_LINE)
        return "damaged: its line of waiters is not valid";
    for (int i = 0; i < WR_LINE; i++)
        if (wr_load(&file->line[i], relaxed) > WR_SEATS)
            return "damaged: its line of waiters is not valid";
    for (int i = 0; i < WR_SEATS; i++) {
        held = wr_load(&file->seat[i].held, relaxed);
        if (held < 0 || held > WEIR_PERMITS_MAX)
            return "damaged: its number of permits in use is not valid";
        used += held;
    }
    if (used != wr_load(&file->used, relaxed))
        return "damaged: the permits of its processes do not add up";
    wr_host_line_mend(cell);
    return NULL;
}

static int check_rest(struct wr_host_cell *cell, const weir_cell_spec *spec, weir_message *message)
{
    const char *fault;
    int rc = wr_host_lock(&cell->base); /* from here on it is the newest file */

    if (rc)
        return rc;
    fault = fault_of(cell, spec);
    wr_host_unlock(&cell->base);
    return fault ? refuse(cell, message, fault) : 0;
}

/* With the file locked: maps and checks it. 1: it was of another boot, and is removed. */
static int adopt(struct wr_host_cell *cell, const weir_cell_spec *spec, weir_message *message)
{
    int64_t size = wr_os_file_size(cell->fd);
    int rc;

    if (size < (int64_t)sizeof(struct wr_host_file))
        return size < 0 ? (int)size : refuse(cell, message, "not a guard of weir");
    cell->file = wr_os_file_map(cell->fd, (size_t)size);
    if (!cell->file)
        return WEIR_ENOMEM;
    cell->stride = stride_of(cell->file->header.state_size);
    if (cell->file->header.magic == WR_HOST_MAGIC &&
        wr_host_header_sum(cell->file) == cell->file->header.sum &&
        !is_of_this_boot(cell, &cell->file->header)) {
        if (!wr_os_file_lock(cell->fd, true) && wr_os_file_has_name(cell->fd))
            wr_os_file_remove(cell->store->dir, cell->file_name);
        rc = 1;
    } else {
        rc = check_header(cell, cell->file, size, spec, message);
        rc = rc ? rc : check_rest(cell, spec, message);
    }
    if (rc)
        wr_os_unmap(cell->file, (size_t)size);
    return rc;
}

/* One attempt. 1: try again. */
static int try_open(struct wr_host_cell *cell, const weir_cell_spec *spec, weir_message *message)
{
    int rc;

    cell->fd = wr_os_file_open(cell->store->dir, cell->file_name);
    if (cell->fd == -ENOENT && spec->create) {
        rc = make(cell, spec);
        return rc && rc != -EEXIST ? rc : 1;
    }
    if (cell->fd == -ENOENT)
        return WEIR_ENOGUARD;
    if (cell->fd < 0)
        return cell->fd == -EPERM ? refuse(cell, message, "not a plain file of this user")
                                  : cell->fd;
    rc = wr_os_file_lock(cell->fd, false); /* it is not removed meanwhile */
    if (!rc && !wr_os_file_has_name(cell->fd))
        rc = 1; /* it was removed while we waited */
    if (!rc)
        rc = adopt(cell, spec, message);
    if (rc)
        wr_os_close(cell->fd);
    return rc;
}

int wr_host_file_open(struct wr_host_cell *cell, const weir_cell_spec *spec, weir_message *message)
{
    char *name = file_name_of(spec->name);
    int rc;

    if (!name)
        return WEIR_ENOMEM;
    cell->file_name = name;
    do
        rc = try_open(cell, spec, message);
    while (rc > 0);
    if (!rc)
        return 0;
    if (message && !message->text[0])
        wr_host_say(message, "%.200s/%.200s: %s", cell->store->path, name, weir_strerror(rc));
    wr_os_free(name);
    return rc;
}

void wr_host_file_close(struct wr_host_cell *cell)
{
    wr_os_unmap(cell->file, (size_t)cell->file->header.file_size);
    wr_os_close(cell->fd);
    wr_os_free((void *)cell->file_name);
}
