/* Prints completion scripts for bash, zsh and fish.
 *
 * Each script walks over the words before the cursor as opt_next would, so that it knows whose options
 * may stand there and where the options have ended.
 * SPDX-License-Identifier: MIT */
#include "cli/opt/opt.h"
#include "cli/opt/opt_text.h"

#include <ctype.h>
#include <string.h>

/* ---- what the tables say --------------------------------------------------------------------- */

/* What a command's words are, besides options. */
enum words { WORDS_NONE, WORDS_COMMAND, WORDS_CHOICE, WORDS_FILES, WORDS_SUBCOMMAND };

/* Where the words of bash|zsh|fish begin; NULL: there are none. */
static const char *choices_of(const struct opt_command *command)
{
    const char *begin = command->synopsis ? strchr(command->synopsis, '|') : NULL;

    while (begin && begin > command->synopsis && isalnum((unsigned char)begin[-1]))
        begin--;
    return begin && islower((unsigned char)*begin) &&
                   (begin == command->synopsis || begin[-1] != '-')
               ? begin
               : NULL;
}

static bool is_word(const char *text, size_t length, const char *word)
{
    return length == strlen(word) && strncmp(text, word, length) == 0;
}

static enum words words_of(const struct opt_command *command)
{
    bool named = false;
    size_t length;

    if (command->subcommands)
        return WORDS_SUBCOMMAND;
    for (const char *at = command->synopsis; at && *at; at += length ? length : 1) {
        for (length = 0; isupper((unsigned char)at[length]); length++)
            continue;
        if (is_word(at, length, "COMMAND"))
            return WORDS_COMMAND;
        named |= length && !is_word(at, length, "OPTION");
    }
    return choices_of(command) ? WORDS_CHOICE : named ? WORDS_FILES : WORDS_NONE;
}

static void put_word_choices(FILE *out, const struct opt_command *command)
{
    for (const char *at = choices_of(command); isalnum((unsigned char)*at) || *at == '|'; at++)
        fputc(*at == '|' ? ' ' : *at, out);
}

/* weir itself, then its subcommands; NULL after the last. */
static const struct opt_command *command_at(const struct opt_command *weir, size_t i)
{
    return i == 0 ? weir : weir->subcommands ? weir->subcommands[i - 1] : NULL;
}

static const char *name_of(const struct opt_command *command)
{
    return command->name[0] ? command->name : "weir";
}

/* The option after `opt`, or the command's first. */
static const struct opt *next_option(const struct opt_command *command, const struct opt *opt)
{
    opt = opt ? opt + 1 : command->options;
    while (opt && opt->name && !opt->id) /* a section's title */
        opt++;
    return opt && opt->name ? opt : NULL;
}

/* Text with a backslash before each of `special`, inside '...' that `quote` tells how to write. */
static void put_escaped(FILE *out, struct opt_piece text, const char *special, const char *quote)
{
    for (size_t i = 0; i < text.length; i++) {
        char c = text.text[i] == '\n' ? ' ' : text.text[i];
        if (c == '\'') {
            fputs(quote, out);
            continue;
        }
        if (strchr(special, c))
            fputc('\\', out);
        fputc(c, out);
    }
}

/* ---- bash ------------------------------------------------------------------------------------ */

static void bash_values(FILE *out, const struct opt_command *weir)
{
    static const char *const kinds[] = { "text", "file", "directory", "words" };
    const struct opt_command *command;

    fputs("# What an option of a command takes, into `value`: nothing if it takes none.\n"
          "_weir_value() {\n    case \"$1 $2\" in\n",
          out);
    for (size_t i = 0; (command = command_at(weir, i)); i++)
        for (const struct opt *opt = NULL; (opt = next_option(command, opt));) {
            if (!opt->argument)
                continue;
            fprintf(out, "    '%s --%s'", name_of(command), opt->name);
            if (opt->letter && !opt_value_is_optional(opt))
                fprintf(out, " | '%s -%c'", name_of(command), opt->letter);
            fprintf(out, ") value='%s%s", opt_value_is_optional(opt) ? "?" : "", kinds[opt->value]);
            if (opt->value == OPT_CHOICE)
                fprintf(out, " %s", opt->choices);
            fputs("' ;;\n", out);
        }
    fputs("    *) value= ;;\n    esac\n}\n\n", out);
}

