/* The gate: what the machine says about itself.
 * SPDX-License-Identifier: MIT */
#include "cli/engine/gate.h"

#include "cli/opt/quantity.h"
#include "cli/opt/refuse.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LOOK_MS = 250 };

/* The beginning of a file of /proc; false: it cannot be read. */
static bool read_text(char *out, size_t size, const struct gate_limits *limits, const char *name)
{
    char path[PATH_MAX];
    ssize_t n;
    int fd;

    snprintf(path, sizeof(path), "%s/%s", limits->proc ? limits->proc : "/proc", name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, out, size - 1);
    if (fd >= 0)
        close(fd);
    out[n > 0 ? n : 0] = 0;
    return n > 0;
}

/* Processes that run or want to, without the calling thread. */
static bool load_now(double *out, const struct gate_limits *limits)
{
    char text[200];
    double unused;
    int running;

    if (!read_text(text, sizeof(text), limits, "loadavg") ||
        sscanf(text, "%lf %lf %lf %d", &unused, &unused, &unused, &running) != 4)
        return false;
    *out = running > 1 ? running - 1 : 0;
    return true;
}

static bool memory_now(int64_t *out, const struct gate_limits *limits)
{
    char text[4096];
    const char *at =
        read_text(text, sizeof(text), limits, "meminfo") ? strstr(text, "MemAvailable:") : NULL;

    if (!at)
        return false;
    *out = strtoll(at + strlen("MemAvailable:"), NULL, 10) * 1024;
    return true;
}

/* Share of the last ten seconds in which some task stalled. */
static bool pressure_now(double *out, const struct gate_limits *limits)
{
    char name[40], text[400];
    const char *at;

    snprintf(name, sizeof(name), "pressure/%.16s", limits->pressure_of);
    at = read_text(text, sizeof(text), limits, name) ? strstr(text, "avg10=") : NULL;
    if (at)
        *out = strtod(at + strlen("avg10="), NULL);
    return at != NULL;
}

int gate_check(const struct gate_limits *limits, weir_message *message)
{
    double number;
    int64_t bytes;

    if (limits->load > 0 && !load_now(&number, limits))
        return refuse(message, "--load: /proc/loadavg cannot be read on this machine");
    if (limits->memory > 0 && !memory_now(&bytes, limits))
        return refuse(message, "--mem-free: /proc/meminfo cannot be read on this machine");
    if (limits->pressure > 0 && !pressure_now(&number, limits))
        return refuse(message,
                      "--pressure: /proc/pressure/%s cannot be read: this kernel does not measure "
                      "pressure (PSI)",
                      limits->pressure_of);
    return 0;
}

/* Under the lock. */
static void look(struct gate *gate)
{
    const struct gate_limits *limits = gate->limits;
    double number;
    int64_t bytes;
    char free[16], wanted[16];

    gate->closed = true;
    if (limits->load > 0 && load_now(&number, limits) && number >= limits->load) {
        snprintf(gate->why, sizeof(gate->why), "%.0f processes run (--load %g)", number,
                 limits->load);
    } else if (limits->memory > 0 && memory_now(&bytes, limits) && bytes < limits->memory) {
        quantity_show_bytes(free, bytes);
        quantity_show_bytes(wanted, limits->memory);
        snprintf(gate->why, sizeof(gate->why), "%s of memory free (--mem-free %s)", free, wanted);
    } else if (limits->pressure > 0 && pressure_now(&number, limits) &&
               number >= limits->pressure) {
        snprintf(gate->why, sizeof(gate->why), "%s pressure is %.0f%% (--pressure %g%%)",
                 limits->pressure_of, number, limits->pressure);
    } else {
        gate->closed = false;
    }
}

bool gate_is_closed(struct gate *gate)
{
    bool closed;

    if (!(gate->limits->load > 0 || gate->limits->memory > 0 || gate->limits->pressure > 0))
        return false;
    wr_lock(&gate->lock);
    /* Each start is judged by what the one before has made of the machine. */
    if (!gate->looked_at || !gate->closed || weir_now() >= gate->looked_at + LOOK_MS * 1000000LL) {
        look(gate);
        gate->looked_at = weir_now();
    }
    closed = gate->closed;
    wr_unlock(&gate->lock);
    return closed;
}

bool gate_why(struct gate *gate, char *text, size_t size)
{
    bool closed;

    wr_lock(&gate->lock);
    closed = gate->closed;
    if (closed)
        snprintf(text, size, "%s", gate->why);
    wr_unlock(&gate->lock);
    return closed;
}
