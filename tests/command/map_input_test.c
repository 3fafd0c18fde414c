/* weir map: where records come from, what they are made of, and how commands are filled with them.
 * SPDX-License-Identifier: MIT */
#include "command/command.h"

#include <sys/stat.h>
#include <unistd.h>

/* ---- lines --------------------------------------------------------------------------------------- */

static void test_each_line_is_a_command(void)
{
    assert_ran(MAP("a\nb b\nc\n", "-k", "--", "echo", "[{}]"), 0, "[a]\n[b b]\n[c]\n", "");
}

static void test_without_a_placeholder_the_record_is_appended(void)
{
    assert_ran(MAP("a b\n", "--", "printf", "%s|"), 0, "a b|", "");
}

static void test_the_last_line_needs_no_newline(void)
{
    assert_ran(MAP("a\nb", "-k", "--", "echo"), 0, "a\nb\n", "");
}

static void test_an_empty_line_is_a_record(void)
{
    assert_ran(MAP("a\n\nb\n", "-k", "--", "printf", "[%s]"), 0, "[a][][b]", "");
}

static void test_columns_of_a_line_are_separated_by_blanks(void)
{
    assert_ran(MAP("  one \t two  \n", "--", "echo", "{2}-{1}"), 0, "two-one\n", "");
}

static void test_empty_input_runs_nothing(void)
{
    assert_ran(MAP("", "--", "echo"), 0, "", "");
    assert_ran(MAP("", "--csv", "-g", "region", "--", "echo", "{id}"), 0, "", "");
    assert_ran(MAP("", "--tsv", "-g", "region", "--", "echo", "{id}"), 0, "", "");
    assert_ran(MAP("", "--jsonl", "--", "echo", "{id}"), 0, "", "");
    assert_ran(MAP("", "-0", "--dry-run", "--", "echo"), 0, "", "");
}

static void test_empty_input_still_makes_an_empty_results_file(void)
{
    assert_ran(MAP("", "--csv", "-g", "x", "--results", "empty.json", "--", "echo"), 0, "", "");
    assert_string_equal(scratch_read("empty.json"), "");
}

/* ---- other forms --------------------------------------------------------------------------------- */

static const struct ran *map_bytes(const char *input, size_t length, const char *const *argv)
{
    return sound(command_run(&(struct command){ argv, .input = input, .input_length = length }));
}

static void test_null_separates_records_that_have_newlines(void)
{
    static const char input[] = "a\nb\0c d\0--help\0'\"\0";

    assert_ran(map_bytes(input, sizeof(input) - 1,
                         WORDS(WEIR_COMMAND, "map", "-k0", "--", "printf", "[%s]")),
               0, "[a\nb][c d][--help]['\"]", "");
    assert_ran(map_bytes(input, 4, WORDS(WEIR_COMMAND, "map", "--null", "--", "printf", "[%s]")), 0,
               "[a\nb]", "");
}

static void test_null_takes_no_value(void)
{
    const struct ran *r = MAP("", "--null=x", "--", "echo");

    assert_ran(r, 255, "", "weir: --null takes no value\nTry 'weir map --help'.\n");
}

static void test_csv_columns_have_the_names_of_the_first_row(void)
{
    assert_ran(MAP("id,city\n1,Paris\n2,\"a, b\"\n", "--csv", "-k", "--", "echo", "{city}/{id}"), 0,
               "Paris/1\na, b/2\n", "");
}

static void test_csv_quotes_hold_quotes_and_newlines(void)
{
    assert_ran(MAP("a,b\r\n\"say \"\"hi\"\"\",\"two\nlines\"\r\n", "--csv", "--", "printf", "<%s>",
                   "{a}", "{b}"),
               0, "<say \"hi\"><two\nlines>", "");
}

static void test_csv_columns_have_numbers_too(void)
{
    assert_ran(MAP("id,city\n1,Paris\n", "--csv", "--", "echo", "{2}{1}"), 0, "Paris1\n", "");
}

