/* Which group a record belongs to: --group-by.
 *
 *     3, name      a field                     /REGEX/    its first capture that took part, or, if it
 *     host         the host of its first URL              has none, the whole match
 *     {1}-{name}   a template                  host:FIELD of the URL in that field
 *
 * "host" is the field of that name if the header, or the object, has one. Hosts are in lower case.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_KEY_H
#define WR_CLI_KEY_H

#include "cli/input/record.h"

struct key_rule;

/* `stop_fd`: becoming readable ends a search for a regular expression; -1: none. */
int key_rule_new(struct key_rule **out, const char *spec, const struct record_syntax *syntax,
                 int stop_fd, weir_message *message);

/* The record's key, to be freed; the record was split. A regular expression that does not match, or a text without URL, gives "".
 * WEIR_EINVAL with a sentence: no such field, a zero byte, or longer than 4096 bytes. WEIR_ENOMEM. WEIR_ECANCELED:
 * stop_fd was readable. */
int key_of(char **out, const struct key_rule *rule, const struct record *record,
           const struct record_syntax *syntax, weir_message *message);

void key_rule_free(struct key_rule *rule);

/* The host in the text's first URL, as it is written there: without user, port, brackets. False if there is
 * no "://" with a scheme before and a host behind it. */
bool url_host(struct span *out, const char *text, size_t length);

#endif
