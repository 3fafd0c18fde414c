/* SPDX-License-Identifier: MIT */
#include "cli/input/template.h"

#include "support/seed.h"

#include <fcntl.h>
#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { MUTATIONS = 200000, WORDS_MAX = 8 };

static const struct record_syntax lines = { .form = FORM_LINES };
static const struct record_syntax jsonl = { .form = FORM_JSONL };

static char *columns[] = { "name", "First Name", "" };
static const struct record_syntax named = { .form = FORM_CSV, .names = columns, .name_count = 3 };

/* The shells to be tried: what is installed of these. */
static const char *const shells[] = { "/bin/sh", "/bin/dash", "/bin/bash" };

static struct record record_of(const struct record_syntax *syntax, const char *text, size_t length)
{
    struct record record = { .text = malloc(length + 1), .length = length, .line = 7 };

    assert_non_null(record.text);
    memcpy(record.text, text, length);
    record.text[length] = '\0';
    assert_int_equal(record_split(&record, syntax, NULL), 0);
    return record;
}

static size_t count_words(char *const *words)
{
    size_t count = 0;

    while (words[count])
        count++;
    return count;
}

static char **fill(const struct template *template, const struct record_syntax *syntax,
                   const char *text, size_t length, weir_message *message)
{
    struct record record = record_of(syntax, text, length);
    struct template_values values = {
        .record = &record, .syntax = syntax, .key = "the key", .seq = 42
    };
    char **words;
    int rc = template_fill(&words, template, &values, message);

    assert_int_equal(rc, words ? 0 : WEIR_EINVAL);
    record_fini(&record);
    return words;
}

/* Words as "a|b|c". */
static void assert_filled(const struct record_syntax *syntax, bool append, char *const *words,
                          const char *text, const char *expected)
{
    weir_message message = { "" };
    struct template *template;
    char joined[512] = "", **filled;
    size_t used = 0;

    assert_int_equal(template_new(&template, words, count_words(words), syntax, append, &message),
                     0);
    filled = fill(template, syntax, text, strlen(text), &message);
    assert_non_null(filled);
    for (size_t i = 0; filled[i]; i++)
        used +=
            (size_t)snprintf(joined + used, sizeof(joined) - used, "%s%s", i ? "|" : "", filled[i]);
    assert_string_equal(joined, expected);
    free(filled);
    template_free(template);
}

#define WORDS(...) ((char *[]){ __VA_ARGS__, NULL })

static void assert_placeholder(const char *placeholder, const char *text, const char *expected)
{
    assert_filled(&lines, false, WORDS((char *)placeholder), text, expected);
}

/* ---- words --------------------------------------------------------------------------------------- */

static void test_placeholders_stand_anywhere_in_words(void **state)
{
    (void)state;
    assert_filled(&lines, true, WORDS("cp", "{}", "/tmp/{}.bak"), "a b", "cp|a b|/tmp/a b.bak");
    assert_filled(&lines, true, WORDS("{1}{2}", "x{2}", ""), "a b", "ab|xb|");
    assert_filled(&lines, true, WORDS("{seq}:{key}:{}"), "a", "42:the key:a");
    assert_filled(&lines, true, WORDS("{{}}", "{{1}"), "a", "{a}|{a");
}

static void test_other_braces_stay_as_they_are(void **state)
{
    (void)state;
    assert_filled(&lines, false, WORDS("awk", "{print $1}", "{", "}", "{1", "{ }"), "a",
                  "awk|{print $1}|{|}|{1|{ }");
    assert_filled(&lines, false, WORDS("{01}{1..3}"), "a", "{01}{1..3}");
}

/* The forms in which other languages write a word in braces; also where columns have names. */
static void test_code_of_other_languages_stays_as_it_is(void **state)
{
    static const char *const texts[] = {
        "{ cmd; }", "{cmd;}",    "${x}",       "${x%.*}",    "{a,b}",     "{a..z}",
        "{1..9}",   "{01..10}",  "{\"a\":1}",  "{a: 1}",     "f(){ g; }", "{\"a\":{\"b\":2}}",
        "{print}",  "/x/{next}", "NR>1{exit}", "{print $1}", "{n++}",     "{$1=\"\"}",
        "%{size}",  "%{A}-%{B}", "$ENV{HOME}", "$h{a}",      "{{end}}",   "{{.Names}}",
        "\\p{Lu}",  "\\x{4f}",   "a{2,3}",     "x\\{3\\}",   "@{ x }",    "{|x| y}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_filled(&lines, false, WORDS((char *)texts[i]), "a,b,c", texts[i]);
        assert_filled(&named, false, WORDS((char *)texts[i]), "a,b,c", texts[i]);
    }
}

static void test_fields_have_names(void **state)
{
    (void)state;
    assert_filled(&named, true, WORDS("{name}", "{First Name}", "{3}", "{ other }"),
                  "a,\"b \"\"c\",d", "a|b \"c|d|{ other }");
    assert_filled(&jsonl, true, WORDS("{a}", "{b.c}", "{b.d.1}", "{ \"x\": 1 }"),
                  "{\"a\":\"\\u0041\",\"b\":{\"c\":1.50,\"d\":[0,true]}}",
                  "A|1.50|true|{ \"x\": 1 }");
    assert_filled(&jsonl, true, WORDS("{}"), "{\"a\": 1}", "{\"a\": 1}");
}

/* As a word and as a script; `sentence` NULL: whatever it says. */
static void assert_unknown(const struct record_syntax *syntax, const char *word,
                           const char *sentence)
{
    for (int shell = 0; shell < 2; shell++) {
        weir_message message = { "" };
        struct template *template;
        char *const *words = WORDS((char *)word);
        int rc = shell ? template_new_shell(&template, "/bin/sh", words, 1, syntax, &message)
                       : template_new(&template, words, 1, syntax, false, &message);

        if (rc != WEIR_EINVAL)
            fail_msg("%s is not refused", word);
        if (sentence)
            assert_string_equal(message.text, sentence);
    }
}