static void test_no_header_makes_the_first_row_a_record(void)
{
    assert_ran(MAP("1,x\n2,y\n", "--csv", "--no-header", "-k", "--", "echo", "{2}{1}"), 0,
               "x1\ny2\n", "");
    assert_ran(MAP("1\tx\n", "--tsv", "--no-header", "--", "echo", "{2}{1}"), 0, "x1\n", "");
    assert_ran(MAP("", "--no-header=1", "--", "echo"), 255, "",
               "weir: --no-header takes no value\nTry 'weir map --help'.\n");
}

static void test_a_bad_csv_row_fails_alone(void)
{
    const struct ran *r = MAP("a\n\"x\"y\nfine\n", "--csv", "--", "echo", "{a}");

    assert_status(r, 1);
    assert_string_equal(r->out, "fine\n");
    assert_contains(r->err, "weir: line 2: text after the closing quote of column 1\n");
    assert_contains(r->err,
                    "1 of 2 failed; the first: task 1 was not run: its record is not valid\n");
}

static void test_a_quote_that_is_never_closed_is_an_error(void)
{
    const struct ran *r = MAP("a\n\"open\nand on\n", "--csv", "--", "echo", "{a}");

    assert_status(r, 1);
    assert_contains(r->err, "line 2: a quote is never closed");
}

static void test_two_columns_of_one_name_are_refused(void)
{
    assert_ran(MAP("a,a\n1,2\n", "--csv", "--", "echo", "{a}"), 255, "",
               "weir: the header has two columns named \"a\"\n");
}

static void test_a_name_that_the_header_lacks_is_refused_before_anything_runs(void)
{
    static const char *const said = "weir: {idd}: no such column; the columns are id, city; for "
                                    "the text itself write \\{idd}\n";

    assert_ran(MAP("id,city\n1,Rome\n", "--csv", "--", "echo", "{idd}"), 255, "", said);
    assert_ran(MAP("id\tcity\n1\tRome\n", "--tsv", "--shell", "--", "echo '{idd}'"), 255, "", said);
    assert_ran(MAP("id,city\n1,Rome\n", "--csv", "--cwd", "{idd}", "--", "echo"), 255, "", said);
    assert_ran(MAP("id,city\n1,Rome\n", "--csv", "--tag={idd}", "--", "echo"), 255, "", said);
    assert_ran(MAP("id,city\n1,Rome\n", "--csv", "-g", "{idd}", "--", "echo"), 255, "", said);
    assert_ran(MAP("id,city\n1,Rome\n", "--csv", "--dry-run", "--", "echo", "{idd}"), 255, "",
               said);
    assert_ran(MAP("id,city\n1,Rome\n", "--csv", "--", "echo", "\\{idd}", "{ idd }", "{id}"), 0,
               "{idd} { idd } 1\n", "");
    assert_ran(MAP("1,Rome\n", "--csv", "--no-header", "--", "echo", "{idd}", "{1}"), 255, "",
               "weir: {idd}: no such placeholder: without a header columns are {1}, {2}; for the "
               "text itself write \\{idd}\n");
}

static void test_a_column_that_is_named_like_a_placeholder_is_not_taken_for_it(void)
{
    static const char *const rows = "key,n,seq\na,1,x\n";

    assert_ran(MAP(rows, "--csv", "--", "echo", "{seq}"), 255, "",
               "weir: {seq} could be the task's number or the column \"seq\": write {3} for the "
               "column; the number is in $WEIR_SEQ\n");
    assert_ran(
        MAP(rows, "--csv", "-g", "n", "--", "echo", "{key}"), 255, "",
        "weir: {key} could be the group or the column \"key\": write {1} for the column; the "
        "group is in $WEIR_KEY\n");
    assert_ran(
        MAP(rows, "--csv", "--shell", "--cwd", "{key}", "--", "echo"), 255, "",
        "weir: {key} could be the group or the column \"key\": write {1} for the column; the "
        "group is in $WEIR_KEY\n");
    assert_ran(MAP(rows, "--csv", "-g", "key", "--tag", "--", "echo", "{key}", "{3}"), 0,
               "a\ta x\n", ""); /* they are the same */
}

