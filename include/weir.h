/* weir: runs work by group. This header brings all of the public interface.
 * SPDX-License-Identifier: MIT */
#ifndef WEIR_H
#define WEIR_H

#include <weir/blocking.h>
#include <weir/defs.h>
#include <weir/domain.h>
#include <weir/error.h>
#include <weir/executor.h>
#include <weir/flow.h>
#include <weir/group.h>
#include <weir/guard.h>
#include <weir/io.h>
#include <weir/local.h>
#include <weir/reason.h>
#include <weir/runtime.h>
#include <weir/task.h>
#include <weir/time.h>
#include <weir/wait.h>

#endif
