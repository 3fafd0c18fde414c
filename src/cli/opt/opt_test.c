/* SPDX-License-Identifier: MIT */
#include "cli/opt/opt.h"

#include "cli/opt/opt_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ARG_FILE = 1, JOBS, TIMEOUT, TIMES, TIME, LIMIT, DIRECTORY, COLOR, PROGRESS, QUIET };

/* A small table with one of each kind. */
static const struct opt options[] = {
    { .name = "Input" },
    { ARG_FILE, 'a', "arg-file", "FILE", "Read FILE. Not standard input.", OPT_FILE, NULL },
    { .name = "Who may run" },
    { JOBS, 'j', "jobs", "N", "Run at most N at once, e.g. 4; it's the number of CPUs.", 0, NULL },
    { TIMEOUT, 0, "timeout", "DURATION", "End what takes longer; see --jobs.", 0, NULL },
    { TIMES, 0, "times", NULL, "Show [how: long] \\each\\ took.", 0, NULL },
    { TIME, 0, "time", NULL, "Show the time.", 0, NULL },
    { LIMIT, 'l', "limit", "[PATTERN=]N", "At most N of those that match PATTERN.", 0, NULL },
    { DIRECTORY, 'C', "directory", "DIR", "Run in DIR.", OPT_DIRECTORY, NULL },
    { COLOR, 0, "color", "WHEN", "Colours: never, auto or always.", OPT_CHOICE,
      "never auto always" },
    { COLOR, 0, "colour", "WHEN", "The same.", OPT_CHOICE, "never auto always" },
    { PROGRESS, 'p', "progress", "[HOW]", "Show progress.", OPT_CHOICE, "plain live" },
    { QUIET, 'q', "quiet-down-please", NULL, "Say less.", 0, NULL },
    { 0 },
};

static const struct opt_section sections[] = {
    { "Exit status",
      "Zero if\nall went well.\n\n    0      fine\n\n    .1     not\n\nNot so if not." },
    { "Environment", ".dots and \\backslashes and 'quotes' and caf\xc3\xa9s." },
    { 0 },
};

static const struct opt_command map = {
    .name = "map",
    .synopsis = "[OPTION]... [--] COMMAND [ARGUMENT]...",
    .summary = "run a command for each record",
    .intro =
        "Reads records and runs COMMAND for each. A second sentence is here so that lines wrap.",
    .options = options,
    .sections = sections,
};
static const struct opt_command run = {
    .name = "run", .synopsis = "PLAN\n--list", .summary = "run a plan", .intro = "Runs it."
};
static const struct opt_command completion = { .name = "completion",
                                               .synopsis = "bash|zsh|fish",
                                               .summary = "print a shell's script" };
static const struct opt_command *const commands[] = { &map, &run, &completion, NULL };
static const struct opt weir_options[] = {
    { 1, 'h', "help", NULL, "Print this.", OPT_TEXT, NULL },
    { 0 },
};
static const struct opt_command weir = { .name = "",
                                         .synopsis = "[OPTION]... COMMAND [ARGUMENT]...",
                                         .summary = "bounded work for the shell",
                                         .options = weir_options,
                                         .subcommands = commands };

/* ---- reading --------------------------------------------------------------------------------- */

static struct opt_reader reader;
static weir_message message;

#define START(...) opt_start(&reader, &map, (char *[]){ __VA_ARGS__, NULL })

static void expect(int id, const char *value)
{
    memset(&message, 'x', sizeof(message));
    assert_int_equal(opt_next(&reader, &message), id);
    if (value)
        assert_string_equal(reader.value, value);
    else
        assert_null(reader.value);
    if (id > 0)
        assert_int_equal(reader.found->id, id);
}

static void expect_end(const char *word)
{
    for (int again = 0; again < 2; again++) {
        expect(OPT_END, NULL);
        if (word)
            assert_string_equal(*reader.argv, word);
        else
            assert_null(*reader.argv);
    }
}

static void expect_wrong(const char *sentence)
{
    memset(&message, 'x', sizeof(message));
    assert_int_equal(opt_next(&reader, &message), OPT_WRONG);
    assert_string_equal(message.text, sentence);
}

