/* Memory of a run: every allocation and map is counted, checked and given back; and the faults that
 * are counted down.
 *
 * Freed memory is filled with a pattern and held back for a while, so that a late write is found.
 * (Under ASan, which does this better, it is really freed.)
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "base/list.h"
#include "sim/sim.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef WR_ASAN
#include <sanitizer/asan_interface.h>
#define HELD_MAX 0
#else
#define ASAN_UNPOISON_MEMORY_REGION(memory, size) ((void)(memory))
#define HELD_MAX                                  256
#endif

#define LIVE  0x6c69766520626c6bu
#define FREED 0x6672656564206278u

enum { PATTERN = 0xdd, GUARDS_MAX = 2 };

struct block {           /* stands before the memory it describes, a multiple of 16 bytes long */
    struct wr_list node; /* in `live`; unlinked if allocated outside of a run, or freed */
    uint64_t state;      /* LIVE, FREED */
    uint64_t number;     /* of the allocation in its run, from 1 */
    size_t size;
    size_t unused;
};
_Static_assert(sizeof(struct block) % 16 == 0, "what follows must stay aligned");

struct map {
    char *memory;
    size_t size;
};

static struct wr_list live = { &live, &live };
static struct block *held[HELD_MAX + 1]; /* a ring: the oldest is at held_first */
static unsigned held_first, held_count;
static struct map *maps;
static size_t map_count, map_room;

bool wr_sim_fault(uint64_t *count, uint64_t fail_at)
{
    ++*count;
    if (fail_at == 0 || *count < fail_at || (*count > fail_at && !wr_sim.opt.sticky))
        return false;
    wr_sim.report.faults++;
    WR_SIM_LOG("meets a fault");
    return true;
}

/* ---- allocations ----------------------------------------------------------------------------- */

void *wr_os_alloc(size_t size)
{
    struct block *block;

    wr_sim_point();
    if (wr_sim.current && wr_sim_fault(&wr_sim.report.allocs, wr_sim.opt.fail_alloc))
        return NULL;
    block = calloc(1, sizeof(*block) + size);
    if (!block)
        return NULL;
    block->state = LIVE;
    block->size = size;
    wr_list_init(&block->node);
    if (wr_sim.current) {
        block->number = wr_sim.report.allocs;
        wr_list_append(&live, &block->node);
    }
    return block + 1;
}

/* Frees the block that was held longest; answers its number if it was written to meanwhile, else 0. */
static uint64_t held_drop(void)
{
    struct block *block = held[held_first];
    const unsigned char *memory = (const unsigned char *)(block + 1);
    uint64_t spoilt = block->state != FREED ? block->number : 0;

    for (size_t i = 0; i < block->size && !spoilt; i++)
        if (memory[i] != PATTERN)
            spoilt = block->number;
    held[held_first] = NULL;
    held_first = (held_first + 1) % (HELD_MAX + 1);
    held_count--;
    free(block);
    return spoilt;
}

static void held_check(unsigned keep)
{
    while (held_count > keep) {
        uint64_t spoilt = held_drop();

        if (spoilt && wr_sim.current)
            weir_sim_fail("allocation #%llu was written to after it was freed",
                          (unsigned long long)spoilt);
    }
}

void *wr_os_alloc_raw(size_t size)
{
    void *memory = wr_os_alloc(size);

    return memory ? memset(memory, 0xa5, size) : NULL; /* so that nothing counts on zeros */
}

void wr_os_free(void *memory)
{
    struct block *block;

    wr_sim_point();
    if (!memory)
        return;
    block = (struct block *)memory - 1;
    if (block->state != LIVE && wr_sim.current)
        weir_sim_fail("free of %p, which is not allocated", memory);
    WR_ASSERT(block->state == LIVE);
    memset(memory, PATTERN, block->size);
    block->state = FREED;
    wr_list_remove(&block->node);
    held[(held_first + held_count) % (HELD_MAX + 1)] = block;
    held_count++;
    held_check(wr_sim.current ? HELD_MAX : 0);
}

/* ---- maps ------------------------------------------------------------------------------------ */

static void map_add(char *memory, size_t size)
{
    if (map_count == map_room) {
        size_t room = map_room ? 2 * map_room : 64;
        struct map *larger = realloc(maps, room * sizeof(*maps));
        WR_ASSERT(larger != NULL);
        maps = larger;
        map_room = room;
    }
    maps[map_count++] = (struct map){ memory, size };
}