static void test_without_groups_there_is_no_key(void)
{
    static const char *const said = "weir: {key} needs --group-by; for the text itself write "
                                    "\\{key}\n";

    assert_ran(MAP("{\"key\":1}\n", "--jsonl", "--", "echo", "x{key}"), 255, "", said);
    assert_ran(MAP("a\n", "--shell", "--", "echo {key}"), 255, "", said);
    assert_ran(MAP("a\n", "--tag={key}", "--", "echo"), 255, "", said);
    assert_ran(MAP("a\n", "--", "echo", "\\{key}"), 0, "{key} a\n", "");
}

static void test_a_short_row_lacks_a_column(void)
{
    const struct ran *r = MAP("a,b\n1\n", "--csv", "--", "echo", "{b}");

    assert_status(r, 1);
    assert_contains(r->err, "weir: line 2: no column \"b\", only 1 column\n");
}

static void test_tsv_columns_and_escapes(void)
{
    assert_ran(MAP("a\tb\nx y\t1\\t2\n", "--tsv", "--", "printf", "<%s>", "{a}", "{b}"), 0,
               "<x y><1\t2>", "");
    assert_ran(MAP("", "--tsv=1", "--", "echo"), 255, "",
               "weir: --tsv takes no value\nTry 'weir map --help'.\n");
}

static void test_jsonl_fields_and_fields_inside(void)
{
    assert_ran(MAP("{\"a\": {\"b\": [7, \"x\\ny\"]}, \"n\": 1.5, \"t\": true, \"z\": null}\n",
                   "--jsonl", "--", "printf", "<%s>", "{a.b.0}", "{a.b.1}", "{n}", "{t}", "{z}",
                   "{a.b}"),
               0, "<7><x\ny><1.5><true><><[7, \"x\\ny\"]>", "");
}

static void test_a_missing_field_fails_its_record_only(void)
{
    const struct ran *r = MAP("{\"a\":1}\n{\"b\":2}\n", "--jsonl", "--", "echo", "{a}");

    assert_status(r, 1);
    assert_string_equal(r->out, "1\n");
    assert_contains(r->err, "weir: line 2: the object has no field \"a\"\n");
}

static void test_text_that_is_no_json_is_said_with_its_place(void)
{
    const struct ran *r = MAP("{\"a\":1\n[1]\n{\"a\":2}\n", "--jsonl", "--", "echo", "{a}");

    assert_status(r, 2);
    assert_string_equal(r->out, "2\n");
    assert_contains(r->err, "line 1: not valid JSON at byte ");
    assert_contains(r->err, "line 2: expected a JSON object such as");
}

static void test_forms_exclude_each_other(void)
{
    static const char said[] =
        "weir: use only one of --csv, --tsv, --jsonl\nTry 'weir map --help'.\n";

    assert_ran(MAP("", "--csv", "--tsv", "--", "echo"), 255, "", said);
    assert_ran(MAP("", "--jsonl", "--csv", "--", "echo"), 255, "", said);
    assert_ran(MAP("", "--tsv", "--jsonl", "--", "echo"), 255, "", said);
}

static void test_delimiter_of_lines_and_csv(void)
{
    assert_ran(MAP("a b:c\n", "-d:", "--", "echo", "{2}+{1}"), 0, "c+a b\n", "");
    assert_ran(MAP("a::c\n", "--delimiter", ":", "--", "echo", "[{2}]{3}"), 0, "[]c\n", "");
    assert_ran(MAP("a\tb c\n", "-d", "\\t", "--", "echo", "{2}"), 0, "b c\n", "");
    assert_ran(MAP("x;y\n1;2,3\n", "--csv", "-d", ";", "--", "echo", "{y}"), 0, "2,3\n", "");
}

