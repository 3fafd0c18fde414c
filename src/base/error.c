/* Names and texts of the error codes, from the one table in weir/error.h.
 * SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>
#include <weir/error.h>

/* The C library's words, untranslated where it can; NULL if it has none. */
static const char *text_of_errno(int number)
{
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 32)
    return strerrordesc_np(number);
#else
    return number <= EHWPOISON ? strerror(number) : NULL; /* up to there, constants */
#endif
}

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
    const char *text = error > -4096 ? text_of_errno(-error) : NULL;
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
