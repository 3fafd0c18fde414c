/* What a shell would do with a value at a place in a script: most places take it as text, but bash calculates with it
 * in some, and takes it for the name of a variable in others; both run what stands in the brackets of a[$(...)].
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_INPUT_SHELL_USE_H
#define WR_CLI_INPUT_SHELL_USE_H

#include <stdbool.h>
#include <stddef.h>

enum shell_use {
    USE_TEXT,
    USE_NUMBER, /* calculated with: [[ {} -gt 5 ]], let, declare -i, ${x:{}}, a[{}]=1     */
    USE_NAME,   /* a variable's name: read {}, printf -v {}, test -v {}, unset {}        */
    USE_CODE,   /* part of a script for another shell: sh -c '{}', eval {}, ssh host '{}', PS4={} */
};

/* Letters, digits and _. */
bool shell_is_name_character(char c);

/* Of a value at [at, after) in the simple command that begins at `from`; the script ends at `end`. */
enum shell_use shell_use_in_command(const char *from, const char *at, const char *after,
                                    const char *end);

/* Of a value at `at` within ${...}, whose text begins at `from`. */
enum shell_use shell_use_in_braces(const char *from, const char *at);

/* Of values that the script assigns to variables somewhere: whether it declares some that bash calculates with, or takes
 * for names. */
enum shell_use shell_use_of_assignments(const char *from, const char *end);

/* Of a value at `at` if the word that begins at `from` is an assignment so far, NAME= or NAME+=, by the variable's name;
 * `declared` is what shell_use_of_assignments says. USE_TEXT: it is no assignment. */
enum shell_use shell_use_in_assignment(const char *from, const char *at, enum shell_use declared);

/* Whether a word within a=(...) is the subscript of an element so far, [. */
bool shell_begins_subscript(const char *from, const char *at);

/* Whether that word of a command, given as an argument vector, is a script for a shell: a value in it is code. */
bool shell_runs_word(char *const *words, size_t which);

#endif
