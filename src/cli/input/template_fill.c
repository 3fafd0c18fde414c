/* Filling command templates: values, and the words made of them.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "cli/input/template_parts.h"
#include "cli/opt/refuse.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- parts of a path ----------------------------------------------------------------------------- */

/* Without slashes at the end, unless it is nothing else. */
static struct span without_slashes(struct span path)
{
    while (path.length > 1 && path.text[path.length - 1] == '/')
        path.length--;
    return path;
}

static size_t last_part(struct span path)
{
    const char *slash = memrchr(path.text, '/', path.length);

    return slash ? (size_t)(slash - path.text) + 1 : 0;
}

/* As basename(1): of a/b/ it is b. */
static struct span base_of(struct span path)
{
    size_t from;

    path = without_slashes(path);
    from = last_part(path);
    if (from == path.length) /* "/", or nothing */
        return path;
    return (struct span){ path.text + from, path.length - from };
}

static struct span directory_of(struct span path)
{
    size_t from;

    path = without_slashes(path);
    from = last_part(path);
    if (!from)
        return (struct span){ ".", 1 };
    return without_slashes((struct span){ path.text, from });
}

/* Without the last dot of the last part and what follows. Dots that begin a name begin no extension. */
static struct span stem_of(struct span path)
{
    size_t from = last_part(path), dot = path.length;

    while (from < path.length && path.text[from] == '.')
        from++;
    while (dot > from)
        if (path.text[--dot] == '.')
            return (struct span){ path.text, dot };
    return path;
}

/* ---- values -------------------------------------------------------------------------------------- */

enum { FEW = 8 };

/* The values of a template's placeholders, while it is filled. */
struct filling {
    struct span *values;
    char **owned; /* of fields that had to be decoded */
    struct span few_values[FEW];
    char *few_owned[FEW];
    char seq[24];
};

static int filling_init(struct filling *filling, size_t count)
{
    filling->values = filling->few_values;
    filling->owned = filling->few_owned;
    memset(filling->few_owned, 0, sizeof(filling->few_owned));
    if (count <= FEW)
        return 0;
    filling->values = calloc(count, sizeof(struct span) + sizeof(char *));
    if (!filling->values)
        return WEIR_ENOMEM;
    filling->owned = (char **)(filling->values + count);
    return 0;
}

static void filling_fini(struct filling *filling, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(filling->owned[i]);
    if (filling->values != filling->few_values)
        free(filling->values);
}

/* What the braces said, for messages. */
static const char *label_of(const struct placeholder *placeholder)
{
    static const char *const parts[] = { "", ".", "/", "//", "/." };

    switch (placeholder->kind) {
    case HOLDS_FIELD:
        return placeholder->name;
    case HOLDS_KEY:
        return "key";
    case HOLDS_SEQ:
        return "seq";
    case HOLDS_SLOT:
        return "%";
    case HOLDS_RECORD:
        break;
    }
    return parts[placeholder->part];
}

/* Nothing that a shell's arithmetic would take for a name, a subscript or an operator. */
static bool is_number(struct span value)
{
    size_t i = 0;

    if (i < value.length && (value.text[i] == '-' || value.text[i] == '+'))
        i++;
    if (i == value.length)
        return false;
    for (; i < value.length; i++)
        if (value.text[i] < '0' || value.text[i] > '9')
            return false;
    return true;
}

static int check_value(const struct placeholder *placeholder, struct span value, uint64_t line,
                       weir_message *message)
{
    if (memchr(value.text, '\0', value.length))
        return refuse(message,
                      "line %" PRIu64 ": {%.80s} contains a zero byte, which an argument cannot",
                      line, label_of(placeholder));
    if (placeholder->numeric && placeholder->kind != HOLDS_SLOT && placeholder->kind != HOLDS_SEQ &&
        !is_number(value))
        return refuse(message,
                      "line %" PRIu64
                      ": {%.80s} is used in shell arithmetic, but is not a whole number",
                      line, label_of(placeholder));
    return 0;
}

static struct span part_of(struct span path, enum path_part part)
{
    switch (part) {
    case PART_STEM:
        return stem_of(path);
    case PART_BASE:
        return base_of(path);
    case PART_DIRECTORY:
        return directory_of(path);
    case PART_BASE_STEM:
        return stem_of(base_of(path));
    case PART_WHOLE:
        break;
    }
    return path;
}

static struct span text_span(const char *text)
{
    return (struct span){ text, strlen(text) };
}

