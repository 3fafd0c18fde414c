/* What a body or callback can do with the step it is given.
 * SPDX-License-Identifier: MIT */
#include "base/options.h"
#include "base/os.h"
#include "flow/run.h"

#include <weir/error.h>

const char *weir_step_id(const weir_step *step)
{
    return wr_flow_node(step->run->flow, wr_load(&step->node, relaxed))->id;
}

void *weir_step_input(const weir_step *step)
{
    return step->run->input;
}

weir_task *weir_step_run(const weir_step *step)
{
    return wr_load(&step->run->task, acquire);
}

int weir_step_result(weir_node_result *out, const weir_step *step, const char *id)
{
    return step ? weir_run_result(out, weir_step_run(step), id) : WEIR_EINVAL;
}

int weir_step_expand(weir_step *step, weir_flow *flow, void *input, weir_message *message)
{
    struct wr_own *own;
    int rc;

    if (message)
        message->text[0] = '\0';
    if (!step || !flow || !step->in_body)
        return WEIR_EINVAL;
    if (step->added)
        return WEIR_EALREADY;
    rc = wr_flow_freeze_or_say(flow, message);
    if (rc)
        return rc;
    own = wr_os_alloc(sizeof(*own));
    if (!own)
        return WEIR_ENOMEM;
    wr_own_init(own, step->run, wr_load(&step->node, relaxed));
    own->flow = flow;
    own->input = input;
    rc = wr_run_add(step->run, own);
    if (rc) {
        wr_os_free(own);
        return rc;
    }
    wr_lock(&step->run->lock);
    step->added = own;
    wr_store(&step->expects, WR_NO_LOCALS, relaxed);
    wr_unlock(&step->run->lock);
    return 0;
}