static void bash_commands(FILE *out, const struct opt_command *weir)
{
    const struct opt_command *command;

    fputs("# The options of a command, and what its words are.\n"
          "_weir_command() {\n    case $1 in\n",
          out);
    for (size_t i = 0; (command = command_at(weir, i)); i++) {
        fprintf(out, "    %s)\n        options='", name_of(command));
        for (const struct opt *opt = NULL; (opt = next_option(command, opt));) {
            if (opt->letter)
                fprintf(out, "-%c ", opt->letter);
            fprintf(out, "--%s ", opt->name);
        }
        fputs("'\n        takes='", out);
        switch (words_of(command)) {
        case WORDS_SUBCOMMAND:
            fputs("words", out);
            for (size_t j = 0; weir->subcommands[j]; j++)
                fprintf(out, " %s", weir->subcommands[j]->name);
            break;
        case WORDS_CHOICE:
            fputs("words ", out);
            put_word_choices(out, command);
            break;
        case WORDS_COMMAND:
            fputs("command", out);
            break;
        case WORDS_FILES:
            fputs("file", out);
            break;
        case WORDS_NONE:
            break;
        }
        fputs("'\n        ;;\n", out);
    }
    fputs("    *) options= takes=file ;;\n    esac\n}\n\n", out);
}

/* Note: a word like --color=al comes in three parts, as = is among COMP_WORDBREAKS, unless someone took
 * it out of there; then it comes as one. */
static const char bash_rest[] =
    "# Proposes what begins like `current`: of a kind, with `prefix` before it.\n"
    "_weir_propose() {\n"
    "    case $1 in\n"
    "    words\\ *) mapfile -t COMPREPLY < <(compgen -P \"$prefix\" -W \"${1#words }\" -- "
    "\"$current\") ;;\n"
    "    file)\n"
    "        compopt -o filenames 2>/dev/null\n"
    "        mapfile -t COMPREPLY < <(compgen -P \"$prefix\" -f -- \"$current\")\n"
    "        ;;\n"
    "    directory)\n"
    "        compopt -o filenames 2>/dev/null\n"
    "        mapfile -t COMPREPLY < <(compgen -P \"$prefix\" -d -- \"$current\")\n"
    "        ;;\n"
    "    esac\n"
    "}\n"
    "\n"
    "# Completes the command line that begins at word $1.\n"
    "_weir_command_line() {\n"
    "    if declare -F _comp_command_offset >/dev/null; then\n"
    "        _comp_command_offset \"$1\"\n"
    "    elif declare -F _command_offset >/dev/null; then\n"
    "        _command_offset \"$1\"\n"
    "    elif (($1 < COMP_CWORD)) || [[ $current == */* ]]; then\n"
    "        _weir_propose file\n"
    "    else\n"
    "        mapfile -t COMPREPLY < <(compgen -c -- \"$current\" | sort -u)\n"
    "    fi\n"
    "}\n"
    "\n"
    "_weir() {\n"
    "    local command=weir current=${COMP_WORDS[COMP_CWORD]} prefix= value= options= takes= word "
    "i\n"
    "    COMPREPLY=()\n"
    "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
    "        word=${COMP_WORDS[i]}\n"
    "        case $word in\n"
    "        --)\n"
    "            ((i++))\n"
    "            break\n"
    "            ;;\n"
    "        --*=*) continue ;;\n"
    "        --*)\n"
    "            _weir_value \"$command\" \"$word\"\n"
    "            if [[ ${COMP_WORDS[i + 1]} == = ]]; then\n"
    "                ((i++)) # on the = already: no value yet\n"
    "                ((i == COMP_CWORD)) && current=\n"
    "                value=${value#'?'}\n"
    "            fi\n"
    "            ;;\n"
    "        -?*)\n"
    "            value=\n"
    "            while [[ ! $value && ${#word} -gt 1 ]]; do\n"
    "                _weir_value \"$command\" \"-${word:1:1}\"\n"
    "                word=-${word:2}\n"
    "            done\n"
    "            [[ $word == -?* ]] && value= # it follows at once\n"
    "            ;;\n"
    "        *)\n"
    "            [[ $command != weir ]] && break\n"
    "            command=$word\n"
    "            continue\n"
    "            ;;\n"
    "        esac\n"
    "        [[ ! $value || $value == '?'* ]] && continue\n"
    "        ((++i >= COMP_CWORD)) && {\n"
    "            _weir_propose \"$value\"\n"
    "            return\n"
    "        }\n"
    "    done\n"
    "    _weir_command \"$command\"\n"
    "    if ((i < COMP_CWORD)) || [[ ${COMP_WORDS[i - 1]} == -- || $current != -* ]]; then\n"
    "        if [[ $takes == command ]]; then\n"
    "            _weir_command_line \"$i\"\n"
    "        else\n"
    "            _weir_propose \"$takes\"\n"
    "        fi\n"
    "    elif [[ $current == --*=* ]]; then\n"
    "        _weir_value \"$command\" \"${current%%=*}\"\n"
    "        prefix=${current%%=*}=\n"
    "        current=${current#*=}\n"
    "        _weir_propose \"${value#'?'}\"\n"
    "    else\n"
    "        _weir_propose \"words $options\"\n"
    "    fi\n"
    "}\n"
    "\n"
    "complete -F _weir weir\n";