static void test_a_delimiter_is_a_byte_or_more(void)
{
    static const char *const bad[] = { "", "a\n", "\n", "\"" };

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        const struct ran *r = MAP("", "-d", bad[i], "--", "echo");
        assert_status(r, 255);
        assert_contains(r->err, "use one byte or more, without \\n; \\t is a tab\n");
    }
}

/* ---- placeholders -------------------------------------------------------------------------------- */

static void test_parts_of_a_path(void)
{
    assert_ran(
        MAP("/d/e.f/g.tar.gz\n", "--", "printf", "%s\\n", "{}", "{.}", "{/}", "{//}", "{/.}"), 0,
        "/d/e.f/g.tar.gz\n/d/e.f/g.tar\ng.tar.gz\n/d/e.f\ng.tar\n", "");
}

static void test_group_and_number(void)
{
    assert_ran(MAP("x 1\ny 2\n", "-k", "-g", "1", "--", "echo", "{key}{seq}:{2}"), 0,
               "x1:1\ny2:2\n", "");
}

static void test_nothing_is_appended_where_a_placeholder_stands(void)
{
    assert_ran(MAP("x\n", "--", "echo", "{seq}"), 0, "1\n", "");
}

static void test_other_braces_stay_as_they_are(void)
{
    assert_ran(MAP("a b\n", "--", "printf", "%s ", "{print $1}", "{01}", "%{size}", "{", "}{",
                   "{a..z}", "{}"),
               0, "{print $1} {01} %{size} { }{ {a..z} a b ", "");
}

static void test_a_name_that_no_column_has_is_refused_before_anything_runs(void)
{
    static const char sentence[] =
        "weir: {path}: no such placeholder: columns are {1}, {2}; --csv, --tsv and --jsonl give "
        "them names; for the text itself write \\{path}\n";

    assert_ran(MAP("a\n", "--", "echo", "{path}"), 255, "", sentence);
    assert_ran(MAP("a\n", "--shell", "--", "echo '{path}'"), 255, "", sentence);
    assert_ran(MAP("a\n", "--tag={path}", "--", "echo"), 255, "", sentence);
    assert_ran(MAP("a\n", "--cwd", "/{path}", "--", "echo"), 255, "", sentence);
    assert_ran(MAP("a\n", "--group-by", "{path}", "--", "echo"), 255, "", sentence);
    assert_ran(MAP("", "--", "echo", "{path}", ":::", "a"), 255, "", sentence);
    assert_ran(MAP("a\n", "--", "echo", "\\{path}", "\\{}", "{}"), 0, "{path} {} a\n", "");
}

static void test_a_placeholder_may_be_anywhere_in_a_word_and_again(void)
{
    assert_ran(MAP("v\n", "--", "echo", "a{}b{}c"), 0, "avbvc\n", "");
}

static void test_the_command_itself_may_be_a_placeholder(void)
{
    assert_ran(MAP("echo\n", "--", "{}", "hi"), 0, "hi\n", "");
}

static void test_values_are_not_filled_in_twice(void)
{
    assert_ran(MAP("{seq}{}\n", "--", "echo", "{}"), 0, "{seq}{}\n", "");
}

/* ---- difficult names ----------------------------------------------------------------------------- */

static const char nasty[] = "-n\n--help\n'\n\"\n$(touch pwned)\n`touch pwned`\n; touch pwned\n"
                            "\\\n* ?\n  two  \n$HOME\n!!\n#x\n~\n{}\n";

static void test_values_become_arguments_as_they_are(void)
{
    assert_ran(MAP(nasty, "-k", "--", "printf", "%s\\n", "{}"), 0, nasty, "");
}

