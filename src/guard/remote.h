/* Guards on a server: the same calls, each of which is one of the store's.
 * SPDX-License-Identifier: MIT */
#ifndef WR_GUARD_REMOTE_H
#define WR_GUARD_REMOTE_H

#include "base/lock.h"
#include "guard/guard.h"

/* What this process knows of the guard. `made` is fixed; `set` as last seen, under the lock. */
struct wr_remote {
    const weir_remote_ops *ops;
    struct wr_lock lock;
    struct wr_settings made, set;
};

/* In place of open and attach. */
int wr_remote_open(struct weir_guard *guard, const weir_guard_options *opt,
                   const struct wr_settings *set, weir_message *message) WEIR_PARKS;
void wr_remote_close(struct weir_guard *guard);

/* Copies of the settings that it was made with, and of the present ones as last seen. */
void wr_remote_settings(struct weir_guard *guard, struct wr_settings *made,
                        struct wr_settings *set);

int wr_remote_enter(weir_permit *out, struct weir_guard *guard, int64_t n,
                    weir_time deadline) WEIR_PARKS;
int64_t wr_remote_reserve(weir_permit *out, struct weir_guard *guard, int64_t n,
                          int64_t patience_ns) WEIR_PARKS;
int wr_remote_leave(weir_permit *permit, int error);
int wr_remote_release(weir_permit *permit);
int64_t wr_remote_drain(struct weir_guard *guard) WEIR_PARKS;
int wr_remote_change(struct weir_guard *guard, const weir_guard_options *to,
                     const weir_guard_options *expected, weir_message *message) WEIR_PARKS;

/* weir_guards_enter for guards none of which is on a server. */
int wr_together_local(weir_permit *permits, weir_guard *const *guards, size_t count,
                      weir_time deadline) WEIR_PARKS;

/* weir_guards_enter for guards of which some are on servers. */
int wr_together_remote(weir_permit *permits, weir_guard *const *guards, size_t count,
                       weir_time deadline) WEIR_PARKS;

int wr_remote_stats(weir_guard_stats *out, struct weir_guard *guard) WEIR_PARKS;
void wr_remote_say(weir_message *out, struct weir_guard *guard) WEIR_PARKS;

#endif