static void test_no_arguments_are_the_end(void **state)
{
    (void)state;
    opt_start(&reader, &map, (char *[]){ NULL });
    expect_end(NULL);
    opt_start(&reader, &run, (char *[]){ "word", NULL }); /* no table at all */
    expect_end("word");
}

static void test_values_follow_or_are_attached(void **state)
{
    (void)state;
    START("-j4", "-j", "5", "--jobs", "6", "--jobs=7", "--jobs=", "-l", "a=b=3", "--limit=a=3");
    expect(JOBS, "4");
    expect(JOBS, "5");
    expect(JOBS, "6");
    expect(JOBS, "7");
    expect(JOBS, "");
    expect(LIMIT, "a=b=3");
    expect(LIMIT, "a=3");
    expect_end(NULL);
}

static void test_a_value_may_look_like_an_option(void **state)
{
    (void)state;
    START("-j", "-q", "--timeout", "--times", "-j-", "-l", "-", "x");
    expect(JOBS, "-q");
    expect(TIMEOUT, "--times");
    expect(JOBS, "-");
    expect(LIMIT, "-");
    expect_end("x");
}

static void test_letters_stand_together(void **state)
{
    (void)state;
    START("-qpq", "-qj4", "-qqC", "place", "word");
    expect(QUIET, NULL);
    expect(PROGRESS, NULL);
    expect(QUIET, NULL);
    expect(QUIET, NULL);
    expect(JOBS, "4");
    expect(QUIET, NULL);
    expect(QUIET, NULL);
    expect(DIRECTORY, "place");
    expect_end("word");
}

static void test_options_end_at_the_first_word(void **state)
{
    (void)state;
    START("-q", "make", "-q", "--", "-x");
    expect(QUIET, NULL);
    expect_end("make");
    START("-", "-q");
    expect_end("-");
    START("", "-q");
    expect_end("");
}

static void test_two_dashes_end_the_options_for_good(void **state)
{
    (void)state;
    START("-q", "--", "-q");
    expect(QUIET, NULL);
    expect_end("-q");
    START("--", "--");
    expect_end("--");
    START("--");
    expect_end(NULL);
}

static void test_a_beginning_is_enough_if_it_fits_one(void **state)
{
    (void)state;
    START("--j", "4", "--timeo=3", "--arg=x", "--quiet", "--q");
    expect(JOBS, "4");
    expect(TIMEOUT, "3");
    expect(ARG_FILE, "x");
    expect(QUIET, NULL);
    expect(QUIET, NULL);
    expect_end(NULL);
}

static void test_an_exact_name_wins_over_longer_ones(void **state)
{
    (void)state;
    START("--time", "--times");
    expect(TIME, NULL);
    expect(TIMES, NULL);
}

static void test_two_names_of_one_option_are_no_question(void **state)
{
    (void)state;
    START("--col=never");
    expect(COLOR, "never");
}

static void test_a_beginning_of_several_lists_them(void **state)
{
    (void)state;
    START("--ti", "--tim=3", "--times");
    expect_wrong("--ti could be --timeout, --times or --time");
    expect_wrong("--tim could be --timeout, --times or --time");
    expect(TIMES, NULL); /* a caller that goes on finds the rest */
}