static void test_values_in_a_shell_script_are_safe_in_any_quotes(void)
{
    assert_ran(MAP(nasty, "-k", "--shell", "--", "printf '%s\\n' {}"), 0, nasty, "");
    assert_ran(MAP(nasty, "-k", "--shell", "--", "printf '%s\\n' \"{}\""), 0, nasty, "");
    assert_ran(MAP(nasty, "-k", "--shell", "--", "printf '%s\\n' '{}'"), 0, nasty, "");
    assert_ran(MAP(nasty, "-k", "--shell", "--", "x=$(printf '%s.' {}); printf '%s\\n' \"${x%.}\""),
               0, nasty, "");
    assert_null(scratch_read("pwned"));
}

static void test_a_shell_script_is_a_script(void)
{
    assert_ran(MAP("b\na\n", "-k", "--shell", "--", "echo {} | tr ab AB; echo $((1 + 1))"), 0,
               "B\n2\nA\n2\n", "");
    assert_ran(MAP("b\n", "--shell", "--", "echo"), 0, "\n", ""); /* nothing is appended */
    assert_ran(MAP("", "--shell=x", "--", "echo"), 255, "",
               "weir: --shell takes no value\nTry 'weir map --help'.\n");
}

static void test_newlines_in_names_are_safe_in_a_shell(void)
{
    static const char input[] = "a\ntouch pwned\n\0";

    assert_ran(map_bytes(input, sizeof(input) - 1,
                         WORDS(WEIR_COMMAND, "map", "-0", "--shell", "--", "printf '[%s]' {}")),
               0, "[a\ntouch pwned\n]", "");
    assert_null(scratch_read("pwned"));
}

static void test_a_zero_byte_cannot_be_an_argument(void)
{
    const struct ran *r = map_bytes("a\0b\nc\n", 6, WORDS(WEIR_COMMAND, "map", "--", "echo", "{}"));

    assert_status(r, 1);
    assert_string_equal(r->out, "c\n");
    assert_contains(r->err, "weir: line 1: {} contains a zero byte, which an argument cannot\n");
}

static void test_binary_junk_is_run_or_refused_but_never_harms(void)
{
    static const char *const forms[] = { "-0", "--csv", "--tsv", "--jsonl", "-k" };
    char junk[20000];
    unsigned state = 1;

    for (size_t i = 0; i < sizeof(junk); i++) {
        state = state * 1103515245 + 12345;
        junk[i] = (char)(state >> 16);
        if (i % 97 == 0)
            junk[i] = '\n';
    }
    for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
        const struct ran *r = map_bytes(
            junk, sizeof(junk), WORDS(WEIR_COMMAND, "map", forms[i], "--", MAP_CHILD, "say", "{}"));
        assert_true(r->status <= 101 || r->status == 255);
    }
}

static void test_bytes_that_are_no_text_arrive_unchanged(void)
{
    assert_ran(MAP("\xff\xfe\x80\n", "--", "printf", "%s"), 0, "\xff\xfe\x80", "");
}

/* ---- long lines ---------------------------------------------------------------------------------- */

static char *long_line(size_t length)
{
    char *text = malloc(length + 2);

    assert_non_null(text);
    memset(text, 'x', length);
    strcpy(text + length, "\n");
    return text;
}

static void test_a_megabyte_is_too_long_for_an_argument_and_that_is_said(void)
{
    char *text = long_line(1 << 20);
    const struct ran *r = MAP(text, "--", "echo");

    assert_status(r, 1);
    assert_string_equal(r->out, "");
    assert_contains(r->err, "task 1: echo: Argument list too long (an argument has at most 128 "
                            "KiB): pass the record by --stdin\n");
    free(text);
}

static void test_a_megabyte_goes_to_standard_input(void)
{
    char *text = long_line(1 << 20);

    assert_ran(MAP(text, "--stdin", "--", "wc", "-c"), 0, "1048577\n", "");
    free(text);
}