static void assert_refused(const struct record_syntax *syntax, const char *word)
{
    assert_unknown(syntax, word, NULL);
}

static void test_a_name_that_the_header_lacks_is_refused(void **state)
{
    static char *many[] = { "a_rather_long_name_of_a_column_1", "a_rather_long_name_of_a_column_2",
                            "a_rather_long_name_of_a_column_3", "a_rather_long_name_of_a_column_4",
                            "a_rather_long_name_of_a_column_5", "a_rather_long_name_of_a_column_6",
                            "a_rather_long_name_of_a_column_7", "a_rather_long_name_of_a_column_8",
                            "a_rather_long_name_of_a_column_9" };
    static const struct record_syntax wide = { .form = FORM_TSV, .names = many, .name_count = 9 };
    static const struct record_syntax empty = { .form = FORM_CSV,
                                                .names = columns + 2,
                                                .name_count = 1 };

    (void)state;
    assert_unknown(&named, "x{nam}",
                   "{nam}: no such column; the columns are name, First Name; for the text itself "
                   "write \\{nam}");
    assert_unknown(&named, "x {Name-2_b} {name}",
                   "{Name-2_b}: no such column; the columns are name, First Name; for the text "
                   "itself write \\{Name-2_b}");
    assert_unknown(
        &wide, "{x}",
        "{x}: no such column; the columns are a_rather_long_name_of_a_column_1, "
        "a_rather_long_name_of_a_column_2, a_rather_long_name_of_a_column_3, "
        "a_rather_long_name_of_a_column_4, a_rather_long_name_of_a_column_5, and 4 more; "
        "for the text itself write \\{x}");
    assert_unknown(&empty, "{x}",
                   "{x}: no such column; no column has a name; for the text itself "
                   "write \\{x}");
}

static void test_a_name_where_columns_have_none_is_refused(void **state)
{
    static const struct record_syntax numbered = { .form = FORM_CSV };
    static const char *const names[] = { "{path}",   "x{host}y",    "{path//}",
                                         "{file/.}", "{file.}",     "{Id-2_b}",
                                         "{1a}",     "{user.name}", "{caf\303\251}" };
    (void)state;
    assert_unknown(&lines, "a {path//}b",
                   "{path//}: no such placeholder: columns are {1}, {2}; --csv, --tsv and --jsonl "
                   "give them names; for the text itself write \\{path//}");
    assert_unknown(&numbered, "{path}",
                   "{path}: no such placeholder: without a header columns are {1}, {2}; for the "
                   "text itself write \\{path}");
    assert_unknown(&lines, "{line}",
                   "{line}: no such placeholder: {} is the record; for the text itself write "
                   "\\{line}");
    assert_unknown(&lines, "{Group}",
                   "{Group}: no such placeholder: {key} is the group; for the text itself write "
                   "\\{Group}");
    assert_unknown(&lines, "{key/.}",
                   "{key/.}: no such placeholder: only the record and its columns have parts, as "
                   "in {/.} and {1/.}; for the text itself write \\{key/.}");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        assert_refused(&lines, names[i]);
}

static void test_braces_that_cannot_hold_a_name_stay_as_they_are(void **state)
{
    (void)state;
    assert_filled(&named, false, WORDS("{print $1}", "{01}{1..3}{a,b}{a..b}", "{ nam }", "{nam"),
                  "a,b,c", "{print $1}|{01}{1..3}{a,b}{a..b}|{ nam }|{nam");
    assert_refused(&named, "{a.b}");
    assert_refused(&named, "{nam/}");
    assert_filled(&named, false, WORDS("sh", "-c", "echo ${HOME} $1 ${nam}", "-", "{name}"),
                  "a,b,c", "sh|-c|echo ${HOME} $1 ${nam}|-|a");    /* a shell's */
    assert_filled(&named, false, WORDS("${name}"), "a,b,c", "$a"); /* a price, say */
}

static void test_a_backslash_keeps_a_name_from_being_one(void **state)
{
    (void)state;
    assert_filled(&named, false, WORDS("\\{nam}", "x\\{name}y{name}", "\\{key}\\{seq}{seq}"),
                  "a,b,c", "{nam}|x{name}ya|{key}{seq}42");
    assert_filled(&jsonl, false, WORDS("\\{a}{a}"), "{\"a\":1}", "{a}1");
    assert_filled(&lines, false, WORDS("\\{nam}", "x\\{a.b}y{}", "\\{path//}"), "a",
                  "{nam}|x{a.b}ya|{path//}");
    assert_filled(&named, false, WORDS("\\{}", "\\{1}", "\\{/.}", "a\\{3}", "\\{name//}"), "a,b,c",
                  "{}|{1}|{/.}|a{3}|{name//}");
    assert_filled(&named, false, WORDS("\\{ nam }", "\\{1,3\\}", "\\{print}"), "a,b,c",
                  "\\{ nam }|\\{1,3\\}|\\{print}"); /* these would be text in any case */
}

static void test_the_record_is_appended_where_no_placeholder_stands(void **state)
{
    (void)state;
    assert_filled(&lines, true, WORDS("echo"), "a b", "echo|a b");
    assert_filled(&lines, true, WORDS("echo", "{seq}", "{key}"), "a", "echo|42|the key");
    assert_filled(&lines, false, WORDS("echo"), "a b", "echo");
    assert_filled(&lines, true, WORDS("echo", "{/}"), "a/b", "echo|b");
    assert_filled(&lines, true, WORDS("echo", "{1}"), "a b", "echo|a");
}

