/* Error codes.
 *
 * Every call that can fail returns an int: zero or positive is success, negative is one of the codes
 * below. A code that means the same as an errno has its number, negated, so that -errno from the
 * kernel passes through unchanged. Codes of weir's own start at -4101. Numbers are ABI: added, never
 * reused.
 * SPDX-License-Identifier: MIT */
#ifndef WEIR_ERROR_H
#define WEIR_ERROR_H

#include <weir/defs.h>

#include <errno.h>

WEIR_BEGIN_DECLS

#define WEIR_ERRORS(X)                                                                    \
    X(NOMEM, -ENOMEM, "out of memory")                                                    \
    X(INVAL, -EINVAL, "an argument is not valid")                                         \
    X(AGAIN, -EAGAIN, "a limit of the system is reached; try again later")                \
    X(BADF, -EBADF, "not an open file descriptor")                                        \
    X(CHILD, -ECHILD, "not a child of this process, or already waited for")               \
    X(PIPE, -EPIPE, "the other end is closed")                                            \
    X(TIMEDOUT, -ETIMEDOUT, "the deadline passed first")                                  \
    X(CANCELED, -ECANCELED, "the waiting task was cancelled")                             \
    X(DEADLK, -EDEADLK, "the wait could never end")                                       \
    X(CLOSED, -4101, "the runtime or executor is shutting down")                          \
    X(VERSION, -4102, "an option was set that this version of the library does not know") \
    X(REJECTED, -4103, "the task was rejected; its result has the reason")                \
    X(ALREADY, -EALREADY, "not possible in the present state of the task or domain")      \
    X(NOGROUP, -4104, "unknown group")                                                    \
    X(NODOMAIN, -4105, "unknown domain")                                                  \
    X(FULL, -4106, "the guard has no free permit")                                        \
    X(TOOFAST, -4107, "the guard allows no more calls yet")                               \
    X(BROKEN, -4108, "the circuit breaker is open")                                       \
    X(LOCKED, -4109, "the mutex is held")                                                 \
    X(FOREIGN, -4110, "not a guard, damaged, or of another version of weir")              \
    X(EXIST, -4112, "a guard of that name has other settings")                            \
    X(NOGUARD, -4111, "unknown guard")                                                    \
    X(JUDGED, -4113, "the judge of the node did not let it start")                        \
    X(AWAY, -4120, "the server cannot be reached")                                        \
    X(LOST, -4121, "the connection broke before the reply: the command may have run")     \
    X(REPLY, -4122, "the server answered with an error")                                  \
    X(DENIED, -EACCES, "the server refused the user, the password or the command")        \
    X(PROTO, -EPROTO, "the server sent no valid reply")

enum {
#define WEIR_ERROR_ENUM_(name, number, text) WEIR_E##name = (number),
    WEIR_ERRORS(WEIR_ERROR_ENUM_)
#undef WEIR_ERROR_ENUM_
};

/* A code in words; "success" for zero and above. Other negative numbers are read as a negated errno and
 * described as the system does. Static storage. */
const char *weir_strerror(int error);

/* The name of a code ("WEIR_ENOMEM"); "WEIR_E?" for a number that is not in the table. Static storage. */
const char *weir_errname(int error);

WEIR_END_DECLS

#endif
