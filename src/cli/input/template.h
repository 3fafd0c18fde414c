/* Command templates: words with placeholders, filled per record into an argument vector.
 *
 *     {}      the record           {1} {name}  a field         {key}  its group      {seq} {#}  its number
 *     {.}     without extension    {/}  last part of the path  {//}   its directory  {/.}  last part, no ext.
 *     {1/.} {name//}  the same of a field                      {%}    the number of the slot it runs in
 *
 * Anything else in braces stays as it is, so awk '{print $1}' needs no quoting of ours. But a name that no column has is
 * refused, most likely it is misspelt; so are placeholders of GNU parallel's that are none here (template_unknown.c). A
 * backslash makes text of any of them: \{}, \{name}.
 * {key} and {seq} mean the group and the number also where a column has that name; such a column is reached by
 * its number.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_TEMPLATE_H
#define WR_CLI_TEMPLATE_H

#include "cli/input/record.h"

struct template; /* parsed words */

/* The values of one record. */
struct template_values {
    const struct record *record;
    const struct record_syntax *syntax;
    const char *key;
    uint64_t seq;
    bool as_written;   /* {seq} and {%} stay as they are: for the journal */
    struct plan *plan; /* gets the holes of {%}; NULL: none wanted        */
};

/* Parses words[0..count). `append`: if no word has a placeholder, one more word {} follows. 0, WEIR_ENOMEM, or WEIR_EINVAL
 * with a sentence. */
int template_new(struct template **out, char *const *words, size_t count,
                 const struct record_syntax *syntax, bool append, weir_message *message);

/* The same for a shell of the Bourne family: the words are joined by blanks into one script for `sh -c`.
 * Values never become part of the script's text: it refers to them as variables that its first words set
 * from positional parameters, each reference quoted as its place in the script demands (bare, in "...", in
 * '...'). In arithmetic only whole numbers are let in. So no value can run as code, unless the script itself
 * hands it to something that runs code: eval, another sh -c, ssh, an awk program.
 *
 * ${name} is the shell's own and left alone; \{} and \{name} are the texts {} and {name}, also within quotes. WEIR_EINVAL:
 * a placeholder where the shell would not replace it (a here-document with quoted end mark, ${} and the like).
 * Nothing is appended. template_fill then answers shell, -c,
 * script, sh, value... */
int template_new_shell(struct template **out, const char *shell, char *const *words, size_t count,
                       const struct record_syntax *syntax, weir_message *message);

/* What a record must bring: an OR of these. Fields: record_split was called. */
enum {
    TEMPLATE_NEEDS_RECORD = 1, /* {} or a part of it */
    TEMPLATE_NEEDS_FIELDS = 2,
    TEMPLATE_NEEDS_KEY = 4,
    TEMPLATE_NEEDS_SEQ = 8,
    TEMPLATE_NEEDS_SLOT = 16,
};
unsigned template_needs(const struct template *template);

/* The same for one of the words that template_fill answers; there are template_words of them. */
unsigned template_word_needs(const struct template *template, size_t word);
size_t template_words(const struct template *template);

/* Whether a value becomes part of a script that another shell runs, as in sh -c 'echo {}': it is code there, and not
 * safe, with --shell or without. */
bool template_nests_code(const struct template *template);

/* Whether the first word has no placeholder, so that the command can be looked for before any record. */
bool template_command_is_fixed(const struct template *template);

/* Fills the template: *out is a NULL-ended argument vector in one allocation, to be freed with free().
 * WEIR_EINVAL with a sentence: a field is missing, or a value has a zero byte in it, which no argument
 * can. WEIR_ENOMEM. */
int template_fill(char ***out, const struct template *template,
                  const struct template_values *values, weir_message *message);

/* Fills a template of a single word into one string, to be freed. As above. */
int template_fill_one(char **out, const struct template *template,
                      const struct template_values *values, weir_message *message);

void template_free(struct template *template);

#endif
