/* Words every weir header shares: version, linkage, markers.
 * SPDX-License-Identifier: MIT */
#ifndef WEIR_DEFS_H
#define WEIR_DEFS_H

#include <stddef.h>
#include <stdint.h>

#define WEIR_VERSION_MAJOR 0
#define WEIR_VERSION_MINOR 1
#define WEIR_VERSION_PATCH 0

/* Marks a call that may suspend its caller. A task parks: its worker runs other work meanwhile, and
 * the task comes back on the same thread. A plain thread blocks. Nothing may be left in errno
 * across such a call, because other tasks ran on the thread in between. */
#define WEIR_PARKS

/* Around the declarations of each header: C linkage, and visible outside the library, which is built
 * with everything else hidden. */
/* clang-format off */
#ifdef __cplusplus
#define WEIR_BEGIN_DECLS extern "C" { _Pragma("GCC visibility push(default)")
#define WEIR_END_DECLS   _Pragma("GCC visibility pop") }
#else
#define WEIR_BEGIN_DECLS _Pragma("GCC visibility push(default)")
#define WEIR_END_DECLS   _Pragma("GCC visibility pop")
#endif
/* clang-format on */

/* A pointer to a struct whose `size` is set, and of whose other fields those that are named: what
 * WEIR_POLICY(.workers = 2) and its like are made of. In C it is good until the end of the enclosing
 * block; in C++ until the end of the full expression, which is long enough for a call, and fields are
 * to be named in the order of their declaration. */
#ifdef __cplusplus
#pragma GCC system_header /* for -Wmissing-field-initializers: fields left out are the point */
extern "C++" template <typename T> inline const T *weir_temporary(T &&value)
{
    return &value;
}
#define WEIR_SIZED(type, ...) \
    (__extension__ weir_temporary(type{ .size = sizeof(type), __VA_ARGS__ }))
#else
#define WEIR_SIZED(type, ...) (&(type){ .size = sizeof(type), __VA_ARGS__ })
#endif

WEIR_BEGIN_DECLS

/* The version of the library that was linked, as "major.minor.patch". Static storage. */
const char *weir_version(void);

WEIR_END_DECLS

#endif
