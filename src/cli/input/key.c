/* Groups of records: what --group-by means.
 * SPDX-License-Identifier: MIT */
#include "cli/input/key.h"

#include "cli/input/regex.h"
#include "cli/input/template.h"
#include "cli/opt/refuse.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_MAX = 4096 };

enum key_kind { KEY_FIELD, KEY_REGEX, KEY_HOST, KEY_TEMPLATE };

struct key_rule {
    enum key_kind kind;
    char *field;           /* KEY_FIELD; KEY_HOST: whose URL, NULL: the record's */
    bool host_field_first; /* KEY_HOST: an object may have a member of that name */
    struct regex *regex;
    int stop_fd;
    struct template *template;
};

/* ---- hosts --------------------------------------------------------------------------------------- */

static bool is_scheme_character(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+' ||
           c == '-' || c == '.';
}

static size_t span_without(const char *text, size_t length, const char *stops)
{
    size_t i = 0;

    while (i < length && (unsigned char)text[i] > ' ' && text[i] != 0x7f && !strchr(stops, text[i]))
        i++;
    return i;
}

/* The host in what follows "://". */
static bool authority_host(struct span *out, const char *text, size_t length)
{
    size_t authority = span_without(text, length, "/?#\\\"<>`{}|^");
    const char *at = memrchr(text, '@', authority), *end = text + authority, *close;

    if (at)
        text = at + 1;
    if (text < end && *text == '[') {
        close = memchr(text, ']', (size_t)(end - text));
        *out = (struct span){ text + 1, close ? (size_t)(close - text) - 1 : 0 };
    } else {
        *out = (struct span){ text, span_without(text, (size_t)(end - text), ":()[],;'") };
    }
    return out->length > 0;
}

bool url_host(struct span *out, const char *text, size_t length)
{
    const char *at = text, *end = text + length;

    while ((at = memmem(at, (size_t)(end - at), "://", 3))) {
        bool scheme = at > text && is_scheme_character(at[-1]);
        at += 3;
        if (scheme && authority_host(out, at, (size_t)(end - at)))
            return true;
    }
    return false;
}

/* ---- rules --------------------------------------------------------------------------------------- */

static int no_such_field(const char *name, const struct record_syntax *syntax,
                         weir_message *message)
{
    if (syntax->names)
        return refuse(message, "--group-by: the header has no column \"%.80s\"", name);
    return refuse(
        message,
        "--group-by: \"%.80s\" is not a column: use its number, host, /REGEX/, or a text with {}",
        name);
}

static int set_field(struct key_rule *rule, const char *name, const struct record_syntax *syntax,
                     weir_message *message)
{
    if (!record_may_have(syntax, name, strlen(name)))
        return no_such_field(name, syntax, message);
    rule->field = strdup(name);
    return rule->field ? 0 : WEIR_ENOMEM;
}

static int set_regex(struct key_rule *rule, const char *spec, size_t length, weir_message *message)
{
    char *pattern = strndup(spec + 1, length - 2);
    weir_message reason = { "" };
    int rc;

    if (!pattern)
        return WEIR_ENOMEM;
    rule->kind = KEY_REGEX;
    rc = regex_new(&rule->regex, pattern, &reason);
    free(pattern);
    if (rc == WEIR_EINVAL)
        refuse(message, "--group-by: %.200s: %.200s", spec, reason.text);
    return rc;
}

static int set_template(struct key_rule *rule, const char *spec, const struct record_syntax *syntax,
                        weir_message *message)
{
    unsigned needs;
    int rc = template_new(&rule->template, &(char *){ (char *)spec }, 1, syntax, false, message);

    rule->kind = KEY_TEMPLATE;
    if (rc < 0)
        return rc;
    needs = template_needs(rule->template);
    if (needs & (TEMPLATE_NEEDS_KEY | TEMPLATE_NEEDS_SEQ))
        return refuse(message, "--group-by: use fields of the record, not {key} or {seq}");
    if (!needs)
        return refuse(message,
                      "--group-by: \"%.80s\" has no placeholder: use {}, a column such as {1}, or "
                      "a field such as {name}",
                      spec);
    return 0;
}

static bool has_column(const struct record_syntax *syntax, const char *name)
{
    for (size_t i = 0; i < syntax->name_count; i++)
        if (*name && strcmp(syntax->names[i], name) == 0)
            return true;
    return false;
}

static int parse(struct key_rule *rule, const char *spec, const struct record_syntax *syntax,
                 weir_message *message)
{
    size_t length = strlen(spec);

    if (has_column(syntax, spec))
        return set_field(rule, spec, syntax, message);
    if (length > 2 && spec[0] == '/' && spec[length - 1] == '/')
        return set_regex(rule, spec, length, message);
    if (strchr(spec, '{'))
        return set_template(rule, spec, syntax, message);
    if (strcmp(spec, "host") == 0) {
        rule->kind = KEY_HOST;
        rule->host_field_first = syntax->form == FORM_JSONL;
        return 0;
    }
    if (strncmp(spec, "host:", 5) == 0) {
        rule->kind = KEY_HOST;
        return set_field(rule, spec + 5, syntax, message);
    }
    return set_field(rule, spec, syntax, message);
}