static int find_value(struct filling *filling, size_t index, const struct placeholder *placeholder,
                      const struct template_values *values, weir_message *message)
{
    struct span *value = &filling->values[index];
    int rc = 0;

    switch (placeholder->kind) {
    case HOLDS_RECORD:
        *value = (struct span){ values->record->text, values->record->length };
        break;
    case HOLDS_KEY:
        *value = text_span(values->key ? values->key : "");
        break;
    case HOLDS_SEQ:
        snprintf(filling->seq, sizeof(filling->seq), "%" PRIu64, values->seq);
        *value = text_span(values->as_written ? "{seq}" : filling->seq);
        break;
    case HOLDS_SLOT:
        *value = text_span(values->as_written ? "{%}" : "");
        break;
    case HOLDS_FIELD:
        rc = record_field(value, &filling->owned[index], values->record, values->syntax,
                          placeholder->name, message);
        break;
    }
    if (rc == 0)
        *value = part_of(*value, placeholder->part);
    return rc;
}

static int find_values(struct filling *filling, const struct template *template,
                       const struct template_values *values, weir_message *message)
{
    int rc = 0;

    for (size_t i = 0; i < template->placeholder_count && rc == 0; i++) {
        const struct placeholder *placeholder = &template->placeholders[i];
        rc = find_value(filling, i, placeholder, values, message);
        if (rc == 0)
            rc = check_value(placeholder, filling->values[i], values->record->line, message);
    }
    return rc;
}

/* ---- words --------------------------------------------------------------------------------------- */

static struct span piece_value(const struct filling *filling, const struct piece *piece)
{
    return piece->text ? (struct span){ piece->text, piece->length }
                       : filling->values[piece->placeholder];
}

/* Bytes of all words, each with its zero. */
static size_t words_size(const struct template *template, const struct filling *filling)
{
    size_t size = template->word_count;

    for (size_t i = 0; i < template->piece_count; i++)
        size += piece_value(filling, &template->pieces[i]).length;
    return size;
}

/* Writes word w with its zero; answers where the next one goes. */
static char *write_word(char *out, const struct template *template, size_t w,
                        const struct filling *filling)
{
    for (size_t i = template->word_start[w]; i < template->word_start[w + 1]; i++) {
        struct span value = piece_value(filling, &template->pieces[i]);
        memcpy(out, value.text, value.length);
        out += value.length;
    }
    *out = '\0';
    return out + 1;
}

static char **write_words(const struct template *template, const struct filling *filling)
{
    size_t count = template->word_count;
    char **words = malloc((count + 1) * sizeof(words[0]) + words_size(template, filling));
    char *out;

    if (!words)
        return NULL;
    out = (char *)(words + count + 1);
    for (size_t w = 0; w < count; w++) {
        words[w] = out;
        out = write_word(out, template, w, filling);
    }
    words[count] = NULL;
    return words;
}

/* Notes where the numbers of slots go. */
static int find_holes(struct plan *plan, const struct template *template,
                      const struct filling *filling)
{
    for (size_t w = 0; w < template->word_count; w++) {
        size_t offset = 0;
        for (size_t i = template->word_start[w]; i < template->word_start[w + 1]; i++) {
            const struct piece *piece = &template->pieces[i];
            struct plan_hole *larger;
            offset += piece_value(filling, piece).length;
            if (piece->text || template->placeholders[piece->placeholder].kind != HOLDS_SLOT)
                continue;
            larger = realloc(plan->hole, (plan->holes + 1) * sizeof(*larger));
            if (!larger)
                return WEIR_ENOMEM;
            plan->hole = larger;
            plan->hole[plan->holes++] = (struct plan_hole){ w, offset };
        }
    }
    return 0;
}

int template_fill(char ***out, const struct template *template,
                  const struct template_values *values, weir_message *message)
{
    struct filling filling;
    int rc = filling_init(&filling, template->placeholder_count);

    *out = NULL;
    if (rc < 0)
        return rc;
    rc = find_values(&filling, template, values, message);
    if (rc == 0) {
        *out = write_words(template, &filling);
        rc = *out ? 0 : WEIR_ENOMEM;
    }
    if (rc == 0 && values->plan && template_needs(template) & TEMPLATE_NEEDS_SLOT)
        rc = find_holes(values->plan, template, &filling);
    filling_fini(&filling, template->placeholder_count);
    return rc;
}

int template_fill_one(char **out, const struct template *template,
                      const struct template_values *values, weir_message *message)
{
    struct filling filling;
    int rc = filling_init(&filling, template->placeholder_count);

    WR_ASSERT(template->word_count == 1);
    *out = NULL;
    if (rc < 0)
        return rc;
    rc = find_values(&filling, template, values, message);
    if (rc == 0) {
        *out = malloc(words_size(template, &filling));
        if (*out)
            write_word(*out, template, 0, &filling);
        else
            rc = WEIR_ENOMEM;
    }
    filling_fini(&filling, template->placeholder_count);
    return rc;
}
