/* Prints the completion script for zsh.
 * SPDX-License-Identifier: MIT */
#include "cli/opt/opt_complete.h"

#include <string.h>

static void zsh_text(FILE *out, struct opt_piece text)
{
    complete_put_escaped(out, text, "[]:\\", "'\\''");
}

static void zsh_name(FILE *out, const struct opt *opt, bool is_letter)
{
    const char *attached = !opt->argument || (is_letter && opt_value_is_optional(opt)) ? ""
                           : is_letter                                                 ? "+"
                           : opt_value_is_optional(opt)                                ? "=-"
                                                                                       : "=";
    if (is_letter)
        fprintf(out, "-%c%s", opt->letter, attached);
    else
        fprintf(out, "--%s%s", opt->name, attached);
}

/* '*--name=[what it does]:ARGUMENT:action'; the star, as options may be given again. */
static void zsh_option(FILE *out, const struct opt *opt, bool is_letter)
{
    bool optional = opt_value_is_optional(opt);

    fputs(" \\\n        '*", out);
    zsh_name(out, opt, is_letter);
    fputc('[', out);
    zsh_text(out, opt_text_sentence(opt->help));
    fputc(']', out);
    if (opt->argument && !(is_letter && optional)) {
        fputs(optional ? "::" : ":", out);
        zsh_text(out, (struct opt_piece){ .text = opt->argument + optional,
                                          .length = strlen(opt->argument) - (optional ? 2 : 0) });
        switch (opt->value) {
        case OPT_TEXT:
            fputs(": ", out);
            break;
        case OPT_FILE:
            fputs(":_files", out);
            break;
        case OPT_DIRECTORY:
            fputs(":_files -/", out);
            break;
        case OPT_CHOICE:
            fprintf(out, ":(%s)", opt->choices);
            break;
        }
    }
    fputc('\'', out);
}

static void zsh_arguments(FILE *out, const struct opt_command *command)
{
    fputs("    _arguments -s -S -C :", out);
    for (const struct opt *opt = NULL; (opt = opt_after(command, opt));) {
        if (opt->letter)
            zsh_option(out, opt, true);
        zsh_option(out, opt, false);
    }
    switch (complete_words_of(command)) {
    case WORDS_SUBCOMMAND:
        fputs(" \\\n        '(-)1:command:_weir_commands' '(-)*:: :->command'", out);
        break;
    case WORDS_COMMAND:
        fputs(" \\\n        '(-)1:command: _command_names -e' '(-)*::argument: _normal'", out);
        break;
    case WORDS_CHOICE:
        fputs(" \\\n        '1: :(", out);
        complete_put_choices(out, command);
        fputs(")'", out);
        break;
    case WORDS_FILES:
        fputs(" \\\n        '*:file:_files'", out);
        break;
    case WORDS_NONE:
        break;
    }
}

void complete_print_zsh(FILE *out, const struct opt_command *weir)
{
    fputs("#compdef weir\n# Completion of weir for zsh: weir completion zsh prints this.\n\n"
          "_weir_commands() {\n    local -a commands=(\n",
          out);
    for (size_t i = 0; weir->subcommands && weir->subcommands[i]; i++) {
        const char *summary = weir->subcommands[i]->summary;
        fprintf(out, "        '%s:", weir->subcommands[i]->name);
        complete_put_escaped(out, (struct opt_piece){ .text = summary, .length = strlen(summary) },
                             ":\\", "'\\''");
        fputs("'\n", out);
    }
    fputs("    )\n    _describe -t commands 'weir command' commands\n}\n", out);
    for (size_t i = 0; weir->subcommands && weir->subcommands[i]; i++) {
        fprintf(out, "\n_weir-%s() {\n", weir->subcommands[i]->name);
        zsh_arguments(out, weir->subcommands[i]);
        fputs("\n}\n", out);
    }
    fputs("\n_weir() {\n    local curcontext=$curcontext state line ret=1\n"
          "    typeset -A opt_args\n",
          out);
    zsh_arguments(out, weir);
    fputs(" && ret=0\n"
          "    if [[ $state == command ]]; then\n"
          "        curcontext=${curcontext%:*:*}:weir-$words[1]:\n"
          "        if (($+functions[_weir-$words[1]])); then\n"
          "            _weir-$words[1] && ret=0\n"
          "        else\n"
          "            _default && ret=0\n"
          "        fi\n"
          "    fi\n"
          "    return ret\n"
          "}\n"
          "\n"
          "# Read by `source` or found in $fpath: only then is this called by its name.\n"
          "if [[ $funcstack[1] == _weir ]]; then\n"
          "    _weir \"$@\"\n"
          "else\n"
          "    compdef _weir weir\n"
          "fi\n",
          out);
}