static void test_stdin_has_the_record_and_nothing_is_appended(void)
{
    assert_ran(
        MAP("a b\nc", "-k", "--stdin", "--", "sh", "-c", "echo $#; while read x; do echo $x; done"),
        0, "0\na b\n0\nc\n", "");
    assert_ran(SCRIPT("", "printf 'a\\0b\\0' | weir map -k -0 --stdin -- sh -c 'cat; echo .'"), 0,
               "a.\nb.\n", "");
    assert_ran(MAP("", "--stdin=1", "--", "cat"), 255, "",
               "weir: --stdin takes no value\nTry 'weir map --help'.\n");
}

static void test_nothing_is_appended_if_that_is_asked_for(void)
{
    assert_ran(MAP("a\nb\n", "-N", "--", "echo", "x"), 0, "x\nx\n", "");
    assert_ran(MAP("a\n", "--no-append", "--shell", "--", "echo x"), 0, "x\n", "");
    assert_ran(MAP("a\n", "-N", "--", "echo", "{}"), 0, "a\n", ""); /* what is there is filled in */
    assert_ran(MAP("", "--no-append=1", "--", "true"), 255, "",
               "weir: --no-append takes no value\nTry 'weir map --help'.\n");
}

static void test_without_stdin_a_command_reads_nothing(void)
{
    assert_ran(MAP("a\nb\n", "-k", "--", "sh", "-c", "cat; echo $1", "sh", "{}"), 0, "a\nb\n", "");
}

/* ---- files --------------------------------------------------------------------------------------- */

static void test_input_comes_from_a_file(void)
{
    scratch_write("in", "a\nb\n", 0);
    assert_ran(MAP("not this\n", "-k", "-a", "in", "--", "echo"), 0, "a\nb\n", "");
    assert_ran(MAP("not this\n", "-k", "--input=in", "--", "echo"), 0, "a\nb\n", "");
}

static void test_a_file_that_is_not_there(void)
{
    assert_ran(MAP("", "-a", "nowhere", "--", "echo"), 255, "",
               "weir: nowhere: No such file or directory\n");
    assert_ran(MAP("", "-a"), 255, "", "weir: -a needs a value: -a FILE\nTry 'weir map --help'.\n");
}

static void test_a_file_that_may_not_be_read(void)
{
    if (getuid() == 0)
        skip(); /* a user that may read everything cannot see this */
    scratch_write("locked", "a\n", 0);
    chmod(scratch("locked"), 0);
    assert_ran(MAP("", "-a", "locked", "--", "echo"), 255, "", "weir: locked: Permission denied\n");
}

static void test_a_file_that_cannot_be_read(void)
{
    assert_ran(MAP("", "-a", "/proc/self/mem", "--", "echo"), 255, "",
               "weir: /proc/self/mem: Input/output error\n");
}

static void test_a_directory_is_no_input(void)
{
    const struct ran *r = MAP("", "-a", "/", "--", "echo");

    assert_status(r, 255);
    assert_string_equal(r->out, "");
    assert_contains(r->err, "weir: /: ");
    r = SCRIPT("", "weir map -- echo </");
    assert_status(r, 255);
    assert_contains(r->err, "weir: standard input: ");
}

static void test_closed_standard_input_is_an_error(void)
{
    assert_ran(
        SCRIPT("", "weir map -- echo 0<&-"), 255, "",
        "weir: standard input: it is closed; name a file with -a, or write ::: and values\n");
}

/* ---- streams ------------------------------------------------------------------------------------- */

static void test_a_command_starts_when_its_line_arrives(void)
{
    command_start(&(struct command){ .argv = WORDS(WEIR_COMMAND, "map", "--", "echo", "got"),
                                     .input_stays = true });
    command_say("one\n");
    assert_true(command_await_output("got one\n"));
    command_say("tw");
    command_say("o\n");
    assert_true(command_await_output("got two\n"));
    command_end_input();
    assert_ran(sound(command_finish()), 0, "got one\ngot two\n", "");
}

