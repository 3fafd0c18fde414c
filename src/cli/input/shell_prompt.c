/* ${x@P}: bash expands the variable as it does a prompt, and runs commands that stand in it.
 *
 * A value gets into a variable in more ways than can be followed. So this is refused in a script with placeholders, unless
 * all that the script does with the variable is to read it and to give it a fixed text.
 * SPDX-License-Identifier: MIT */
#include "cli/input/shell_script.h"

#include "cli/opt/refuse.h"

#include <string.h>

struct name {
    const char *text;
    size_t length;
};

/* The variable of the text of a ${...} that ends with @P; false: it is another kind of ${...}. */
static bool expands(struct name *name, const char *from, const char *end)
{
    if (end - from < 3 || memcmp(end - 2, "@P", 2) != 0)
        return false;
    end -= 2;
    *name = (struct name){ from, 0 };
    from += *from == '!' && from + 1 < end;
    if (shell_is_name_character(*from))
        while (from < end && shell_is_name_character(*from))
            from++;
    else if (strchr("@*#?-$!", *from))
        from++;
    if (from < end && *from == '[' && end[-1] == ']')
        from = end;
    name->length = (size_t)(from - name->text);
    return from == end;
}

/* Whether the variable is one that bash has for prompts. */
static bool is_prompt(const struct name *name)
{
    return name->length == 3 && memcmp(name->text, "PS", 2) == 0 && strchr("0124", name->text[2]);
}

/* Whether a word of the script that begins at `at`, in quotes or without, is a text that no value gets into. */
static bool is_fixed_text(const struct script *s, const char *at)
{
    char quote = at < s->end && (*at == '\'' || *at == '"') ? *at : '\0';
    struct held held;

    for (at += quote != 0; at < s->end; at++) {
        if (quote ? *at == quote : strchr(" \t\n;&|", *at) != NULL)
            break;
        if (quote != '\'' && *at == '\\')
            at++;
        else if ((quote != '\'' && strchr(quote ? "$`" : "$`'\"()<>", *at)) ||
                 placeholder_at(&held, at, s->end, s->syntax))
            return false;
    }
    return !quote || (at < s->end && (at + 1 == s->end || strchr(" \t\n;&|", at[1])));
}

/* What the script does at `at` with the variable whose name stands there. */
enum deed { READS, GIVES_FIXED_TEXT, ELSE };

static enum deed deed_at(const struct script *s, const char *at, size_t length)
{
    const char *after = at + length;
    size_t before = (size_t)(at - s->from), left = (size_t)(s->end - after);

    if (before && at[-1] == '$')
        return READS;
    if (before > 1 && at[-1] == '{' && at[-2] == '$') /* ${x=...} and ${x:=...} assign */
        return left && (*after == '=' || (left > 1 && *after == ':' && after[1] == '=')) ? ELSE
                                                                                         : READS;
    if ((!before || strchr(" \t\n;&|(", at[-1])) && left && *after == '=')
        return is_fixed_text(s, after + 1) ? GIVES_FIXED_TEXT : ELSE;
    return ELSE;
}

/* Whether no value can get into the variable. */
static bool is_fixed(const struct script *s, const struct name *name)
{
    bool fixed = is_prompt(name);

    for (const char *at = s->from; name->length <= (size_t)(s->end - at); at++) {
        const char *after = at + name->length;
        if (memcmp(at, name->text, name->length) != 0 ||
            (at > s->from && shell_is_name_character(at[-1])) ||
            (after < s->end && shell_is_name_character(*after)))
            continue;
        switch (deed_at(s, at, name->length)) {
        case READS:
            break;
        case GIVES_FIXED_TEXT:
            fixed = true;
            break;
        case ELSE:
            return false;
        }
    }
    return fixed;
}

static bool has_values(const struct template *template)
{
    for (size_t i = 0; i < template->placeholder_count; i++)
        if (template->placeholders[i].kind != HOLDS_SEQ &&
            template->placeholders[i].kind != HOLDS_SLOT)
            return true;
    return false;
}

void prompt_note(struct script *s, const char *from, const char *end)
{
    struct name name;

    if (!s->prompt && expands(&name, from, end) && !is_fixed(s, &name)) {
        s->prompt = from;
        s->prompt_length = (size_t)(end - from);
    }
}

int prompt_check(const struct script *s)
{
    if (!s->prompt || !has_values(s->template))
        return 0;
    return refuse(s->message,
                  "${%.*s}: bash would run commands in a value that gets there: leave out @P, or "
                  "give the variable a fixed text",
                  s->prompt_length < 80 ? (int)s->prompt_length : 80, s->prompt);
}
