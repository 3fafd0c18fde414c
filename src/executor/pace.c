/* Pause, cool-down and pace. The last two are gates of the group's own; see limits/gates.h.
 * SPDX-License-Identifier: MIT */
#include "base/os.h"
#include "executor/gate.h"
#include "executor/state.h"

#include <weir/error.h>

static void set_paused(weir_group *handle, bool paused)
{
    struct weir_group *group = handle ? wr_group_current(handle) : NULL;

    if (!group)
        return;
    wr_group_lock(group);
    group->paused = paused;
    wr_group_note_closed(group);
    wr_group_changed(group);
    wr_group_unpin(group);
}

void weir_group_pause(weir_group *handle)
{
    set_paused(handle, true);
}

void weir_group_resume(weir_group *handle)
{
    set_paused(handle, false);
}

static int cool_down(struct weir_group *group, weir_time until)
{
    int rc = wr_group_lock_gates(group);

    if (rc)
        return rc;
    wr_gates_cool_down(wr_group_gates(group), until, wr_os_now());
    wr_group_unlock_gates(group);
    return 0;
}

int weir_group_cool_down(weir_group *handle, weir_time until)
{
    return handle ? cool_down(wr_group_current(handle), until) : WEIR_EINVAL;
}

int weir_task_cool_down(weir_task *task, weir_time until)
{
    return task ? cool_down(wr_group_present(task->group), until) : WEIR_EINVAL;
}

int weir_group_pace(weir_group *handle, int64_t starts, int64_t period_ns, int64_t burst)
{
    struct weir_group *group;
    struct wr_pace pace;
    int rc;

    if (!handle || starts < 0 || period_ns < 0 || burst < 0 || (starts && !period_ns) ||
        !wr_pace_from(&pace, &(weir_pace){ starts, period_ns, burst }))
        return WEIR_EINVAL;
    group = wr_group_current(handle);
    rc = wr_group_lock_gates(group);
    if (rc)
        return rc;
    wr_gates_set_pace(wr_group_gates(group), &pace, wr_os_now());
    wr_group_unlock_gates(group);
    return 0;
}
