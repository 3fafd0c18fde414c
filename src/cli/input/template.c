/* Command templates: what the words hold.
 * SPDX-License-Identifier: MIT */
#include "cli/input/shell_use.h"
#include "cli/input/template_parts.h"
#include "cli/opt/refuse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- placeholders -------------------------------------------------------------------------------- */

bool template_is_text(const char *text, size_t length, const char *known)
{
    return strlen(known) == length && memcmp(known, text, length) == 0;
}

static bool known_word(enum placeholder_kind *kind, const char *name, size_t length)
{
    static const struct {
        const char *name;
        enum placeholder_kind kind;
    } known[] = {
        { "key", HOLDS_KEY }, { "seq", HOLDS_SEQ }, { "#", HOLDS_SEQ }, { "%", HOLDS_SLOT }
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (template_is_text(name, length, known[i].name)) {
            *kind = known[i].kind;
            return true;
        }
    return false;
}

size_t template_part_at_end(enum path_part *part, const char *text, size_t length)
{
    static const struct {
        const char *name;
        enum path_part part;
    } known[] = {
        { "//", PART_DIRECTORY }, { "/.", PART_BASE_STEM }, { "/", PART_BASE }, { ".", PART_STEM }
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        size_t n = strlen(known[i].name);
        if (n <= length && memcmp(text + length - n, known[i].name, n) == 0) {
            *part = known[i].part;
            return n;
        }
    }
    *part = PART_WHOLE;
    return 0;
}

/* What a text in braces holds; false: nothing. */
static bool hold(struct held *held, const char *text, size_t length,
                 const struct record_syntax *syntax)
{
    size_t ending;

    *held = (struct held){ .kind = HOLDS_FIELD, .name_length = length };
    if (known_word(&held->kind, text, length) || record_may_have(syntax, text, length))
        return true;
    ending = template_part_at_end(&held->part, text, length);
    held->name_length = length - ending;
    if (held->name_length)
        return ending && record_may_have(syntax, text, held->name_length);
    held->kind = HOLDS_RECORD;
    return true;
}

size_t placeholder_at(struct held *held, const char *at, const char *end,
                      const struct record_syntax *syntax)
{
    const char *close;

    if (at == end || *at != '{')
        return 0;
    close = memchr(at, '}', (size_t)(end - at));
    if (!close || !hold(held, at + 1, (size_t)(close - at) - 1, syntax))
        return 0;
    return (size_t)(close - at) + 1;
}

/* ---- a template's placeholders ----------------------------------------------------------------------- */

/* The array, with room for one more than `count`; it grows by doubling. NULL without memory. */
static void *roomy(void *array, size_t count, size_t size)
{
    if (count & (count - 1)) /* not at a power of two yet */
        return array;
    return realloc(array, (count ? 2 * count : 1) * size);
}

int template_add_placeholder(size_t *index, struct template *template, const struct held *held,
                             const char *at)
{
    struct placeholder new = { .kind = held->kind, .part = held->part }, *larger;

    for (size_t i = 0; i < template->placeholder_count; i++) {
        const struct placeholder *old = &template->placeholders[i];
        if (old->kind == held->kind && old->part == held->part &&
            (held->kind != HOLDS_FIELD || template_is_text(at + 1, held->name_length, old->name))) {
            *index = i;
            return 0;
        }
    }
    larger = roomy(template->placeholders, template->placeholder_count, sizeof(new));
    if (!larger)
        return WEIR_ENOMEM;
    template->placeholders = larger;
    if (held->kind == HOLDS_FIELD) {
        new.name = strndup(at + 1, held->name_length);
        if (!new.name)
            return WEIR_ENOMEM;
    }
    *index = template->placeholder_count++;
    template->placeholders[*index] = new;
    return 0;
}

static unsigned need_of(const struct placeholder *placeholder)
{
    switch (placeholder->kind) {
    case HOLDS_FIELD:
        return TEMPLATE_NEEDS_FIELDS;
    case HOLDS_KEY:
        return TEMPLATE_NEEDS_KEY;
    case HOLDS_SEQ:
        return TEMPLATE_NEEDS_SEQ;
    case HOLDS_SLOT:
        return TEMPLATE_NEEDS_SLOT;
    case HOLDS_RECORD:
        break;
    }
    return TEMPLATE_NEEDS_RECORD;
}

unsigned template_needs(const struct template *template)
{
    unsigned needs = 0;

    for (size_t i = 0; i < template->placeholder_count; i++)
        needs |= need_of(&template->placeholders[i]);
    return needs;
}

unsigned template_word_needs(const struct template *template, size_t word)
{
    unsigned needs = 0;

    for (size_t i = template->word_start[word]; i < template->word_start[word + 1]; i++)
        if (!template->pieces[i].text)
            needs |= need_of(&template->placeholders[template->pieces[i].placeholder]);
    return needs;
}

size_t template_words(const struct template *template)
{
    return template->word_count;
}

/* ---- words --------------------------------------------------------------------------------------- */

static int add_piece(struct template *template, const struct piece *piece)
{
    struct piece *larger = roomy(template->pieces, template->piece_count, sizeof(*piece));

    if (!larger)
        return WEIR_ENOMEM;
    template->pieces = larger;
    template->pieces[template->piece_count++] = *piece;
    template->word_start[template->word_count] = template->piece_count;
    return 0;
}

int template_open_word(struct template *template)
{
    /* One entry more than words: where the last one ends. */
    size_t *larger = roomy(template->word_start, template->word_count + 1, sizeof(*larger));

    if (!larger)
        return WEIR_ENOMEM;
    template->word_start = larger;
    template->word_start[template->word_count++] = template->piece_count;
    template->word_start[template->word_count] = template->piece_count;
    return 0;
}

int template_add_text(struct template *template, const char *text, size_t length)
{
    return length ? add_piece(template, &(struct piece){ .text = text, .length = length }) : 0;
}

int template_add_reference(struct template *template, size_t placeholder)
{
    return add_piece(template, &(struct piece){ .placeholder = placeholder });
}

static int add_record(struct template *template)
{
    size_t index;
    int rc = template_add_placeholder(&index, template, &(struct held){ .kind = HOLDS_RECORD }, "");

    if (rc == 0)
        rc = template_open_word(template);
    return rc < 0 ? rc : template_add_reference(template, index);
}

static int parse_word(struct template *template, const char *text, size_t length,
                      const struct record_syntax *syntax, weir_message *message)
{
    const char *at = text, *end = text + length, *literal = text;
    int rc = template_open_word(template);

    while (rc == 0 && (at = memchr(at, '{', (size_t)(end - at)))) {
        struct held held;
        size_t index, taken;

        if (at > literal && at[-1] == '\\' && template_escaped_at(at, end, syntax)) {
            rc = template_add_text(template, literal, (size_t)(at - literal) - 1);
            literal = at++;
            continue;
        }
        taken = placeholder_at(&held, at, end, syntax);
        if (taken && at > text && at[-1] == '$' && (at[1] == '#' || at[1] == '%'))
            taken = 0; /* for sh -c */
        if (!taken) {
            rc = template_refuse_unknown(text, at, end, syntax, message);
            at++;
            continue;
        }
        rc = template_add_text(template, literal, (size_t)(at - literal));
        if (rc == 0)
            rc = template_add_placeholder(&index, template, &held, at);
        if (rc == 0)
            rc = template_add_reference(template, index);
        at += taken;
        literal = at;
    }
    return rc < 0 ? rc : template_add_text(template, literal, (size_t)(end - literal));
}

static int parse_words(struct template *template, char *const *words, size_t count,
                       const struct record_syntax *syntax, weir_message *message)
{
    size_t size = 1;
    char *copy;
    int rc = 0;

    for (size_t i = 0; i < count; i++)
        size += strlen(words[i]);
    copy = template->text = malloc(size);
    if (!copy)
        return WEIR_ENOMEM;
    copy[size - 1] = '\0'; /* so that it is a string for tools that check strings */
    for (size_t i = 0; i < count && rc == 0; i++) {
        size_t length = strlen(words[i]);
        memcpy(copy, words[i], length);
        rc = parse_word(template, copy, length, syntax, message);
        copy += length;
    }
    return rc;
}

/* Whether a value of the input, whatever it may be, becomes code: in sh -c 'echo {}'. Numbers are harmless. */
static bool nests_code(const struct template *template, char *const *words, size_t count)
{
    const unsigned values = TEMPLATE_NEEDS_RECORD | TEMPLATE_NEEDS_FIELDS | TEMPLATE_NEEDS_KEY;

    for (size_t w = 0; w < count; w++)
        if (template_word_needs(template, w) & values && shell_runs_word(words, w))
            return true;
    return false;
}

int template_new(struct template **out, char *const *words, size_t count,
                 const struct record_syntax *syntax, bool append, weir_message *message)
{
    struct template *template;
    int rc;

    *out = NULL;
    if (!count)
        return refuse(message, "no command given");
    template = calloc(1, sizeof(*template));
    if (!template)
        return WEIR_ENOMEM;
    rc = parse_words(template, words, count, syntax, message);
    if (rc == 0)
        template->nested_code = nests_code(template, words, count);
    if (rc == 0 && append && !template_needs(template))
        rc = add_record(template);
    if (rc < 0)
        template_free(template);
    else
        *out = template;
    return rc;
}

bool template_nests_code(const struct template *template)
{
    return template->nested_code;
}

bool template_command_is_fixed(const struct template *template)
{
    for (size_t i = template->word_start[0]; i < template->word_start[1]; i++)
        if (!template->pieces[i].text)
            return false;
    return true;
}

void template_free(struct template *template)
{
    if (!template)
        return;
    for (size_t i = 0; i < template->placeholder_count; i++)
        free(template->placeholders[i].name);
    free(template->placeholders);
    free(template->pieces);
    free(template->word_start);
    free(template->text);
    free(template);
}
