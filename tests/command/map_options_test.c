/* weir map: values that make no sense are refused with a sentence, before anything is run.
 * SPDX-License-Identifier: MIT */
#include "command/command.h"

struct refusal {
    const char *option, *value, *said;
};

static const char duration[] = "use a duration such as 500ms, 30s, 5m or 1.5h";

static void assert_refused(const struct refusal *r)
{
    char said[300];
    const struct ran *ran = MAP("a\n", r->option, r->value, "--", "echo");

    snprintf(said, sizeof(said), "weir: %s\nTry 'weir map --help'.\n", r->said);
    if (strcmp(ran->err, said) || ran->status != 255)
        print_message("%s %s:\n", r->option, r->value);
    assert_ran(ran, 255, "", said);
}

static void test_durations_have_to_be_some(void)
{
    static const char *const options[] = { "--timeout",     "--grace", "--backoff",
                                           "--backoff-max", "--delay", "--cool-down" };
    static const char *const values[] = { "", "soon", "-1s", "1x", "5 m", "1e3s" };

    for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++)
        for (size_t k = 0; k < sizeof(values) / sizeof(*values); k++) {
            char said[200];
            snprintf(said, sizeof(said), "%s %s: %s", options[i], values[k], duration);
            assert_refused(&(struct refusal){ options[i], values[k], said });
        }
}

static void test_numbers_have_to_be_in_their_range(void)
{
    static const struct refusal refused[] = {
        { "-j", "0", "--jobs 0: use a number from 1 to " },
        { "--jobs", "x", "--jobs x: use a number from 1 to " },
        { "--jobs", "-1", "--jobs -1: use a number from 1 to " },
        { "--jobs", "99999999999999999999",
          "--jobs 99999999999999999999: use a number from 1 to " },
        { "-J", "0", "--per-group 0: use a number from 1 to " },
        { "--per-group", "two", "--per-group two: use a number from 1 to " },
    };

    for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
        const struct ran *r = MAP("a\n", refused[i].option, refused[i].value, "--", "echo");
        assert_status(r, 255);
        assert_contains(r->err, refused[i].said);
        assert_string_equal(r->out, "");
    }
    assert_refused(&(struct refusal){
        "-j", "0%", "--jobs 0%: use a number, or a share of the CPUs such as 200%" });
    assert_refused(
        &(struct refusal){ "--max-wait", "-1", "--max-wait -1: use a number from 0 to 1000000" });
    assert_refused(
        &(struct refusal){ "--retries", "many", "--retries many: use a number from 0 to 1000000" });
    assert_refused(
        &(struct refusal){ "--cool-code", "0", "--cool-code 0: use a number from 1 to 255" });
    assert_refused(
        &(struct refusal){ "--cool-code", "256", "--cool-code 256: use a number from 1 to 255" });
}

static void test_rules_have_to_be_rules(void)
{
    static const struct refusal refused[] = {
        { "--limit", "a=0", "--limit \"0\": use a whole number, 1 or more" },
        { "--limit", "a", "--limit \"a\": use a whole number, 1 or more" },
        { "--limit", "=3", "--limit \"=3\": write a pattern before the =" },
        { "--weight", "a=0", "--weight \"0\": use a whole number from 1 to 1000" },
        { "--weight", "a=1001", "--weight \"1001\": use a whole number from 1 to 1000" },
        { "--rate", "a=10",
          "--rate \"10\": use a rate such as 10/s, or 100/m:20 for a burst of 20" },
        { "--rate", "a=0/s",
          "--rate \"0/s\": use a rate such as 10/s, or 100/m:20 for a burst of 20" },
        { "--rate", "a=1/0s",
          "--rate \"1/0s\": use a rate such as 10/s, or 100/m:20 for a burst of 20" },
        { "--rate", "a=1/s:0",
          "--rate \"1/s:0\": use a rate such as 10/s, or 100/m:20 for a burst of 20" },
    };

    for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++)
        assert_refused(&refused[i]);
}

static void test_rules_for_groups_need_groups(void)
{
    const struct ran *r = MAP("a\n", "--rate", "api=1/h", "--", "echo", "{}");

    assert_int_equal(r->status, 255);
    assert_string_equal(r->out, "");
    assert_non_null(strstr(r->err, "--group-by"));
    assert_ran(MAP("a\n", "--rate", "100/s", "--limit", "*=2", "--", "echo", "{}"), 0, "a\n", "");
}

static void test_a_dash_is_standard_input(void)
{
    assert_ran(MAP("a\n", "-a", "-", "--", "echo", "{}"), 0, "a\n", "");
}

