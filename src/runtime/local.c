/* Task locals: a context is the settings that a task or thread sees, one for each key.
 *
 * Tasks share the context they were submitted in, so a context with several owners is never changed: setting a
 * value there makes a copy. Settings are shared by the copies, and their values dropped with the last one.
 * SPDX-License-Identifier: MIT */
#include "runtime/local.h"

#include "base/os.h"
#include "runtime/runtime.h"

#include <weir/error.h>
#include <weir/local.h>

struct setting {
    const weir_local *key;
    void *value;
    _Atomic uint32_t references; /* contexts that have it */
};

struct wr_locals {
    _Atomic uint32_t references; /* tasks and threads that have it; a single one may change it */
    uint32_t count;
    struct setting *setting[];
};

static void setting_release(struct setting *setting)
{
    if (!setting || wr_sub(&setting->references, 1, acq_rel) > 1)
        return;
    if (setting->key->drop)
        setting->key->drop(setting->value);
    wr_os_free(setting);
}

struct wr_locals *wr_locals_ref(struct wr_locals *locals)
{
    if (locals)
        wr_add(&locals->references, 1, relaxed);
    return locals;
}

struct wr_locals *wr_locals_capture(void)
{
    return wr_locals_ref(*wr_context_slot());
}

struct wr_locals *const *wr_locals_place(void)
{
    return (struct wr_locals *const *)wr_context_slot();
}

void wr_locals_release(struct wr_locals *locals)
{
    if (!locals || wr_sub(&locals->references, 1, acq_rel) > 1)
        return;
    for (uint32_t i = locals->count; i-- > 0;) /* the newest first */
        setting_release(locals->setting[i]);
    wr_os_free(locals);
}

struct wr_locals *wr_locals_install(struct wr_locals *locals)
{
    void **slot = wr_context_slot();
    struct wr_locals *former = *slot;

    *slot = locals;
    return former;
}

/* Where the key's setting stands, or would be added. */
static uint32_t place_of(const struct wr_locals *locals, const weir_local *key)
{
    uint32_t i = 0;

    while (locals && i < locals->count && locals->setting[i]->key != key)
        i++;
    return i;
}

void *weir_local_get(const weir_local *key)
{
    const struct wr_locals *locals = *wr_context_slot();
    uint32_t place = place_of(locals, key);

    return locals && place < locals->count ? locals->setting[place]->value : NULL;
}

static struct setting *setting_new(const weir_local *key, void *value)
{
    struct setting *setting = wr_os_alloc(sizeof(*setting));

    if (!setting)
        return NULL;
    setting->key = key;
    setting->value = value;
    wr_store(&setting->references, 1, relaxed);
    return setting;
}

/* A copy in which `setting` has that place: in place of another, or behind all. NULL without memory. */
static struct wr_locals *copy_with(const struct wr_locals *locals, uint32_t place,
                                   struct setting *setting)
{
    uint32_t count = locals ? locals->count : 0, size = count + (place == count);
    struct wr_locals *copy = wr_os_alloc(sizeof(*copy) + size * sizeof(copy->setting[0]));

    if (!copy)
        return NULL;
    wr_store(&copy->references, 1, relaxed);
    copy->count = size;
    for (uint32_t i = 0; i < count; i++) {
        copy->setting[i] = locals->setting[i];
        if (i != place)
            wr_add(&copy->setting[i]->references, 1, relaxed);
    }
    copy->setting[place] = setting;
    return copy;
}

/* Whether no task shares the context. Pairs with the release by the last that did. */
static bool is_alone(struct wr_locals *locals)
{
    return wr_load(&locals->references, acquire) == 1;
}

int weir_local_set(const weir_local *key, void *value)
{
    struct wr_locals *locals = *wr_context_slot(), *copy;
    struct setting *setting, *former;
    uint32_t place;

    if (!key)
        return WEIR_EINVAL;
    setting = setting_new(key, value);
    if (!setting)
        return WEIR_ENOMEM;
    place = place_of(locals, key);
    if (locals && place < locals->count && is_alone(locals)) {
        former = locals->setting[place];
        locals->setting[place] = setting;
        setting_release(former);
        return 0;
    }
    copy = copy_with(locals, place, setting);
    if (!copy) {
        wr_os_free(setting);
        return WEIR_ENOMEM;
    }
    wr_locals_release(wr_locals_install(copy));
    return 0;
}

void weir_local_clear(void)
{
    wr_locals_release(wr_locals_install(NULL));
}