static void print_bash(FILE *out, const struct opt_command *weir)
{
    fputs("# Completion of weir for bash 4.4 or later: weir completion bash prints this.\n\n", out);
    bash_values(out, weir);
    bash_commands(out, weir);
    fputs(bash_rest, out);
}

/* ---- zsh ------------------------------------------------------------------------------------- */

static void zsh_text(FILE *out, struct opt_piece text)
{
    put_escaped(out, text, "[]:\\", "'\\''");
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
    for (const struct opt *opt = NULL; (opt = next_option(command, opt));) {
        if (opt->letter)
            zsh_option(out, opt, true);
        zsh_option(out, opt, false);
    }
    switch (words_of(command)) {
    case WORDS_SUBCOMMAND:
        fputs(" \\\n        '(-)1:command:_weir_commands' '(-)*:: :->command'", out);
        break;
    case WORDS_COMMAND:
        fputs(" \\\n        '(-)1:command: _command_names -e' '(-)*::argument: _normal'", out);
        break;
    case WORDS_CHOICE:
        fputs(" \\\n        '1: :(", out);
        put_word_choices(out, command);
        fputs(")'", out);
        break;
    case WORDS_FILES:
        fputs(" \\\n        '*:file:_files'", out);
        break;
    case WORDS_NONE:
        break;
    }
}