static void test_an_unknown_command_is_corrected(void)
{
    const struct ran *r = command_run(&(struct command){ .argv = WORDS(WEIR_COMMAND, "mpa") });

    assert_ran(r, 255, "", "weir: mpa: no such command; did you mean map?\nTry 'weir --help'.\n");
}

static void test_halt_has_to_say_when(void)
{
    static const char *const values[] = { "",
                                          "later",
                                          "soon,fail=0",
                                          "now,fail=",
                                          "soon,fail=101%",
                                          "soon,fail=-1",
                                          "now,fail=0%",
                                          "soon,pass=1" };

    for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
        char said[200];
        snprintf(
            said, sizeof(said),
            "--halt %s: use never, soon,fail=N, now,fail=N, or a share such as soon,fail=10%%; "
            "success=N counts successes",
            values[i]);
        assert_refused(&(struct refusal){ "--halt", values[i], said });
    }
}

static void test_halt_never_is_the_default(void)
{
    assert_status(MAP("1\n2\n3\n4\n", "--halt", "never", "--", "false"), 4);
    assert_status(MAP("1\n2\n3\n4\n", "--", "false"), 4);
}

static void test_progress_is_one_of_three(void)
{
    assert_refused(
        &(struct refusal){ "--progress", "often", "--progress often: use auto, never or always" });
}

static void test_values_that_are_missing_are_asked_for(void)
{
    static const struct {
        const char *option, *said;
    } missing[] = {
        { "-a", "-a needs a value: -a FILE" },
        { "-d", "-d needs a value: -d TEXT" },
        { "-g", "-g needs a value: -g SPEC" },
        { "--group-by", "--group-by needs a value: --group-by SPEC" },
        { "-j", "-j needs a value: -j N" },
        { "-J", "-J needs a value: -J N" },
        { "--limit", "--limit needs a value: --limit PATTERN=N" },
        { "--rate", "--rate needs a value: --rate PATTERN=N/T" },
        { "--weight", "--weight needs a value: --weight PATTERN=N" },
        { "--timeout", "--timeout needs a value: --timeout T" },
        { "--files", "--files needs a value: --files DIR" },
        { "--results", "--results needs a value: --results FILE" },
        { "--halt", "--halt needs a value: --halt WHEN" },
    };

    for (size_t i = 0; i < sizeof(missing) / sizeof(*missing); i++) {
        const struct ran *r = MAP("a\n", missing[i].option, "--", "echo");
        assert_status(r, 255);
        assert_contains(r->err, missing[i].said);
    }
}

static void test_flags_take_no_value(void)
{
    static const char *const flags[] = { "--csv",        "--jsonl",       "--dry-run",
                                         "--keep-order", "--line-buffer", "--help" };

    for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
        char word[64], said[128];
        snprintf(word, sizeof(word), "%s=1", flags[i]);
        snprintf(said, sizeof(said), "weir: %s takes no value\nTry 'weir map --help'.\n", flags[i]);
        assert_ran(MAP("a\n", word, "--", "echo"), 255, "", said);
    }
}

static void test_an_unknown_option_is_corrected(void)
{
    assert_ran(
        MAP("", "--tiemout", "1s", "--", "echo"), 255, "",
        "weir: --tiemout: no such option; did you mean --timeout?\nTry 'weir map --help'.\n");
    assert_ran(MAP("", "-y", "--", "echo"), 255, "",
               "weir: -y: no such option\nTry 'weir map --help'.\n");
}

static void test_an_option_may_be_abbreviated(void)
{
    assert_ran(MAP("a\n", "--keep", "--", "echo"), 0, "a\n", "");
    assert_status(MAP("a\n", "--back", "1s", "--", "echo"), 255);
}

static void test_options_end_at_the_command(void)
{
    assert_ran(MAP("a\n", "echo", "-n", "--csv"), 0, "--csv a", "");
}

static void test_without_a_command_it_is_asked_for(void)
{
    const struct ran *r = MAP("a\n", "-j1");

    assert_status(r, 255);
    assert_contains(r->err, "weir: map: which command?");
    r = MAP("a\n", "--");
    assert_status(r, 255);
    assert_contains(r->err, "weir: map: which command?");
}

static void test_output_modes_exclude_each_other(void)
{
    assert_ran(MAP("", "--line-buffer", "--files", "d", "--", "echo"), 255, "",
               "weir: use only one of --line-buffer and --files\nTry 'weir map --help'.\n");
    assert_ran(MAP("", "-k", "--line-buffer", "--", "echo"), 255, "",
               "weir: use only one of --keep-order and --line-buffer\nTry 'weir map --help'.\n");
}

