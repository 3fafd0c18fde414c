/* How many at once.
 * SPDX-License-Identifier: MIT */
#include "cli/engine/jobs.h"

#include "base/os.h"
#include "cli/engine/slots.h"
#include "cli/opt/quantity.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

bool jobs_parse(int64_t *jobs, const char *text)
{
    size_t length = strlen(text);
    char digits[24];
    int64_t number;

    if (length == 0 || length >= sizeof(digits))
        return false;
    if (text[0] == '+') {
        if (!quantity_count(&number, text + 1, 0, SLOTS_MAX))
            return false;
        *jobs = wr_os_cpus() + number;
    } else if (text[length - 1] == '%') {
        memcpy(digits, text, length - 1);
        digits[length - 1] = 0;
        if (!quantity_count(&number, digits, 1, 100000))
            return false;
        *jobs = (wr_os_cpus() * number + 99) / 100;
    } else {
        return quantity_count(jobs, text, 1, SLOTS_MAX);
    }
    return *jobs <= SLOTS_MAX;
}

bool jobs_from_file(int64_t *jobs, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char text[32];
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return false;
    text[n] = 0;
    text[strcspn(text, " \t\r\n")] = 0;
    return jobs_parse(jobs, text);
}