static void print_zsh(FILE *out, const struct opt_command *weir)
{
    fputs("#compdef weir\n# Completion of weir for zsh: weir completion zsh prints this.\n\n"
          "_weir_commands() {\n    local -a commands=(\n",
          out);
    for (size_t i = 0; weir->subcommands && weir->subcommands[i]; i++) {
        const char *summary = weir->subcommands[i]->summary;
        fprintf(out, "        '%s:", weir->subcommands[i]->name);
        put_escaped(out, (struct opt_piece){ .text = summary, .length = strlen(summary) }, ":\\",
                    "'\\''");
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

/* ---- fish ------------------------------------------------------------------------------------ */

static const char fish_place[] =
    "    set -l command weir\n"
    "    set -l words (commandline -opc)\n"
    "    set -l ended no\n"
    "    set -e words[1]\n"
    "    while set -q words[1]\n"
    "        set -l word $words[1]\n"
    "        switch $word\n"
    "            case --\n"
    "                set -e words[1]\n"
    "                set ended yes\n"
    "                break\n"
    "            case '--*=*'\n"
    "            case '--*'\n"
    "                contains -- \"$command $word\" $takes; and set -e words[1]\n"
    "            case '-?*'\n"
    "                # In a cluster, the first letter that takes a value takes the rest, or the "
    "next word.\n"
    "                for i in (seq 2 (string length -- $word))\n"
    "                    if contains -- \"$command -\"(string sub -s $i -l 1 -- $word) $takes\n"
    "                        test $i = (string length -- $word); and set -e words[1]\n"
    "                        break\n"
    "                    end\n"
    "                end\n"
    "            case '*'\n"
    "                if test $command != weir\n"
    "                    set ended yes\n"
    "                    break\n"
    "                end\n"
    "                set command $word\n"
    "        end\n"
    "        set -q words[1]; and set -e words[1]\n"
    "    end\n"
    "    printf '%s\\n' $command $ended $words\n"
    "end\n"
    "\n"
    "# Whether the cursor is where options of this command may stand.\n"
    "function __weir_options_of\n"
    "    set -l place (__weir_place)\n"
    "    test $place[1] = $argv[1] -a $place[2] = no\n"
    "end\n"
    "\n"
    "# Whether the cursor is at the words of this command.\n"
    "function __weir_words_of\n"
    "    set -l place (__weir_place)\n"
    "    test $place[1] = $argv[1]\n"
    "end\n"
    "\n"
    "# Completes the command line after the options.\n"
    "function __weir_command_line\n"
    "    set -l place (__weir_place)\n"
    "    set -l before\n"
    "    set -q place[3]; and set before (string escape -- $place[3..-1])\n"
    "    set -l current (commandline -ct)\n"
    "    test $place[2] = no; and string match -q -- '-*' $current; and return\n"
    "    set -l line (string join ' ' -- $before \"$current\")\n"
    "    complete \"--do-complete=$line\"\n"
    "end\n"
    "\n"
    "complete -c weir -f\n";

static void fish_text(FILE *out, struct opt_piece text)
{
    fputc('\'', out);
    put_escaped(out, text, "\\", "\\'");
    fputc('\'', out);
}

static void fish_option(FILE *out, const struct opt_command *command, const struct opt *opt)
{
    fprintf(out, "complete -c weir -n '__weir_options_of %s'", name_of(command));
    if (opt->letter)
        fprintf(out, " -s %c", opt->letter);
    fprintf(out, " -l %s", opt->name);
    /* An optional value stays unasked for: fish would take the next word for it. */
    if (opt->argument && !opt_value_is_optional(opt))
        fputs(opt->value == OPT_FILE ? " -r -F" : " -x", out);
    if (opt->argument && opt->value == OPT_DIRECTORY)
        fputs(" -a '(__fish_complete_directories (commandline -ct))'", out);
    else if (opt->argument && opt->value == OPT_CHOICE)
        fprintf(out, " -a '%s'", opt->choices);
    fputs(" -d ", out);
    fish_text(out, opt_text_sentence(opt->help));
    fputc('\n', out);
}

static void fish_words(FILE *out, const struct opt_command *command)
{
    switch (words_of(command)) {
    case WORDS_SUBCOMMAND:
        for (size_t i = 0; command->subcommands[i]; i++) {
            const struct opt_command *sub = command->subcommands[i];
            fprintf(out, "complete -c weir -n '__weir_words_of weir' -a %s -d ", sub->name);
            fish_text(out,
                      (struct opt_piece){ .text = sub->summary, .length = strlen(sub->summary) });
            fputc('\n', out);
        }
        break;
    case WORDS_COMMAND:
        fprintf(out, "complete -c weir -n '__weir_words_of %s' -a '(__weir_command_line)'\n",
                command->name);
        break;
    case WORDS_CHOICE:
        fprintf(out, "complete -c weir -n '__weir_words_of %s' -a '", command->name);
        put_word_choices(out, command);
        fputs("'\n", out);
        break;
    case WORDS_FILES:
        fprintf(out, "complete -c weir -n '__weir_words_of %s' -F\n", command->name);
        break;
    case WORDS_NONE:
        break;
    }
}

static void print_fish(FILE *out, const struct opt_command *weir)
{
    const struct opt_command *command;

    fputs(
        "# Completion of weir for fish: weir completion fish prints this.\n\n"
        "# Where the cursor is: the command, whether its options have ended, and the words since.\n"
        "function __weir_place\n    set -l takes",
        out);
    for (size_t i = 0; (command = command_at(weir, i)); i++)
        for (const struct opt *opt = NULL; (opt = next_option(command, opt));) {
            if (!opt->argument || opt_value_is_optional(opt))
                continue;
            fprintf(out, " \\\n        '%s --%s'", name_of(command), opt->name);
            if (opt->letter)
                fprintf(out, " '%s -%c'", name_of(command), opt->letter);
        }
    fputc('\n', out);
    fputs(fish_place, out);
    for (size_t i = 0; (command = command_at(weir, i)); i++) {
        fputc('\n', out);
        fish_words(out, command);
        for (const struct opt *opt = NULL; (opt = next_option(command, opt));)
            fish_option(out, command, opt);
    }
}

/* ---- all ------------------------------------------------------------------------------------- */

bool opt_print_completion(FILE *out, const struct opt_command *weir, const char *shell)
{
    static const struct {
        const char *name;
        void (*print)(FILE *out, const struct opt_command *weir);
    } shells[] = { { "bash", print_bash }, { "zsh", print_zsh }, { "fish", print_fish } };

    for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++)
        if (strcmp(shells[i].name, shell) == 0) {
            shells[i].print(out, weir);
            return true;
        }
    return false;
}