static void test_a_typo_gets_a_guess(void **state)
{
    static const char *const cases[][2] = {
        { "--tiemout", "--tiemout: no such option; did you mean --timeout?" },
        { "--timeuot=3", "--timeuot: no such option; did you mean --timeout?" },
        { "--job s", "--job s: no such option; did you mean --jobs?" },
        { "--jbos", "--jbos: no such option; did you mean --jobs?" },
        { "--progres-", "--progres-: no such option; did you mean --progress?" },
        { "--Times", "--Times: no such option; did you mean --times?" },
        { "--frobnicate", "--frobnicate: no such option" },
        { "--x", "--x: no such option" },
        { "--=3", "--: no such option" },
        { "--Input", "--Input: no such option" }, /* a section's title */
        { "--Who may run", "--Who may run: no such option" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        opt_start(&reader, &map, (char *[]){ (char *)cases[i][0], NULL });
        expect_wrong(cases[i][1]);
        assert_null(reader.found);
    }
}

static void test_an_unknown_letter_is_named(void **state)
{
    (void)state;
    START("-x", "-qx4", "-timeout=3", "-\xc3\xa9", "-q");
    expect_wrong("-x: no such option");
    expect(QUIET, NULL);
    expect_wrong("-qx4: unknown option -x");
    expect_wrong("-timeout=3: unknown option -t; did you mean --timeout?");
    expect_wrong("-\xc3\xa9: no such option");
    expect(QUIET, NULL);
    expect_end(NULL);
}

static void test_a_missing_value_is_told(void **state)
{
    (void)state;
    START("--jobs");
    expect_wrong("--jobs needs a value: --jobs N");
    assert_int_equal(reader.found->id, JOBS);
    START("-qj");
    expect(QUIET, NULL);
    expect_wrong("-j needs a value: -j N");
    START("--limit");
    expect_wrong("--limit needs a value: --limit [PATTERN=]N");
}

static void test_two_dashes_are_no_value(void **state)
{
    (void)state;
    START("--jobs", "--", "make");
    expect_wrong("--jobs needs a value: --jobs N");
    START("-j", "--", "make");
    expect_wrong("-j needs a value: -j N");
    START("--jobs=--", "-j--"); /* unless it is meant */
    expect(JOBS, "--");
    expect(JOBS, "--");
}

static void test_a_flag_takes_no_value(void **state)
{
    (void)state;
    START("--times=3", "--quiet=");
    expect_wrong("--times takes no value");
    expect_wrong("--quiet-down-please takes no value");
}

static void test_an_optional_value_is_only_taken_after_an_equals_sign(void **state)
{
    (void)state;
    START("--progress=live", "--progress=", "-p", "--progress", "live");
    expect(PROGRESS, "live");
    expect(PROGRESS, "");
    expect(PROGRESS, NULL);
    expect(PROGRESS, NULL);
    expect_end("live");
}

static void test_a_word_that_is_far_too_long_is_cut(void **state)
{
    char *word = malloc(10001);
    (void)state;
    memset(word, 'x', 10000);
    word[10000] = '\0';
    memcpy(word, "--", 2);
    START(word);
    expect(OPT_WRONG, NULL);
    assert_in_range(strlen(message.text), 20, 120);
    word[1] = 'x';
    START(word);
    expect(OPT_WRONG, NULL);
    assert_in_range(strlen(message.text), 20, 120);
    free(word);
}

static void test_a_message_need_not_be_wanted(void **state)
{
    (void)state;
    START("--ti", "--frob", "-x", "--times=", "--jobs");
    for (int i = 0; i < 5; i++)
        assert_int_equal(opt_next(&reader, NULL), OPT_WRONG);
}

static void test_a_subcommand_is_found_or_guessed(void **state)
{
    (void)state;
    assert_ptr_equal(opt_subcommand(&weir, "map", &message), &map);
    assert_null(opt_subcommand(&weir, "mpa", &message));
    assert_string_equal(message.text, "mpa: no such command; did you mean map?");
    assert_null(opt_subcommand(&weir, "frobnicate", &message));
    assert_string_equal(message.text, "frobnicate: no such command");
    assert_null(opt_subcommand(&weir, "", &message));
    assert_null(opt_subcommand(&map, "map", NULL));
}

/* ---- printing -------------------------------------------------------------------------------- */

static char *text;

static FILE *open_text(void)
{
    static size_t size;
    return open_memstream(&text, &size);
}

static char *help_of(const struct opt_command *command, int width)
{
    FILE *out = open_text();
    opt_print_help(out, command, width);
    fclose(out);
    return text;
}

static char *man_of(const struct opt_command *command)
{
    FILE *out = open_text();
    opt_print_man(out, command, "0.2.0", "2025-01-31");
    fclose(out);
    return text;
}

static char *completion_for(const char *shell)
{
    FILE *out = open_text();
    assert_true(opt_print_completion(out, &weir, shell));
    fclose(out);
    return text;
}

static void assert_has(const char *part)
{
    if (!strstr(text, part))
        fail_msg("'%s' is not in:\n%s", part, text);
}

static void assert_has_not(const char *part)
{
    if (strstr(text, part))
        fail_msg("'%s' is in:\n%s", part, text);
}

static int free_text(void **state)
{
    (void)state;
    free(text);
    text = NULL;
    return 0;
}

static void test_help_is_in_two_columns(void **state)
{
    (void)state;
    help_of(&map, 80);
    assert_has("Usage: weir map [OPTION]... [--] COMMAND [ARGUMENT]...\n\n"
               "Run a command for each record.\n\n"
               "Reads records and runs COMMAND for each. A second sentence is here so that lines\n"
               "wrap.\n\n"
               "Input:\n"
               "  -a, --arg-file FILE      Read FILE. Not standard input.\n\n"
               "Who may run:\n"
               "  -j, --jobs N             Run at most N at once, e.g. 4; it's the number of\n"
               "                           CPUs.\n"
               "      --timeout DURATION   End what takes longer; see --jobs.\n");
    assert_has("  -l, --limit [PATTERN=]N  At most");
    assert_has("  -p, --progress[=HOW]     Show");
    assert_has("\n\nExit status:\n"
               "  Zero if all went well.\n\n"
               "    0      fine\n\n"
               "    .1     not\n\n"
               "  Not so if not.\n\n"
               "Environment:\n  .dots");
}

static void test_narrow_help_puts_explanations_below(void **state)
{
    (void)state;
    help_of(&map, 50);
    assert_has("  -a, --arg-file FILE\n        Read FILE. Not standard input.\n");
    assert_has("Usage: weir map [OPTION]... [--] COMMAND\n           [ARGUMENT]...\n");
}

static void test_no_line_of_help_is_too_wide(void **state)
{
    (void)state;
    for (int width = 0; width < 200; width++) {
        int limit = width < 40 ? 40 : width > 100 ? 100 : width;
        for (char *line = strtok(help_of(&map, width), "\n"); line; line = strtok(NULL, "\n"))
            assert_in_range(opt_text_columns(line, strlen(line)), 1, limit);
        free_text(NULL);
    }
}

static void test_an_entry_too_wide_for_its_column_stands_alone(void **state)
{
    static const struct opt wide[] = {
        { 1, 0, "short", NULL, "One.", 0, NULL },
        { 2, 0, "a-name-that-goes-on-and-on", "ARGUMENT", "Two.", 0, NULL },
        { 3, 0, "mute", NULL, NULL, 0, NULL },
        { 0 },
    };
    const struct opt_command command = { .name = "x", .summary = "do", .options = wide };
    (void)state;
    assert_string_equal(help_of(&command, 80), "Usage: weir x\n\nDo.\n\nOptions:\n"
                                               "  --short  One.\n"
                                               "  --a-name-that-goes-on-and-on ARGUMENT\n"
                                               "           Two.\n"
                                               "  --mute\n");
}

static void test_help_of_weir_lists_commands(void **state)
{
    (void)state;
    help_of(&weir, 80);
    assert_has("Usage: weir [OPTION]... COMMAND [ARGUMENT]...\n");
    assert_has("\nCommands:\n"
               "  map         run a command for each record\n"
               "  run         run a plan\n"
               "  completion  print a shell's script\n\n"
               "weir COMMAND --help");
    assert_has("\nOptions:\n  -h, --help  Print this.\n");
}

static void test_usage_may_have_several_lines(void **state)
{
    (void)state;
    help_of(&run, 80);
    assert_has("Usage: weir run PLAN\n       weir run --list\n\nRun a plan.\n\nRuns it.\n");
}

static void test_a_man_page_has_its_sections_in_order(void **state)
{
    static const char *const order[] = {
        ".TH WEIR\\-MAP 1 \"2025-01-31\" \"weir 0.2.0\" \"User Commands\"\n",
        ".SH NAME\nweir\\-map \\- run a command for each record\n",
        ".SH SYNOPSIS\n\\fBweir map\\fR [\\fIOPTION\\fR]... [\\fB\\-\\-\\fR] \\fICOMMAND\\fR",
        ".SH DESCRIPTION\nReads records and runs \\fICOMMAND\\fR for each.\nA second",
        ".SH OPTIONS\n.SS Input\n.TP\n\\fB\\-a\\fR, \\fB\\-\\-arg\\-file\\fR \\fIFILE\\fR\nRead "
        "\\fIFILE\\fR.\nNot standard input.\n",
        ".SS Who may run\n",
        "\\fB\\-\\-limit\\fR [\\fIPATTERN\\fR=]\\fIN\\fR\n",
        "\\fB\\-\\-progress\\fR[=\\fIHOW\\fR]\n",
        ".SH EXIT STATUS\nZero if all went well.\n.PP\n.RS 4\n.nf\n0      fine\n\\&\n\\&.1     "
        "not\n.fi\n.RE\n.PP\nNot so if not.\n",
        ".SH ENVIRONMENT\n",
        ".SH SEE ALSO\n\\fBweir\\fR(1)\n",
    };
    const char *at = man_of(&map);
    (void)state;
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        at = strstr(at, order[i]);
        if (!at)
            fail_msg("'%s' is missing, or too early, in:\n%s", order[i], text);
    }
}