static void test_a_row_starts_when_it_arrives(void)
{
    command_start(&(struct command){
        .argv = WORDS(WEIR_COMMAND, "map", "--csv", "--", "echo", "{b}"), .input_stays = true });
    command_say("a,b\n1,x\n");
    assert_true(command_await_output("x\n"));
    command_say("2,\"y");
    command_say("y\"\n");
    assert_true(command_await_output("yy\n"));
    command_end_input();
    assert_status(sound(command_finish()), 0);
}

static void test_an_endless_stream_ends_with_its_reader(void)
{
    const struct ran *r = SCRIPT("", "yes | weir map -- echo | head -2");

    assert_ran(r, 0, "y\ny\n", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_each_line_is_a_command),
        TEST(test_without_a_placeholder_the_record_is_appended),
        TEST(test_the_last_line_needs_no_newline),
        TEST(test_an_empty_line_is_a_record),
        TEST(test_columns_of_a_line_are_separated_by_blanks),
        TEST(test_empty_input_runs_nothing),
        TEST(test_empty_input_still_makes_an_empty_results_file),
        TEST(test_null_separates_records_that_have_newlines),
        TEST(test_null_takes_no_value),
        TEST(test_csv_columns_have_the_names_of_the_first_row),
        TEST(test_csv_quotes_hold_quotes_and_newlines),
        TEST(test_csv_columns_have_numbers_too),
        TEST(test_no_header_makes_the_first_row_a_record),
        TEST(test_a_bad_csv_row_fails_alone),
        TEST(test_a_quote_that_is_never_closed_is_an_error),
        TEST(test_two_columns_of_one_name_are_refused),
        TEST(test_a_name_that_the_header_lacks_is_refused_before_anything_runs),
        TEST(test_a_column_that_is_named_like_a_placeholder_is_not_taken_for_it),
        TEST(test_without_groups_there_is_no_key),
        TEST(test_a_short_row_lacks_a_column),
        TEST(test_tsv_columns_and_escapes),
        TEST(test_jsonl_fields_and_fields_inside),
        TEST(test_a_missing_field_fails_its_record_only),
        TEST(test_text_that_is_no_json_is_said_with_its_place),
        TEST(test_forms_exclude_each_other),
        TEST(test_delimiter_of_lines_and_csv),
        TEST(test_a_delimiter_is_a_byte_or_more),
        TEST(test_parts_of_a_path),
        TEST(test_group_and_number),
        TEST(test_nothing_is_appended_where_a_placeholder_stands),
        TEST(test_other_braces_stay_as_they_are),
        TEST(test_a_name_that_no_column_has_is_refused_before_anything_runs),
        TEST(test_a_placeholder_may_be_anywhere_in_a_word_and_again),
        TEST(test_the_command_itself_may_be_a_placeholder),
        TEST(test_values_are_not_filled_in_twice),
        TEST(test_values_become_arguments_as_they_are),
        TEST(test_values_in_a_shell_script_are_safe_in_any_quotes),
        TEST(test_a_shell_script_is_a_script),
        TEST(test_newlines_in_names_are_safe_in_a_shell),
        TEST(test_a_zero_byte_cannot_be_an_argument),
        TEST(test_binary_junk_is_run_or_refused_but_never_harms),
        TEST(test_bytes_that_are_no_text_arrive_unchanged),
        TEST(test_a_megabyte_is_too_long_for_an_argument_and_that_is_said),
        TEST(test_a_megabyte_goes_to_standard_input),
        TEST(test_stdin_has_the_record_and_nothing_is_appended),
        TEST(test_nothing_is_appended_if_that_is_asked_for),
        TEST(test_without_stdin_a_command_reads_nothing),
        TEST(test_input_comes_from_a_file),
        TEST(test_a_file_that_is_not_there),
        TEST(test_a_file_that_may_not_be_read),
        TEST(test_a_file_that_cannot_be_read),
        TEST(test_a_directory_is_no_input),
        TEST(test_closed_standard_input_is_an_error),
        TEST(test_a_command_starts_when_its_line_arrives),
        TEST(test_a_row_starts_when_it_arrives),
        TEST(test_an_endless_stream_ends_with_its_reader),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