int key_rule_new(struct key_rule **out, const char *spec, const struct record_syntax *syntax,
                 int stop_fd, weir_message *message)
{
    struct key_rule *rule = calloc(1, sizeof(*rule));
    int rc;

    *out = NULL;
    if (!rule)
        return WEIR_ENOMEM;
    rule->stop_fd = stop_fd;
    rc = parse(rule, spec, syntax, message);
    if (rc < 0)
        key_rule_free(rule);
    else
        *out = rule;
    return rc;
}

void key_rule_free(struct key_rule *rule)
{
    if (!rule)
        return;
    regex_free(rule->regex);
    template_free(rule->template);
    free(rule->field);
    free(rule);
}

/* ---- keys ---------------------------------------------------------------------------------------- */

static int check_key(const struct span *key, uint64_t line, weir_message *message)
{
    if (memchr(key->text, '\0', key->length))
        return refuse(message, "line %" PRIu64 ": the group's key contains a zero byte", line);
    if (key->length > KEY_MAX)
        return refuse(message, "line %" PRIu64 ": the group's key is longer than %d bytes", line,
                      KEY_MAX);
    return 0;
}

/* To be freed; in lower case if asked. */
static int copy_key(char **out, const struct span *key, bool lower)
{
    char *copy = malloc(key->length + 1);

    if (!copy)
        return WEIR_ENOMEM;
    for (size_t i = 0; i < key->length; i++) {
        char c = key->text[i];
        copy[i] = lower && c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
    }
    copy[key->length] = '\0';
    *out = copy;
    return 0;
}

/* The first capture that took part; without captures the whole match. */
static int match(struct span *out, const struct key_rule *rule, const struct record *record)
{
    struct span found[1 + REGEX_CAPTURES_MAX];
    size_t captures = regex_captures(rule->regex), which = captures ? 1 : 0;
    int rc = regex_match(rule->regex, found, record->text, record->length, rule->stop_fd);

    *out = (struct span){ "", 0 };
    if (rc <= 0)
        return rc;
    while (which < captures && !found[which].text)
        which++;
    if (found[which].text)
        *out = found[which];
    return 0;
}

/* Which text the key comes from, before a host is looked for in it. */
static int source_of(struct span *out, char **owned, bool *is_key, const struct key_rule *rule,
                     const struct record *record, const struct record_syntax *syntax,
                     weir_message *message)
{
    weir_message unused;
    int rc;

    *is_key = rule->kind == KEY_FIELD;
    if (rule->field)
        return record_field(out, owned, record, syntax, rule->field, message);
    if (rule->host_field_first) {
        rc = record_field(out, owned, record, syntax, "host", &unused);
        *is_key = rc == 0;
        if (rc != WEIR_EINVAL)
            return rc;
    }
    *out = (struct span){ record->text, record->length };
    return 0;
}

static int field_key(char **out, const struct key_rule *rule, const struct record *record,
                     const struct record_syntax *syntax, weir_message *message)
{
    struct span source, key;
    char *owned = NULL;
    bool is_key;
    int rc = source_of(&source, &owned, &is_key, rule, record, syntax, message);

    if (rc == 0) {
        key = source;
        if (!is_key && !url_host(&key, source.text, source.length))
            key = (struct span){ "", 0 };
        rc = check_key(&key, record->line, message);
        if (rc == 0)
            rc = copy_key(out, &key, !is_key);
    }
    free(owned);
    return rc;
}

static int template_key(char **out, const struct key_rule *rule, const struct record *record,
                        const struct record_syntax *syntax, weir_message *message)
{
    const struct template_values values = { .record = record, .syntax = syntax };
    char *key;
    int rc = template_fill_one(&key, rule->template, &values, message);

    if (rc < 0)
        return rc;
    rc = check_key(&(struct span){ key, strlen(key) }, record->line, message);
    if (rc < 0)
        free(key);
    else
        *out = key;
    return rc;
}

int key_of(char **out, const struct key_rule *rule, const struct record *record,
           const struct record_syntax *syntax, weir_message *message)
{
    struct span key;
    int rc;

    *out = NULL;
    switch (rule->kind) {
    case KEY_TEMPLATE:
        return template_key(out, rule, record, syntax, message);
    case KEY_REGEX:
        rc = match(&key, rule, record);
        if (rc == 0)
            rc = check_key(&key, record->line, message);
        return rc < 0 ? rc : copy_key(out, &key, false);
    case KEY_FIELD:
    case KEY_HOST:
        break;
    }
    return field_key(out, rule, record, syntax, message);
}
