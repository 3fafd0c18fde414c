/* Names and texts of the error codes, from the one table in weir/error.h.
 * SPDX-License-Identifier: MIT */
#include <string.h>
#include <weir/error.h>

const char *weir_strerror(int error)
{
    if (error >= 0)
        return "success";
    switch (error) {
#define TEXT(name, number, text) \
    case number:                 \
        return text;
        WEIR_ERRORS(TEXT)
#undef TEXT
    }
    const char *text = error > -4096 ? strerrordesc_np(-error) : NULL;
    return text ? text : "unknown error";
}

const char *weir_errname(int error)
{
    switch (error) {
#define NAME(name, number, text) \
    case number:                 \
        return "WEIR_E" #name;
        WEIR_ERRORS(NAME)
#undef NAME
    }
    return "WEIR_E?";
}