static void test_a_man_page_escapes_characters_that_roff_would_take(void **state)
{
    (void)state;
    man_of(&map);
    assert_has("\n\\&.dots and \\(rsbackslashes and \\(aqquotes\\(aq and caf\\[u00E9]s.\n");
    assert_has("see \\fB\\-\\-jobs\\fR.\n");
    assert_has("at once, e.g. 4; it\\(aqs"); /* not the end of a sentence */
    for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        assert_false(*line == '\'' || *line == ' ' || *line == '\n');
}

static void test_the_page_of_weir_tells_about_commands_without_one(void **state)
{
    (void)state;
    man_of(&weir);
    assert_has(".TH WEIR 1 ");
    assert_has(".SH COMMANDS\n.TP\n\\fBweir map\\fR\nRun a command for each record.\n"
               "See \\fBweir\\-map\\fR(1).\n"
               ".TP\n\\fBweir run\\fR \\fIPLAN\\fR\nRun a plan.\n.RS\n.PP\nRuns it.\n.RE\n"
               ".TP\n\\fBweir completion\\fR \\fBbash\\fR|\\fBzsh\\fR|\\fBfish\\fR\n");
    assert_has(".SH SEE ALSO\n\\fBweir\\-map\\fR(1)\n");
}

static void test_a_see_also_of_ones_own_comes_last(void **state)
{
    static const struct opt_section own[] = {
        { "See also", "xargs(1)" },
        { "Bugs", "None." },
        { 0 },
    };
    const struct opt_command command = { .name = "x", .summary = "do", .sections = own };
    (void)state;
    man_of(&command);
    assert_has(".SH BUGS\nNone.\n.SH SEE ALSO\nxargs(1)\n");
    assert_has_not("weir\\fR(1)");
}

