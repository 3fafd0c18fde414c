/* Prints the completion script for bash.
 * SPDX-License-Identifier: MIT */
#include "cli/opt/opt_complete.h"

static void bash_values(FILE *out, const struct opt_command *weir)
{
    static const char *const kinds[] = { "text", "file", "directory", "words" };
    const struct opt_command *command;

    fputs("# What an option of a command takes, into `value`: nothing if it takes none.\n"
          "_weir_value() {\n    case \"$1 $2\" in\n",
          out);
    for (size_t i = 0; (command = complete_command_at(weir, i)); i++)
        for (const struct opt *opt = NULL; (opt = opt_after(command, opt));) {
            if (!opt->argument)
                continue;
            fprintf(out, "    '%s --%s'", complete_name_of(command), opt->name);
            if (opt->letter && !opt_value_is_optional(opt))
                fprintf(out, " | '%s -%c'", complete_name_of(command), opt->letter);
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
    for (size_t i = 0; (command = complete_command_at(weir, i)); i++) {
        fprintf(out, "    %s)\n        options='", complete_name_of(command));
        for (const struct opt *opt = NULL; (opt = opt_after(command, opt));) {
            if (opt->letter)
                fprintf(out, "-%c ", opt->letter);
            fprintf(out, "--%s ", opt->name);
        }
        fputs("'\n        takes='", out);
        switch (complete_words_of(command)) {
        case WORDS_SUBCOMMAND:
            fputs("words", out);
            for (size_t j = 0; weir->subcommands[j]; j++)
                fprintf(out, " %s", weir->subcommands[j]->name);
            break;
        case WORDS_CHOICE:
            fputs("words ", out);
            complete_put_choices(out, command);
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

/* Note: a word like --color=al comes in three parts, as = is among COMP_WORDBREAKS, unless the user took
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

void complete_print_bash(FILE *out, const struct opt_command *weir)
{
    fputs("# Completion of weir for bash 4.4 or later: weir completion bash prints this.\n\n", out);
    bash_values(out, weir);
    bash_commands(out, weir);
    fputs(bash_rest, out);
}
