/* Contexts: what the calling thread or task sees, shared with the tasks submitted from it.
 * SPDX-License-Identifier: MIT */
#ifndef WR_RUNTIME_LOCAL_H
#define WR_RUNTIME_LOCAL_H

struct wr_locals;

/* The caller's present context, with a reference; NULL: nothing was set, which is the common case. */
struct wr_locals *wr_locals_capture(void);
void wr_locals_release(struct wr_locals *locals);

/* One more reference; NULL is fine. */
struct wr_locals *wr_locals_ref(struct wr_locals *locals);

/* The place of the caller's context: the same for as long as the same body runs. */
struct wr_locals *const *wr_locals_place(void);

/* Makes `locals`, whose reference moves, the caller's context; answers the former one. */
struct wr_locals *wr_locals_install(struct wr_locals *locals);

#endif