static void test_settings_without_a_meaning_are_refused(void)
{
    static const struct {
        const char *words[4], *said;
    } refused[] = {
        { { "--no-header" }, "--no-header needs --csv or --tsv" },
        { { "--tag", "--files", "d" },
          "use only one of --tag and --files: with --files no line is printed" },
        { { "--stdin", "--pipe" }, "use only one of --stdin and --pipe" },
        { { "--block", "1k" }, "--block needs --pipe" },
        { { "--backoff", "1s" }, "--backoff and --backoff-max need --retries" },
        { { "--backoff-max", "1s" }, "--backoff and --backoff-max need --retries" },
        { { "--cool-down", "1s" }, "--cool-down needs --cool-code" },
        { { "--show-retries" }, "--show-retries needs --retries or --cool-code" },
        { { "--if-exists", "new" }, "--if-exists needs --results or --files" },
        { { "--resume" }, "--resume and --retry-failed need a journal: --journal FILE" },
    };

    for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
        const char *const *w = refused[i].words;
        char said[200];
        snprintf(said, sizeof(said), "weir: %s\nTry 'weir map --help'.\n", refused[i].said);
        assert_ran(MAP("", w[0], w[1] ? w[1] : "-t", w[2] ? w[2] : "-t", "--", "echo"), 255, "",
                   said);
    }
}

static void test_help_names_every_option(void)
{
    static const char *const options[] = {
        "--input",     "--null",       "--csv",      "--tsv",         "--jsonl",
        "--no-header", "--delimiter",  "--group-by", "--jobs",        "--per-group",
        "--limit",     "--rate",       "--weight",   "--max-wait",    "--timeout",
        "--grace",     "--retries",    "--backoff",  "--backoff-max", "--delay",
        "--cool-code", "--cool-down",  "--cwd",      "--shell",       "--stdin",
        "--no-append", "--keep-order", "--tag",      "--line-buffer", "--files",
        "--results",   "--progress",   "--halt",     "--dry-run",     "--help",
    };
    const struct ran *r = MAP("", "--help");

    assert_status(r, 0);
    assert_string_equal(r->err, "");
    for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++)
        assert_contains(r->out, options[i]);
    assert_status(MAP("", "-h"), 0);
}

static void test_help_that_cannot_be_written_is_an_error(void)
{
    assert_ran(SCRIPT("", "weir map --help >/dev/full"), 255, "",
               "weir: standard output: No space left on device\n");
}

static void test_group_by_has_to_be_possible(void)
{
    static const struct refusal refused[] = {
        { "-g", "name",
          "\"name\" is not a column: use its number, host, /REGEX/, or a text with {}" },
        { "-g", "", "\"\" is not a column: use its number, host, /REGEX/, or a text with {}" },
        { "-g", "/(/", "/(/: " },
        { "-g", "{seq}", "use fields of the record, not {key} or {seq}" },
        { "-g", "{nothing}", "{nothing}: no such placeholder: columns are {1}, {2}; " },
        { "-g", "{a b}", "\"{a b}\" has no placeholder: use {}, a column such as {1}" },
        { "-g", "host:what", "\"what\" is not a column: use its number" },
    };

    for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
        const struct ran *r = MAP("a\n", refused[i].option, refused[i].value, "--", "echo");
        assert_status(r, 255);
        assert_string_equal(r->out, "");
        assert_contains(r->err, refused[i].said);
    }
    assert_ran(MAP("a,b\n1,2\n", "--csv", "-g", "c", "--", "echo"), 255, "",
               "weir: --group-by: the header has no column \"c\"\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_durations_have_to_be_some),
        TEST(test_numbers_have_to_be_in_their_range),
        TEST(test_rules_have_to_be_rules),
        TEST(test_rules_for_groups_need_groups),
        TEST(test_a_dash_is_standard_input),
        TEST(test_an_unknown_command_is_corrected),
        TEST(test_halt_has_to_say_when),
        TEST(test_halt_never_is_the_default),
        TEST(test_progress_is_one_of_three),
        TEST(test_values_that_are_missing_are_asked_for),
        TEST(test_flags_take_no_value),
        TEST(test_an_unknown_option_is_corrected),
        TEST(test_an_option_may_be_abbreviated),
        TEST(test_options_end_at_the_command),
        TEST(test_without_a_command_it_is_asked_for),
        TEST(test_output_modes_exclude_each_other),
        TEST(test_settings_without_a_meaning_are_refused),
        TEST(test_help_names_every_option),
        TEST(test_help_that_cannot_be_written_is_an_error),
        TEST(test_group_by_has_to_be_possible),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
