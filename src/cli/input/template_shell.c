/* Command templates for a shell: a script in which every value is a variable.
 * SPDX-License-Identifier: MIT */
#include "cli/input/shell_script.h"
#include "cli/opt/refuse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The words, joined by blanks; *length without the final zero. */
static char *join(size_t *length, char *const *words, size_t count)
{
    size_t size = 1;
    char *joined, *at;

    for (size_t i = 0; i < count; i++)
        size += strlen(words[i]) + 1;
    joined = at = malloc(size);
    if (!joined)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        if (i)
            *at++ = ' ';
        at = stpcpy(at, words[i]);
    }
    *at = '\0';
    *length = (size_t)(at - joined);
    return joined;
}

/* weir_1=$1; weir_2=$2; shift 2; and the script, on one line so that line numbers in the shell's messages
 * are those of the user's text. */
static char *with_assignments(const char *script, size_t count)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    bool failed;

    if (!f)
        return NULL;
    for (size_t i = 1; i <= count; i++)
        fprintf(f, i < 10 ? "weir_%zu=$%zu; " : "weir_%zu=${%zu}; ", i, i);
    if (count)
        fprintf(f, "shift %zu; ", count);
    fputs(script, f);
    failed = ferror(f);
    if (fclose(f) == 0 && !failed)
        return text;
    free(text);
    return NULL;
}

/* shell -c script sh value... */
static int add_words(struct template *template, const char *shell, const char *script)
{
    size_t shell_length = strlen(shell), script_length = strlen(script);
    char *text = template->text = malloc(shell_length + script_length + 1);
    const struct {
        const char *text;
        size_t length;
    } words[] = {
        { text, shell_length }, { "-c", 2 }, { text + shell_length, script_length }, { "sh", 2 }
    };
    int rc = 0;

    if (!text)
        return WEIR_ENOMEM;
    stpcpy(stpcpy(text, shell), script);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]) && rc == 0; i++) {
        rc = template_open_word(template);
        if (rc == 0)
            rc = template_add_text(template, words[i].text, words[i].length);
    }
    for (size_t i = 0; i < template->placeholder_count && rc == 0; i++) {
        rc = template_open_word(template);
        if (rc == 0)
            rc = template_add_reference(template, i);
    }
    return rc;
}

static int build(struct template *template, struct script *s, const char *shell)
{
    char *script;
    int rc = script_translate(s);

    if (rc < 0)
        return rc;
    script = with_assignments(s->out, template->placeholder_count);
    if (!script)
        return WEIR_ENOMEM;
    rc = add_words(template, shell, script);
    free(script);
    return rc;
}

int template_new_shell(struct template **out, const char *shell, char *const *words, size_t count,
                       const struct record_syntax *syntax, weir_message *message)
{
    struct template *template = NULL;
    struct script *s = NULL;
    char *source = NULL;
    size_t length;
    int rc = WEIR_ENOMEM;

    *out = NULL;
    if (!count)
        return refuse(message, "no command given");
    source = join(&length, words, count);
    template = calloc(1, sizeof(*template));
    s = calloc(1, sizeof(*s));
    if (source && template && s) {
        s->template = template;
        s->syntax = syntax;
        s->message = message;
        s->from = s->at = source;
        s->end = source + length;
        rc = build(template, s, shell);
        free(s->out);
    }
    free(s);
    free(source);
    if (rc < 0)
        template_free(template);
    else
        *out = template;
    return rc;
}
