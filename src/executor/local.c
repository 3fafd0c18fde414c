/* Task locals as a chain of settings, newest first. A setting never changes, so a chain can be shared by
 * the task that grew it and all that were submitted from it.
 * SPDX-License-Identifier: MIT */
#include "executor/local.h"

#include "base/os.h"
#include "runtime/runtime.h"

#include <weir/error.h>
#include <weir/local.h>

struct wr_locals {
    struct wr_locals *before;
    const weir_local *key;
    void *value;
    _Atomic uint32_t references;
};

struct wr_locals *wr_locals_capture(void)
{
    struct wr_locals *locals = *wr_context_slot();

    if (locals)
        wr_add(&locals->references, 1, relaxed);
    return locals;
}

void wr_locals_release(struct wr_locals *locals)
{
    while (locals && wr_sub(&locals->references, 1, acq_rel) == 1) {
        struct wr_locals *before = locals->before;
        if (locals->key->drop)
            locals->key->drop(locals->value);
        wr_os_free(locals);
        locals = before;
    }
}

struct wr_locals *wr_locals_install(struct wr_locals *locals)
{
    void **slot = wr_context_slot();
    struct wr_locals *former = *slot;

    *slot = locals;
    return former;
}

void *weir_local_get(const weir_local *key)
{
    const struct wr_locals *locals = *wr_context_slot();

    while (locals && locals->key != key)
        locals = locals->before;
    return locals ? locals->value : NULL;
}

int weir_local_set(const weir_local *key, void *value)
{
    struct wr_locals *locals;

    if (!key)
        return WEIR_EINVAL;
    locals = wr_os_alloc(sizeof(*locals));
    if (!locals)
        return WEIR_ENOMEM;
    locals->key = key;
    locals->value = value;
    wr_store(&locals->references, 1, relaxed);
    locals->before = wr_locals_install(locals);
    return 0;
}

void weir_local_clear(void)
{
    wr_locals_release(wr_locals_install(NULL));
}