/* The work of the scripts in the shells is tried by tools/completion-test. */
static void test_bash_learns_options_values_and_words(void **state)
{
    (void)state;
    completion_for("bash");
    assert_has("'map --arg-file' | 'map -a') value='file'");
    assert_has("'map --directory' | 'map -C') value='directory'");
    assert_has("'map --color') value='words never auto always'");
    assert_has("'map --progress') value='?words plain live'"); /* and -p takes none */
    assert_has("options='-a --arg-file -j --jobs --timeout ");
    assert_has("takes='words map run completion'");
    assert_has("takes='words bash zsh fish'");
    assert_has("takes='command'");
    assert_has("complete -F _weir weir\n");
}

static void test_zsh_gets_its_special_characters_escaped(void **state)
{
    (void)state;
    completion_for("zsh");
    assert_int_equal(strncmp(text, "#compdef weir\n", 14), 0);
    assert_has("'*--times[Show \\[how\\: long\\] \\\\each\\\\ took]'");
    assert_has("'*-j+[Run at most N at once, e.g. 4; it'\\''s the number of CPUs]:N: '");
    assert_has("'*--arg-file=[Read FILE]:FILE:_files'");
    assert_has("'*--progress=-[Show progress]::HOW:(plain live)'");
    assert_has("'*-p[Show progress]'");
    assert_has("'completion:print a shell'\\''s script'");
    assert_has("'1: :(bash zsh fish)'");
}

static void test_fish_gets_a_line_per_option(void **state)
{
    (void)state;
    completion_for("fish");
    assert_has(
        "complete -c weir -n '__weir_options_of map' -s a -l arg-file -r -F -d 'Read FILE'\n");
    assert_has("-l times -d 'Show [how: long] \\\\each\\\\ took'\n");
    assert_has("-l color -x -a 'never auto always' -d");
    assert_has("-s p -l progress -a 'plain live' -d");
    assert_has("-a completion -d 'print a shell\\'s script'\n");
    assert_has("'__weir_words_of run' -F\n");
}