void *wr_os_map(size_t size)
{
    void *memory;

    wr_sim_point();
    if (wr_sim.current && wr_sim_fault(&wr_sim.report.maps, wr_sim.opt.fail_map))
        return NULL;
    memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    madvise(memory, size, MADV_NOHUGEPAGE);
    if (wr_sim.current)
        map_add(memory, size);
    return memory;
}

static struct map *map_around(const char *memory, size_t size)
{
    for (size_t i = 0; i < map_count; i++)
        if (memory >= maps[i].memory && size <= maps[i].size &&
            (size_t)(memory - maps[i].memory) <= maps[i].size - size)
            return &maps[i];
    return NULL;
}

bool wr_sim_memory_maps(const void *address)
{
    return map_around(address, 1) != NULL;
}

/* Unmaps a part of a map, whichever; what stays of the map on either side is remembered. */
static void map_cut(struct map *map, char *memory, size_t size)
{
    struct map before = { map->memory, (size_t)(memory - map->memory) };
    struct map after = { memory + size, map->size - before.size - size };

    *map = maps[--map_count];
    if (before.size > 0)
        map_add(before.memory, before.size);
    if (after.size > 0)
        map_add(after.memory, after.size);
}

void wr_os_unmap(void *memory, size_t size)
{
    struct map *map;

    wr_sim_point();
    map = map_around(memory, size);
    if (!map && wr_sim.current)
        weir_sim_fail("unmap of %zu bytes at %p, which are not mapped", size, memory);
    if (map)
        map_cut(map, memory, size);
    ASAN_UNPOISON_MEMORY_REGION(memory, size);
    WR_ASSERT(munmap(memory, size) == 0);
}

/* Only the first two are real: each costs a system call, and there are many runs. */
static void guard(char *first, size_t size, size_t stride, size_t count)
{
    for (size_t i = 0; i < count && i < GUARDS_MAX; i++)
        WR_ASSERT(mprotect(first + i * stride, size, PROT_NONE) == 0);
}

/* Half of all runs have an old kernel. */
bool wr_os_guard_light(void *first, size_t size, size_t stride, size_t count)
{
    wr_sim_point();
    if (wr_sim.report.seed % 2)
        return false;
    guard(first, size, stride, count);
    return true;
}

int wr_os_guard(void *first, size_t size, size_t stride, size_t count)
{
    wr_sim_point();
    if (wr_sim.current && wr_sim_fault(&wr_sim.report.guards, wr_sim.opt.fail_guard))
        return -ENOMEM;
    guard(first, size, stride, count);
    return 0;
}

void wr_os_discard(void *memory, size_t size)
{
    wr_sim_point();
    madvise(memory, size, MADV_DONTNEED);
}

size_t wr_os_page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* ---- the end of a run ------------------------------------------------------------------------ */

void wr_sim_list_add(char *out, size_t size, const char *format, ...)
{
    size_t used = strlen(out);
    va_list args;

    if (used > 0)
        used += (size_t)snprintf(out + used, size - used, ", ");
    if (used >= size)
        return;
    va_start(args, format);
    vsnprintf(out + used, size - used, format, args);
    va_end(args);
}

uint64_t wr_sim_memory_spoilt(void)
{
    uint64_t spoilt = 0;

    while (held_count > 0) {
        uint64_t number = held_drop();

        spoilt = spoilt ? spoilt : number;
    }
    return spoilt;
}

void wr_sim_memory_left(char *out, size_t size)
{
    const struct block *first = WR_CONTAINER(live.next, struct block, node);
    size_t count = 0;

    wr_list_each(node, &live)
        count++;
    if (count > 0)
        wr_sim_list_add(out, size, "%zu allocation%s (first: #%llu of %zu bytes)", count,
                        count == 1 ? "" : "s", (unsigned long long)first->number, first->size);
    if (map_count > 0)
        wr_sim_list_add(out, size, "%zu map%s (first: %zu bytes)", map_count,
                        map_count == 1 ? "" : "s", maps[0].size);
}

void wr_sim_memory_reset(void)
{
    wr_list_each_safe(node, &live)
        free(WR_CONTAINER(node, struct block, node));
    wr_list_init(&live);
    wr_sim_memory_spoilt();
    for (size_t i = 0; i < map_count; i++) {
        ASAN_UNPOISON_MEMORY_REGION(maps[i].memory, maps[i].size);
        munmap(maps[i].memory, maps[i].size);
    }
    map_count = 0;
}