static void test_paths_have_parts(void **state)
{
    static const struct {
        const char *path, *stem, *base, *directory, *base_stem;
    } cases[] = {
        { "a/b.c/d.tar.gz", "a/b.c/d.tar", "d.tar.gz", "a/b.c", "d.tar" },
        { "a/b.c/d", "a/b.c/d", "d", "a/b.c", "d" },
        { "file.txt", "file", "file.txt", ".", "file" },
        { "file", "file", "file", ".", "file" },
        { ".bashrc", ".bashrc", ".bashrc", ".", ".bashrc" },
        { "x/.bashrc", "x/.bashrc", ".bashrc", "x", ".bashrc" },
        { ".a.b", ".a", ".a.b", ".", ".a" },
        { "..", "..", "..", ".", ".." },
        { "a/..", "a/..", "..", "a", ".." },
        { "name.", "name", "name.", ".", "name" },
        { "/etc", "/etc", "etc", "/", "etc" },
        { "//etc", "//etc", "etc", "/", "etc" },
        { "a//b", "a//b", "b", "a", "b" },
        { "a/b.d/", "a/b.d/", "b.d", "a", "b" },
        { "/", "/", "/", "/", "/" },
        { "", "", "", ".", "" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_placeholder("{.}", cases[i].path, cases[i].stem);
        assert_placeholder("{/}", cases[i].path, cases[i].base);
        assert_placeholder("{//}", cases[i].path, cases[i].directory);
        assert_placeholder("{/.}", cases[i].path, cases[i].base_stem);
    }
}

static void test_many_placeholders_are_as_good_as_few(void **state)
{
    (void)state;
    assert_filled(&lines, false, WORDS("{1}{2}{3}{4}{5}{6}{7}{8}{9}{10}{11}{12}{1}"),
                  "a b c d e f g h i j k l", "abcdefghijkla");
}

static void test_the_needs_of_a_template_are_known(void **state)
{
    static const struct {
        const char *word;
        unsigned needs;
        bool fixed;
    } cases[] = {
        { "x", 0, true },
        { "{}", TEMPLATE_NEEDS_RECORD, false },
        { "x{//}", TEMPLATE_NEEDS_RECORD, false },
        { "{2}", TEMPLATE_NEEDS_FIELDS, false },
        { "{key}{seq}", TEMPLATE_NEEDS_KEY | TEMPLATE_NEEDS_SEQ, false },
        { "{ other }", 0, true },
        { "", 0, true },
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct template *template;
        assert_int_equal(
            template_new(&template, WORDS((char *)cases[i].word), 1, &lines, false, NULL), 0);
        assert_int_equal(template_needs(template), cases[i].needs);
        assert_int_equal(template_command_is_fixed(template), cases[i].fixed);
        template_free(template);
    }
    template_free(NULL);
}

static void assert_not_filled(const struct record_syntax *syntax, const char *word,
                              const char *text, size_t length, const char *sentence)
{
    weir_message message = { "" };
    struct template *template;

    assert_int_equal(template_new(&template, WORDS((char *)word), 1, syntax, false, &message), 0);
    assert_null(fill(template, syntax, text, length, &message));
    assert_string_equal(message.text, sentence);
    template_free(template);
}

static void test_values_that_cannot_be_are_refused(void **state)
{
    (void)state;
    assert_not_filled(&lines, "{3}", "a b", 3, "line 7: no column \"3\", only 2 columns");
    assert_not_filled(&jsonl, "{x}", "{}", 2, "line 7: the object has no field \"x\"");
    assert_not_filled(&lines, "{}", "a\0b", 3,
                      "line 7: {} contains a zero byte, which an argument cannot");
    assert_not_filled(&jsonl, "{a}", "{\"a\":\"\\u0000\"}", 14,
                      "line 7: {a} contains a zero byte, which an argument cannot");
    /* Other fields may have some. */
    assert_filled(&jsonl, false, WORDS("{b}"), "{\"a\":\"\\u0000\",\"b\":1}", "1");
}

static void test_a_single_word_may_be_filled_alone(void **state)
{
    struct record record = record_of(&lines, "a b", 3);
    struct template_values values = { .record = &record, .syntax = &lines, .key = "k", .seq = 3 };
    struct template *template;
    char *text;
    (void)state;
    assert_int_equal(template_new(&template, WORDS("{seq}-{2}/{key}"), 1, &lines, false, NULL), 0);
    assert_int_equal(template_fill_one(&text, template, &values, NULL), 0);
    assert_string_equal(text, "3-b/k");
    free(text);
    template_free(template);
    assert_int_equal(template_new(&template, WORDS("{9}"), 1, &lines, false, NULL), 0);
    assert_int_equal(template_fill_one(&text, template, &values, NULL), WEIR_EINVAL);
    assert_null(text);
    template_free(template);
    record_fini(&record);
}

static void test_no_words_are_no_command(void **state)
{
    weir_message message = { "" };
    struct template *template;
    (void)state;
    assert_int_equal(template_new(&template, NULL, 0, &lines, true, &message), WEIR_EINVAL);
    assert_string_equal(message.text, "no command given");
    assert_int_equal(template_new_shell(&template, "sh", NULL, 0, &lines, &message), WEIR_EINVAL);
}

/* ---- scripts ------------------------------------------------------------------------------------- */

static void assert_script(const char *word, const char *expected)
{
    weir_message message = { "" };
    struct template *template;
    char **words;

    if (template_new_shell(&template, "/bin/sh", WORDS((char *)word), 1, &lines, &message))
        fail_msg("%s: %s", word, message.text);
    words = fill(template, &lines, "1 2 3 4 5 6 7 8 9 10 11", 23, &message);
    if (!words) { /* in arithmetic */
        words = fill(template, &lines, "1", 1, &message);
        assert_non_null(words);
    }
    assert_string_equal(words[0], "/bin/sh");
    assert_string_equal(words[1], "-c");
    assert_string_equal(words[2], expected);
    assert_string_equal(words[3], "sh");
    assert_true(template_command_is_fixed(template));
    free(words);
    template_free(template);
}

static void test_references_are_quoted_as_their_place_demands(void **state)
{
    static const struct {
        const char *word, *script;
    } cases[] = {
        { "echo {}", "weir_1=$1; shift 1; echo \"$weir_1\"" },
        { "echo \"{}\"", "weir_1=$1; shift 1; echo \"${weir_1}\"" },
        { "echo '{}'", "weir_1=$1; shift 1; echo ''\"$weir_1\"''" },
        { "echo $'{}'", "weir_1=$1; shift 1; echo $''\"$weir_1\"$''" },
        { "{1} {} {1}{2}", "weir_1=$1; weir_2=$2; weir_3=$3; shift 3; "
                           "\"$weir_1\" \"$weir_2\" \"$weir_1\"\"$weir_3\"" },
        { "echo \"a$(b {} \"{}\")c{}\"", "weir_1=$1; shift 1; "
                                         "echo \"a$(b \"$weir_1\" \"${weir_1}\")c${weir_1}\"" },
        { "echo \"`b {} \\\"{}\\\"` {}\"",
          "weir_1=$1; shift 1; echo \"`b \"$weir_1\" \\\"${weir_1}\\\"` ${weir_1}\"" },
        { "echo \"\\{} \\\\{} \\\"{}\"",
          "weir_1=$1; shift 1; echo \"{} \\\\${weir_1} \\\"${weir_1}\"" },
        { "x={}; echo ${x:-{}} \"${x:-{}}\"",
          "weir_1=$1; shift 1; x=\"$weir_1\"; echo ${x:-\"$weir_1\"} \"${x:-${weir_1}}\"" },
        { "echo $$ {} # don't {}\necho '{}'",
          "weir_1=$1; shift 1; echo $$ \"$weir_1\" # don't {}\necho ''\"$weir_1\"''" },
        { "echo $(( {1} + 1 )) {}",
          "weir_1=$1; weir_2=$2; shift 2; echo $(( ${weir_1} + 1 )) \"$weir_2\"" },
        { "echo {}#'{}'", "weir_1=$1; shift 1; echo \"$weir_1\"#''\"$weir_1\"''" },
        { "cat <<E\n{} \"{}\" '{}'\nE\necho {}",
          "weir_1=$1; shift 1; cat <<E\n${weir_1} \"${weir_1}\" '${weir_1}'\nE\necho \"$weir_1\"" },
        { "cat <<A <<-'B'\n{}\nA\n'\n\tB\necho {}",
          "weir_1=$1; shift 1; cat <<A <<-'B'\n${weir_1}\nA\n'\n\tB\necho \"$weir_1\"" },
        { "cat <<<{}", "weir_1=$1; shift 1; cat <<<\"$weir_1\"" },
        { "echo \"$(case {} in a) b {};; (c) d;; esac) {}\"",
          "weir_1=$1; shift 1; "
          "echo \"$(case \"$weir_1\" in a) b \"$weir_1\";; (c) d;; esac) ${weir_1}\"" },
        { "awk '{print}' f; echo ${x} \"$x{y}\" '%{z}'",
          "awk '{print}' f; echo ${x} \"$x{y}\" '%{z}'" },
        { "echo ${1} ${name} \\{} \\{name} {a,b} {", "echo ${1} ${name} \\{} \\{name} {a,b} {" },
        { "echo {11}{1}{2}{3}{4}{5}{6}{7}{8}{9}{10}",
          "weir_1=$1; weir_2=$2; weir_3=$3; weir_4=$4; weir_5=$5; weir_6=$6; weir_7=$7; weir_8=$8; "
          "weir_9=$9; weir_10=${10}; weir_11=${11}; shift 11; echo "
          "\"$weir_1\"\"$weir_2\"\"$weir_3\"\"$weir_4\"\"$weir_5\"\"$weir_6\"\"$weir_7\"\"$weir_8\""
          "\"$weir_9\"\"$weir_10\"\"$weir_11\"" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_script(cases[i].word, cases[i].script);
}

static void test_nothing_is_appended_to_scripts(void **state)
{
    (void)state;
    assert_script("echo", "echo");
    assert_script("echo {seq}", "weir_1=$1; shift 1; echo \"$weir_1\"");
}

static void assert_no_script(const char *word, const char *sentence)
{
    weir_message message = { "" };
    struct template *template;

    assert_int_equal(template_new_shell(&template, "sh", WORDS((char *)word), 1, &lines, &message),
                     WEIR_EINVAL);
    assert_null(template);
    assert_string_equal(message.text, sentence);
}

static void test_placeholders_the_shell_would_not_replace_are_refused(void **state)
{
    char deep[300];
    (void)state;
    assert_no_script("cat <<'E'\n{}\nE",
                     "{}: placeholders do not work in a here-document with a quoted end mark");
    assert_no_script("cat <<\\E\n{/}\nE",
                     "{/}: placeholders do not work in a here-document with a quoted end mark");
    assert_no_script("echo ${}", "${} is not known to the shell; for a dollar sign write \\$");
    assert_no_script("echo \"${//}\"",
                     "${//} is not known to the shell; for a dollar sign write \\$");
    assert_no_script("echo `echo \\\\{}`",
                     "{} after a backslash within backticks is ambiguous; use $(...)");
    memset(deep, '(', sizeof(deep));
    for (size_t i = 0; i < sizeof(deep); i += 3)
        memcpy(deep + i, "$( ", 3);
    deep[sizeof(deep) - 1] = '\0';
    assert_no_script(deep, "the script is nested too deeply: use at most 63 levels");
}

/* ---- real shells --------------------------------------------------------------------------------- */

/* Runs the words; answers what they print, to be freed. */
static char *run(char *const *words)
{
    static char *environment[] = { "PATH=/usr/bin:/bin", "LC_ALL=C", NULL };
    posix_spawn_file_actions_t actions;
    char *output = NULL, buffer[4096];
    size_t length = 0;
    ssize_t count;
    int fds[2], status;
    pid_t pid;

    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fds[1], 1);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    assert_int_equal(posix_spawn(&pid, words[0], &actions, NULL, words, environment), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(fds[1]);
    while ((count = read(fds[0], buffer, sizeof(buffer))) > 0) {
        output = realloc(output, length + (size_t)count + 1);
        memcpy(output + length, buffer, (size_t)count);
        length += (size_t)count;
    }
    close(fds[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (!output)
        output = malloc(1);
    output[length] = '\0';
    return output;
}

static char *run_script(const char *shell, const char *script, const char *value)
{
    weir_message message = { "" };
    struct template *template;
    char **words, *output;

    if (template_new_shell(&template, shell, WORDS((char *)script), 1, &lines, &message))
        fail_msg("%s: %s", script, message.text);
    words = fill(template, &lines, value, strlen(value), &message);
    assert_non_null(words);
    output = run(words);
    free(words);
    template_free(template);
    return output;
}

static void assert_prints(const char *shell, const char *script, const char *before,
                          const char *value, const char *after)
{
    char expected[512], *output = run_script(shell, script, value);

    snprintf(expected, sizeof(expected), "%s%s%s", before, value, after);
    if (strcmp(output, expected) != 0)
        fail_msg("%s: %s\nwith <%s>\nprints <%s>\ninstead of <%s>", shell, script, value, output,
                 expected);
    free(output);
}

/* P prints its arguments, each in brackets. */
#define P "p() { printf '[%s]' \"$@\"; }; "

static void test_no_value_becomes_code_in_any_place(void **state)
{
    static const char *const values[] = {
        "plain",
        "two  words",
        "",
        " ",
        "*",
        "~",
        "-n",
        "$(echo pwned)",
        "`echo pwned`",
        "; echo pwned",
        "'; echo pwned; '",
        "\"; echo pwned; \"",
        "\\",
        "\\\\x",
        "$HOME ${HOME} $1 $weir_1",
        "a\nb\n\nc",
        "E\necho pwned",
        "\nE\necho pwned\ncat <<E",
        ") echo pwned (",
        "))",
        "}",
        "{}",
        "#",
        "!!",
        "\xff\xc3\x01\x7f",
        "a'b\"c`d$e\\f&g|h<i>j(k)l{m}n",
    };
    static const struct {
        const char *script, *before, *after;
    } places[] = {
        { P "p {}", "[", "]" },
        { P "p x{}y", "[x", "y]" },
        { P "p \"{}\"", "[", "]" },
        { P "p \"x{}y\"", "[x", "y]" },
        { P "p '{}'", "[", "]" },
        { P "p 'x{}y'\"z\"", "[x", "yz]" },
        { P "p \"'{}'\"", "['", "']" },
        { P "p '\"'{}'\"'", "[\"", "\"]" },
        { P "p \"\\\\{}\"", "[\\", "]" },
        { P "p \"\\$\"{}", "[$", "]" },
        { P "p \"$(p {})\"", "[[", "]]" },
        { P "p \"a$(p \"{}\")b\"", "[a[", "]b]" },
        { P "p \"$(p '{}')\"", "[[", "]]" },
        { P "p \"$(p \"$(p {})\")\"", "[[[", "]]]" },
        { P "p \"`p {}`\"", "[[", "]]" },
        { P "p \"`p \\\"{}\\\"`\"", "[[", "]]" },
        { P "p \"`p '{}'`\"", "[[", "]]" },
        { P "x=`p {}`; p \"$x\"", "[[", "]]" },
        { P "x=$(p {}); p \"$x\"", "[[", "]]" },
        { P "x={}; p \"$x\"", "[", "]" },
        { P "x={}; p \"${x}\"", "[", "]" },
        { P "p ${x:-{}}", "[", "]" },
        { P "p \"${x:-{}}\"", "[", "]" },
        { P "p \"${x:-a{}b}\"", "[a", "b]" },
        { P "p $(:; ) {} # it's", "[", "]" },
        { P "# it's \"\np {}", "[", "]" },
        { P "p \"$( # it's\np {})\"", "[[", "]]" },
        { P "p \"$(case x in x) p {};; esac)\"", "[[", "]]" },
        { P "p \"$(case {} in y) ;; *) p \"{}\";; esac)\"", "[[", "]]" },
        { P "f() { p {}; }; f a", "[", "]" },
        { P "for i in {}; do p \"$i\"; done", "[", "]" },
        { P "(p {})", "[", "]" },
        { P "if :; then p {}; fi", "[", "]" },
        { P "set -- a b; p {}", "[", "]" },
        { "cat <<E\n({})\nE", "(", ")\n" },
        { "cat <<E\n\"{}\" '\nE", "\"", "\" '\n" },
        { "cat <<E\n\\\\{}\nE", "\\", "\n" },
        { "cat <<-E\n\t({})\n\tE", "(", ")\n" },
        { "cat <<'X' <<E\nit's \"\nX\n({})\nE", "(", ")\n" },
        { P "cat <<E\n$(p {})\nE", "[", "]\n" },
        { P "p \"$(cat <<E\n({})\nE\n)\"", "[(", ")]" },
        { "cat <<E\n`printf '[%s]' {}`\nE", "[", "]\n" },
    };
    (void)state;
    for (size_t s = 0; s < sizeof(shells) / sizeof(shells[0]); s++) {
        if (access(shells[s], X_OK) != 0)
            continue;
        for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
            for (size_t k = 0; k < sizeof(values) / sizeof(values[0]); k++)
                assert_prints(shells[s], places[i].script, places[i].before, values[k],
                              places[i].after);
    }
}

static void test_a_backslash_keeps_a_name_from_being_one_in_scripts(void **state)
{
    static const struct {
        const char *script, *output;
    } cases[] = {
        { P "p \\{nam} x\\{name}y {name}", "[{nam}][x{name}y][a]" },
        { P "p \"\\{nam} \\{name} {name} \\\\{name}\"", "[{nam} {name} a \\a]" },
        { P "p '\\{nam} \\{name} {name}'", "[{nam} {name} a]" },
        { P "p \\{} \"\\{} \\{1/.}\" '\\{3}' \"${x:-\\{}}\"", "[{}][{} {1/.}][{3}][{}]" },
        { "cat <<E\n\\{} \\{1}\nE", "{} {1}\n" },
        { P "p \"${x:-\\{nam}}\" `p \\{nam}`", "[{nam}][[{nam}]]" },
        { "cat <<E\n\\{nam} \\{name} {name}\nE", "{nam} {name} a\n" },
        { "cat <<'E'\n{nam} \\{nam}\nE", "{nam} \\{nam}\n" }, /* where nothing is replaced */
        { P "nam=v; p ${nam} # {nam}", "[v]" },               /* the shell's own */
    };
    (void)state;
    for (size_t s = 0; s < sizeof(shells) / sizeof(shells[0]); s++)
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
            char *script = (char *)cases[i].script, *output, **words;
            weir_message message = { "" };
            struct template *template;

            if (access(shells[s], X_OK) != 0)
                continue;
            if (template_new_shell(&template, shells[s], WORDS(script), 1, &named, &message))
                fail_msg("%s: %s", script, message.text);
            words = fill(template, &named, "a,b,c", 5, &message);
            output = run(words);
            if (strcmp(output, cases[i].output) != 0)
                fail_msg("%s: %s\nprints <%s>\ninstead of <%s>", shells[s], script, output,
                         cases[i].output);
            free(output);
            free(words);
            template_free(template);
        }
}

static void test_arithmetic_takes_numbers_only(void **state)
{
    static const char *const scripts[] = { "echo $(( {} * 2 ))", "echo \"$((2*(1-1+{})))\"",
                                           "x=$(( ${y:-{}} * 2 )); echo $x" };
    static const char *const wrong[] = { "a[$(echo pwned)]", "x", "", "-", "1+1", "1 ", "0x1" };
    (void)state;
    for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
        weir_message message = { "" };
        struct template *template;
        char *output = run_script("/bin/sh", scripts[i], "-21");

        assert_string_equal(output, "-42\n");
        free(output);
        assert_int_equal(template_new_shell(&template, "/bin/sh", WORDS((char *)scripts[i]), 1,
                                            &lines, &message),
                         0);
        for (size_t k = 0; k < sizeof(wrong) / sizeof(wrong[0]); k++) {
            assert_null(fill(template, &lines, wrong[k], strlen(wrong[k]), &message));
            assert_string_equal(
                message.text, "line 7: {} is used in shell arithmetic, but is not a whole number");
        }
        template_free(template);
    }
}

static void test_scripts_do_not_see_our_parameters(void **state)
{
    char *output = run_script("/bin/sh", "echo $# $0 ${1}. {1} {2}", "a b");
    (void)state;
    assert_string_equal(output, "0 sh . a b\n");
    free(output);
}

/* Places where bash calculates with a value, or takes it for a variable's name: it would run what is in brackets. */
static void test_no_value_runs_where_bash_would_evaluate_it(void **state)
{
    static const char *const scripts[] = {
        "[[ {} -gt 5 ]]",
        "[[ 5 -lt {} ]]",
        "if [[ \"{}\" -eq 1 ]]; then :; fi",
        "x=abc; : ${x:{}}",
        "x=abc; : \"${x:1:{}}\"",
        "a=(1 2); : ${a[{}]}",
        "let y={}",
        "let \"y = {}\"",
        "declare -i z={}",
        "typeset -i z={}",
        "local -i z={}",
        "test -v {}",
        "[ -v {} ]",
        "[[ -v {} ]]",
        "printf -v {} x",
        "read {} </dev/null",
        "read -r {} </dev/null",
        "a[{}]=1",
        "unset {}",
        "declare {}=1",
        "export {}",
        "x=1 let y={}",
        "(( {} ))",
        "mapfile {} </dev/null",
        ": $(( {} ))",
        "command let y={}",
        "for ((i={}; i<1; i++)); do :; done",
        "[[ 1 -eq 1 && {} -ne 2 ]]",
        "[[ 1 -eq 2 || {} -ne 2 ]]",
        "[[ 1 -eq 1 &&\n {} -ne 2 ]]",
        "[[ ( {} -lt 3 ) ]]",
        "[[ ! ( 1 -gt 2 ) && ( 3 -lt {} ) ]]",
        "[[ a < b && {} -eq 1 ]]",
        "a=([{}]=1)",
        "a=(1 [2]=3 [{}]=1)",
        "a+=([\"{}\"]=1)",
        "declare -a a=([{}]=1)",
        "declare -i q; q={}",
        "declare -i q; q+={}",
        "typeset -gi q\nq={}",
        "local -i q; x=1 q={}",
        "declare -n r={}; : $r",
        "declare -n r; r={}; : $r",
        "declare z[{}]=1",
        "RANDOM={}",
        "OPTIND={}; :",
        "export RANDOM={}",
        "x=1 SECONDS={}",
        "[[ x[{}] -eq 1 ]]",
        "x={}; : ${x@P}",
        "x={}; : \"a ${x@P}\"",
        "x='a'; x={}; : ${x@P}",
        "x='a'; x+={}; : ${x@P}",
        "x='a'{}; : ${x@P}",
        "x='{}'; : ${x@P}",
        "y={}; x=(a \"$y\"); : ${x[1]@P}",
        "y={}; x=(a \"$y\"); y=x; : \"${x@P}${x[*]@P}\"",
        "y={}; x=$y; : ${x@P}",
        "y={}; x=\"$y\"; : ${x@P}",
        "y={}; x=\"\\t$y\"; : ${x@P}",
        "y={}; x=\\t\"$y\"; : ${x@P}",
        "y={}; x=a'b'$y; : ${x@P}",
        "x=a; : ${y:={}}; x=`echo \"$y\"`; : ${x@P}",
        ": ${x:={}} ${x@P}",
        "x=a; unset x; : ${x:={}} ${x@P}",
        "x=a; for x in {}; do : ${x@P}; done",
        "x=a; read x <<< {}; : ${x@P}",
        "x=a; eval 'x=$1'; : ${x@P}\n: {}",
        "x=a; declare -n r=x; r={}; : ${x@P}",
        "read <<< {}; : ${REPLY@P}",
        "a=({}); : ${a[0]@P}",
        "a=({}); : \"${a[@]@P}\"",
        "set -- {}; : ${1@P}",
        "set -- {}; : ${@@P}",
        "set -- {}; : \"${*@P}\"",
        "x={} y=x; : ${!y@P}",
        "y=x; x={}; : ${!y@P}",
        "x={}; cat <<E\n${x@P}\nE\n:",
        "x={}; : $(echo \"${x@P}\")",
        "PS1={}; : ${PS1@P}",
    };
    static const char value[] = "a[$(touch evaluated)]";
    static const char *const both[] = { "/bin/bash", "/bin/dash" };
    (void)state;
    for (size_t i = 0; i < 2 * sizeof(scripts) / sizeof(scripts[0]); i++) {
        struct template *template;
        char **words, script[200];
        if (access(both[i % 2], X_OK))
            continue;
        snprintf(script, sizeof(script), "%s >/dev/null 2>&1", scripts[i / 2]);
        if (template_new_shell(&template, both[i % 2], WORDS(script), 1, &lines, NULL))
            continue; /* refused for any value */
        words = fill(template, &lines, value, sizeof(value) - 1, NULL);
        if (words)
            free(run(words));
        if (access("evaluated", F_OK) == 0) {
            unlink("evaluated");
            fail_msg("%s runs %s in %s", both[i % 2], value, scripts[i / 2]);
        }
        free(words);
        words = fill(template, &lines, "7", 1, NULL);
        assert_non_null(words); /* a number may stand there */
        free(words);
        template_free(template);
    }
}

static void test_a_prompt_that_no_value_gets_into_may_be_expanded(void **state)
{
    static const char *const scripts[] = {
        "f='\\D{%F} \\t'; echo \"${f@P} {}\"",
        "f=\"\\t\" g={}; echo \"${f@P}\"",
        "f=x\necho ${f@P} {} $f ${f%.}",
        "echo ${PS1@P} {}",
        "x={}; echo ${x@Q} ${x@U}",
        "x={}; echo ${x:-a@P} 'x@P' x@P",
        "x={seq}; echo ${x@P}",
        "x=$HOME; echo ${x@P}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
        weir_message message = { "" };
        struct template *template;

        if (template_new_shell(&template, "/bin/bash", WORDS((char *)scripts[i]), 1, &lines,
                               &message))
            fail_msg("%s: %s", scripts[i], message.text);
        template_free(template);
    }
    assert_no_script("x={}; echo ${x@P}",
                     "${x@P}: bash would run commands in a value that gets there: leave out @P, or "
                     "give the variable a fixed text");
}

static void test_a_script_for_another_shell_is_noticed(void **state)
{
    static const struct {
        const char *script;
        bool nested;
    } cases[] = {
        { "sh -c 'echo {}'", true },
        { "/bin/bash -ec \"echo {}\"", true },
        { "eval echo {}", true },
        { "ssh host 'ls {}'", true },
        { "trap 'echo {}' EXIT", true },
        { "compgen -W {}", true },
        { "PS4={}; set -x; :", true },
        { "BASH_ENV={} bash -c :", true },
        { "export PROMPT_COMMAND={}", true },
        { "PS4x={}", false },
        { "timeout 5 sh -c 'echo {}'", true },
        { "docker exec -i box /bin/bash -c 'echo {}'", true },
        { "find . -exec sh -c 'echo {}' +", true },
        { "timeout 5 sh -c 'echo \"$1\"' sh {}", false },
        { "cp {} sh", false },
        { "env X=1 sh -c 'echo {}'", true },
        { "bash -o pipefail -c 'echo {}'", true },
        { "ssh -p 22 host ls {}", true },
        { "su -c 'ls {}' user", true },
        { "sh -c 'echo \"$1\"' sh {}", false },
        { "ssh {} uptime", false },
        { "ssh -p {} host uptime", false },
        { "echo {}", false },
        { "cat {} | sort", false },
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct template *template;
        assert_int_equal(
            template_new_shell(&template, "sh", WORDS((char *)cases[i].script), 1, &lines, NULL),
            0);
        assert_int_equal(template_nests_code(template), cases[i].nested);
        template_free(template);
    }
}

static void test_a_script_among_the_words_is_noticed(void **state)
{
    const struct {
        char *const *words;
        bool nested;
    } cases[] = {
        { WORDS("sh", "-c", "echo {}"), true },
        { WORDS("/bin/bash", "-ec", "echo {1}"), true },
        { WORDS("bash", "-o", "pipefail", "-c", "cat {} | wc"), true },
        { WORDS("env", "X=1", "sh", "-c", "echo {key}"), true },
        { WORDS("sudo", "sh", "-c", "echo {.}"), true },
        { WORDS("ssh", "-p", "22", "host", "ls", "{}"), true },
        { WORDS("su", "-c", "ls {}", "user"), true },
        { WORDS("sh", "-c", "echo \"$1\"", "sh", "{}"), false },
        { WORDS("sh", "-c", "echo \"$1\"", "sh"), false },
        { WORDS("sh", "-c", "echo {seq} {%}"), false }, /* numbers */
        { WORDS("sh", "{}"), false },                   /* a script's file */
        { WORDS("sh", "-x", "script", "-c", "{}"), false },
        { WORDS("ssh", "{}", "uptime"), false },
        { WORDS("ssh", "-p", "{2}", "{1}", "uptime"), false },
        { WORDS("echo", "sh", "-c", "{}"), false },
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct template *template;
        size_t count = 0;
        while (cases[i].words[count])
            count++;
        assert_int_equal(template_new(&template, cases[i].words, count, &lines, true, NULL), 0);
        if (template_nests_code(template) != cases[i].nested)
            fail_msg("case %zu", i);
        template_free(template);
    }
}

static void test_path_parts_of_fields(void **state)
{
    (void)state;
    assert_filled(&lines, false, WORDS("{1/.}", "{2//}", "{1/}", "{1.}"), "a/b.c d/e",
                  "b|d|b.c|a/b");
    assert_filled(&named, false, WORDS("{name/.}", "{name//}"), "x/y.z,b,c", "y|x");
}

static void test_placeholders_of_other_tools_are_refused_with_what_is_meant(void **state)
{
    static const char *const forms[] = { "{..}",  "{+/}",  "{##}",    "{0}",          "{-1}",
                                         "{-12}", "{1..}", "{2/...}", "{= s/a/b/ =}", "{1= uc =}" };
    (void)state;
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        weir_message message = { "" };
        struct template *template;
        assert_int_equal(
            template_new(&template, WORDS((char *)forms[i]), 1, &lines, false, &message),
            WEIR_EINVAL);
        assert_non_null(strstr(message.text, "no such placeholder: "));
    }
    assert_filled(&lines, false, WORDS("\\{..}", "\\{##}", "${#}"), "a", "{..}|{##}|${#}");
}

static void test_words_of_a_script_are_joined_by_blanks(void **state)
{
    struct template *template;
    char **words, *output;
    (void)state;
    assert_int_equal(template_new_shell(&template, "/bin/sh",
                                        WORDS("printf", "'[%s]'", "{2}", "\"{1}", "x\""), 5, &lines,
                                        NULL),
                     0);
    words = fill(template, &lines, "a b", 3, NULL);
    output = run(words);
    assert_string_equal(output, "[b][a x]");
    free(output);
    free(words);
    template_free(template);
}

/* ---- luck ---------------------------------------------------------------------------------------- */

static void make_script(struct luck *luck, char *text, size_t size)
{
    static const char *const parts[] = {
        "{}",     "{1}",   "{",     "}",     "'",    "\"", "\\", "`", "$(",
        ")",      "$((",   "))",    "${x:-", "$'",   "$[", "]",  "(", "<<E",
        "<<-'E'", "<<<",   "\nE\n", "\n",    "\t",   " ",  "#",  ";", "case x in a)",
        "esac",   "echo ", "$",     "$$",    "{//}", "&",  "|",  "E", "((",
    };
    size_t used = 0, count = luck_below(luck, 20);

    text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        const char *part = parts[luck_below(luck, sizeof(parts) / sizeof(parts[0]))];
        if (used + strlen(part) < size)
            used = (size_t)(stpcpy(text + used, part) - text);
    }
}

static void test_any_script_is_translated_within_its_bounds(void **state)
{
    struct luck luck = luck_of(1);
    (void)state;
    for (int i = 0; i < MUTATIONS; i++) {
        bool append = luck_below(&luck, 2);
        struct template *template;
        char text[256], *script;

        make_script(&luck, text, sizeof(text));
        script = strdup(text); /* so that its end is that of an allocation */
        if (template_new_shell(&template, "sh", &script, 1, &lines, NULL) == 0)
            template_free(template);
        if (template_new(&template, &script, 1, &lines, append, NULL) == 0)
            template_free(template);
        free(script);
    }
}

/* The script's text never depends on values; and one that is quoted in a strange way, so that our guess of
 * where it stands may be wrong, still runs none of them. */
static void test_strange_scripts_never_run_a_value(void **state)
{
    static const char value[] =
        "1 $(echo pwned >&3)`echo pwned >&3`;echo pwned >&3\n'\"echo pwned\"'>&3";
    struct luck luck = luck_of(2);
    int tried = 0;
    (void)state;
    for (int i = 0; i < 300; i++) {
        char text[256], wrapped[300], *script = wrapped, **words, *output;
        struct template *template;

        make_script(&luck, text, sizeof(text));
        /* Without running anything else: only what the value would print can appear. */
        snprintf(wrapped, sizeof(wrapped), "exec 3>&1 >/dev/null </dev/null\n: %s", text);
        if (template_new_shell(&template, shells[luck_below(&luck, 3)], &script, 1, &lines, NULL) !=
            0)
            continue;
        words = fill(template, &lines, value, sizeof(value) - 1, NULL);
        if (words && access(words[0], X_OK) == 0) {
            output = run(words);
            if (strstr(output, "pwned"))
                fail_msg("%s\nran the value", wrapped);
            free(output);
            tried++;
        }
        free(words);
        template_free(template);
    }
    assert_true(tried > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_placeholders_stand_anywhere_in_words),
        cmocka_unit_test(test_other_braces_stay_as_they_are),
        cmocka_unit_test(test_code_of_other_languages_stays_as_it_is),
        cmocka_unit_test(test_fields_have_names),
        cmocka_unit_test(test_a_name_that_the_header_lacks_is_refused),
        cmocka_unit_test(test_a_name_where_columns_have_none_is_refused),
        cmocka_unit_test(test_braces_that_cannot_hold_a_name_stay_as_they_are),
        cmocka_unit_test(test_a_backslash_keeps_a_name_from_being_one),
        cmocka_unit_test(test_a_backslash_keeps_a_name_from_being_one_in_scripts),
        cmocka_unit_test(test_the_record_is_appended_where_no_placeholder_stands),
        cmocka_unit_test(test_paths_have_parts),
        cmocka_unit_test(test_many_placeholders_are_as_good_as_few),
        cmocka_unit_test(test_the_needs_of_a_template_are_known),
        cmocka_unit_test(test_values_that_cannot_be_are_refused),
        cmocka_unit_test(test_a_single_word_may_be_filled_alone),
        cmocka_unit_test(test_no_words_are_no_command),
        cmocka_unit_test(test_references_are_quoted_as_their_place_demands),
        cmocka_unit_test(test_nothing_is_appended_to_scripts),
        cmocka_unit_test(test_placeholders_the_shell_would_not_replace_are_refused),
        cmocka_unit_test(test_no_value_becomes_code_in_any_place),
        cmocka_unit_test(test_arithmetic_takes_numbers_only),
        cmocka_unit_test(test_scripts_do_not_see_our_parameters),
        cmocka_unit_test(test_no_value_runs_where_bash_would_evaluate_it),
        cmocka_unit_test(test_a_prompt_that_no_value_gets_into_may_be_expanded),
        cmocka_unit_test(test_a_script_for_another_shell_is_noticed),
        cmocka_unit_test(test_a_script_among_the_words_is_noticed),
        cmocka_unit_test(test_path_parts_of_fields),
        cmocka_unit_test(test_placeholders_of_other_tools_are_refused_with_what_is_meant),
        cmocka_unit_test(test_words_of_a_script_are_joined_by_blanks),
        cmocka_unit_test(test_any_script_is_translated_within_its_bounds),
        cmocka_unit_test(test_strange_scripts_never_run_a_value),
    };
    seed_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