static void test_other_shells_have_no_completion(void **state)
{
    (void)state;
    assert_false(opt_print_completion(stderr, &weir, "ksh"));
    assert_false(opt_print_completion(stderr, &weir, ""));
}

/* ---- prose ----------------------------------------------------------------------------------- */

static void test_text_is_paragraphs_and_examples(void **state)
{
    const char *rest = "\n\none\ntwo\n\n\nthree\n    ex\n     am\n\n\n    ple\n   \nfour";
    static const struct {
        const char *text;
        bool example;
    } pieces[] = {
        { "one\ntwo", false },
        { "three", false },
        { "    ex\n     am\n\n\n    ple", true },
        { "four", false },
    };
    struct opt_piece piece;
    (void)state;
    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        assert_true(opt_text_piece(&piece, &rest));
        assert_int_equal(piece.example, pieces[i].example);
        assert_int_equal(piece.length, strlen(pieces[i].text));
        assert_memory_equal(piece.text, pieces[i].text, piece.length);
    }
    assert_false(opt_text_piece(&piece, &rest));
    rest = NULL;
    assert_false(opt_text_piece(&piece, &rest));
    rest = "     \n\n \n";
    assert_false(opt_text_piece(&piece, &rest));
}

static void test_a_sentence_ends_where_the_next_begins(void **state)
{
    (void)state;
    assert_int_equal(opt_text_sentence("One. Two.").length, 3);
    assert_int_equal(opt_text_sentence("As in a.b or e.g. this").length, 22);
    assert_int_equal(opt_text_sentence("One.").length, 3);
    assert_int_equal(opt_text_sentence("").length, 0);
    assert_int_equal(opt_text_sentence(NULL).length, 0);
}

int main(void)
{
#define PRINT_TEST(test) cmocka_unit_test_teardown(test, free_text)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_arguments_are_the_end),
        cmocka_unit_test(test_values_follow_or_are_attached),
        cmocka_unit_test(test_a_value_may_look_like_an_option),
        cmocka_unit_test(test_letters_stand_together),
        cmocka_unit_test(test_options_end_at_the_first_word),
        cmocka_unit_test(test_two_dashes_end_the_options_for_good),
        cmocka_unit_test(test_a_beginning_is_enough_if_it_fits_one),
        cmocka_unit_test(test_an_exact_name_wins_over_longer_ones),
        cmocka_unit_test(test_two_names_of_one_option_are_no_question),
        cmocka_unit_test(test_a_beginning_of_several_lists_them),
        cmocka_unit_test(test_a_typo_gets_a_guess),
        cmocka_unit_test(test_an_unknown_letter_is_named),
        cmocka_unit_test(test_a_missing_value_is_told),
        cmocka_unit_test(test_two_dashes_are_no_value),
        cmocka_unit_test(test_a_flag_takes_no_value),
        cmocka_unit_test(test_an_optional_value_is_only_taken_after_an_equals_sign),
        cmocka_unit_test(test_a_word_that_is_far_too_long_is_cut),
        cmocka_unit_test(test_a_message_need_not_be_wanted),
        cmocka_unit_test(test_a_subcommand_is_found_or_guessed),
        PRINT_TEST(test_help_is_in_two_columns),
        PRINT_TEST(test_narrow_help_puts_explanations_below),
        PRINT_TEST(test_no_line_of_help_is_too_wide),
        PRINT_TEST(test_an_entry_too_wide_for_its_column_stands_alone),
        PRINT_TEST(test_help_of_weir_lists_commands),
        PRINT_TEST(test_usage_may_have_several_lines),
        PRINT_TEST(test_a_man_page_has_its_sections_in_order),
        PRINT_TEST(test_a_man_page_escapes_characters_that_roff_would_take),
        PRINT_TEST(test_the_page_of_weir_tells_about_commands_without_one),
        PRINT_TEST(test_a_see_also_of_ones_own_comes_last),
        PRINT_TEST(test_bash_learns_options_values_and_words),
        PRINT_TEST(test_zsh_gets_its_special_characters_escaped),
        PRINT_TEST(test_fish_gets_a_line_per_option),
        cmocka_unit_test(test_other_shells_have_no_completion),
        cmocka_unit_test(test_text_is_paragraphs_and_examples),
        cmocka_unit_test(test_a_sentence_ends_where_the_next_begins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
