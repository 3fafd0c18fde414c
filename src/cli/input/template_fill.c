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
    static const char *const labels[] = {
        [HOLDS_RECORD] = "",      [HOLDS_STEM] = ".",       [HOLDS_BASE] = "/",
        [HOLDS_DIRECTORY] = "//", [HOLDS_BASE_STEM] = "/.", [HOLDS_KEY] = "key",
        [HOLDS_SEQ] = "seq",
    };

    return placeholder->kind == HOLDS_FIELD ? placeholder->name : labels[placeholder->kind];
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
    if (placeholder->numeric && !is_number(value))
        return refuse(message,
                      "line %" PRIu64
                      ": {%.80s} is used in shell arithmetic, but is not a whole number",
                      line, label_of(placeholder));
    return 0;
}

static int find_value(struct filling *filling, size_t index, const struct placeholder *placeholder,
                      const struct template_values *values, weir_message *message)
{
    struct span record = { values->record->text, values->record->length };
    struct span *value = &filling->values[index];

    switch (placeholder->kind) {
    case HOLDS_RECORD:
        *value = record;
        break;
    case HOLDS_STEM:
        *value = stem_of(record);
        break;
    case HOLDS_BASE:
        *value = base_of(record);
        break;
    case HOLDS_DIRECTORY:
        *value = directory_of(record);
        break;
    case HOLDS_BASE_STEM:
        *value = stem_of(base_of(record));
        break;
    case HOLDS_KEY:
        *value = (struct span){ values->key ? values->key : "", 0 };
        value->length = strlen(value->text);
        break;
    case HOLDS_SEQ:
        snprintf(filling->seq, sizeof(filling->seq), "%" PRIu64, values->seq);
        *value = (struct span){ filling->seq, strlen(filling->seq) };
        break;
    case HOLDS_FIELD:
        return record_field(value, &filling->owned[index], values->record, values->syntax,
                            placeholder->name, message);
    }
    return 0;
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
