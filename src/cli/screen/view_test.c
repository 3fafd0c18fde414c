/* SPDX-License-Identifier: MIT */
#include "cli/screen/view.h"

#include "cli/screen/glyph.h"

#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include <cmocka.h>

#define S 1000000000LL

static struct view_text out;

static const char *shown(const struct view *view, struct view_look look)
{
    view_render(&out, view, &look);
    assert_non_null(out.text);
    return out.text;
}

static struct view_look utf8(int width)
{
    return (struct view_look){ .width = width, .height = 24, .utf8 = true };
}

static struct view_look ascii(int width)
{
    return (struct view_look){ .width = width, .height = 24 };
}

static struct view_look colored(int width)
{
    return (struct view_look){ .width = width, .height = 24, .utf8 = true, .color = true };
}

static const struct view_group hosts[] = {
    { .key = "api.example.com",
      .done = 120,
      .failed = 3,
      .running = 8,
      .waiting = 272,
      .per_second = 4.2,
      .limit = 8 },
    { .key = "cdn.example.com",
      .done = 40,
      .running = 2,
      .waiting = 38,
      .per_second = 12.25,
      .limit = 4,
      .state = "cooling down 12s",
      .is_special = true },
    { .key = "", .done = 7, .running = 1, .per_second = 0.04 },
};

static struct view grouped(void)
{
    return (struct view){ .groups = hosts,
                          .count = 3,
                          .others = 12,
                          .grouped = true,
                          .total = { .done = 1247,
                                     .failed = 83,
                                     .running = 12,
                                     .waiting = 1309,
                                     .per_second = 16.8,
                                     .limit = 16 },
                          .expected = 4400,
                          .elapsed_ns = 75 * S + 123,
                          .eta_ns = 188 * S };
}

static struct view alone(void)
{
    struct view view = grouped();

    view.grouped = false;
    return view;
}

static struct view group_named(const char *key, struct view_group *group)
{
    *group = (struct view_group){ .key = key, .done = 1, .running = 1 };
    return (struct view){ .groups = group,
                          .count = 1,
                          .grouped = true,
                          .total = *group,
                          .expected = 2,
                          .elapsed_ns = 5 * S,
                          .eta_ns = -1 };
}

/* ---- what it looks like ------------------------------------------------------------------------- */

/* Pictures are not to be broken. */
/* clang-format off */

static void test_a_wide_terminal_shows_everything(void **state)
{
    struct view view = grouped();

    (void)state;
    assert_string_equal(
        shown(&view, utf8(120)),
        "group                                                      done  running  waiting  failed    rate\n"
        "api.example.com   ━━━━━━━━━━─┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈    120/400      8/8      272       3   4.2/s\n"
        "cdn.example.com   ━━━━━━━━━━━━━━━━━─┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈      40/80      2/4       38       ·  12.2/s  cooling down 12s\n"
        "(none)            ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━╾────        7/8        1        ·       ·   2.4/m\n"
        "… and 12 more groups\n"
        "total        28%  ━━━━━━━━━╾─┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈  1247/4400    12/16     1309      83  16.8/s  1m15s · eta 3m08s\n");
}

static void test_a_usual_terminal_leaves_single_rates_to_the_total(void **state)
{
    struct view view = grouped();

    (void)state;
    assert_string_equal(shown(&view, utf8(80)),
        "group                               done    run  wait  fail\n"
        "api.example.com   ━━━─┈┈┈┈┈┈┈    120/400    8/8   272     3\n"
        "cdn.example.com   ━━━━━╾─┈┈┈┈      40/80    2/4    38     ·  cooling down 12s\n"
        "(none)            ━━━━━━━━━╾─        7/8      1     ·     ·\n"
        "… and 12 more groups\n"
        "total        28%  ━━━─┈┈┈┈┈┈┈  1247/4400  12/16  1309    83  1m15s · eta 3m08s\n"
        "16.8/s\n");
}

static void test_a_narrow_terminal_says_figures_without_a_column_below(void **state)
{
    struct view view = grouped();

    (void)state;
    assert_string_equal(shown(&view, utf8(60)),
        "group                               done    run  wait  fail\n"
        "api.example.com   ━━━─┈┈┈┈┈┈┈    120/400    8/8   272     3\n"
        "cdn.example.com   ━━━━━╾─┈┈┈┈      40/80    2/4    38     ·\n"
        "(none)            ━━━━━━━━━╾─        7/8      1     ·     ·\n"
        "… and 12 more groups\n"
        "total        28%  ━━━─┈┈┈┈┈┈┈  1247/4400  12/16  1309    83\n"
        "16.8/s · 1m15s · eta 3m08s\n");
    assert_string_equal(shown(&view, utf8(40)),
        "group                        done  fail\n"
        "api.exa….com  ━━─┈┈┈┈┈    120/400     3\n"
        "cdn.exa….com  ━━━━─┈┈┈      40/80     ·\n"
        "(none)        ━━━━━━━─        7/8     ·\n"
        "… and 12 more groups\n"
        "total    28%  ━━─┈┈┈┈┈  1247/4400    83\n"
        "12/16 running · 1309 waiting · 16.8/s\n"
        "1m15s · eta 3m08s\n");
    assert_string_equal(shown(&view, utf8(20)),
        "group          done\n"
        "api.e…com   120/400\n"
        "cdn.e…com     40/80\n"
        "(none)          7/8\n"
        "… and 12 more\n"
        "total 28% 1247/4400\n"
        "83 failed\n"
        "12/16 running\n"
        "1309 waiting\n"
        "1m15s · eta 3m08s\n");
}

static void test_ascii_does_without_line_drawing(void **state)
{
    struct view view = grouped();

    (void)state;
    assert_string_equal(shown(&view, ascii(80)),
        "group                               done    run  wait  fail\n"
        "api.example.com   ===-.......    120/400    8/8   272     3\n"
        "cdn.example.com   =====--....      40/80    2/4    38     -  cooling down 12s\n"
        "(none)            =========--        7/8      1     -     -\n"
        "... and 12 more groups\n"
        "total        28%  ===-.......  1247/4400  12/16  1309    83  1m15s, eta 3m08s\n"
        "16.8/s\n");
}

static void test_without_groups_there_is_a_bar_and_a_sentence(void **state)
{
    struct view view = alone();

    (void)state;
    assert_string_equal(shown(&view, utf8(100)),
        "━━━━━━━━━━━━━━━━━━━━─┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈   28%\n"
        "1247/4400 done · 83 failed · 12/16 running · 1309 waiting · 16.8/s · 1m15s · eta 3m08s\n");
    assert_string_equal(shown(&view, utf8(40)),
        "━━━━━━━━━─┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈   28%\n"
        "1247/4400 done · 83 failed\n"
        "12/16 running · 1309 waiting · 16.8/s\n"
        "1m15s · eta 3m08s\n");
}

static void test_without_an_expected_number_there_is_no_bar_of_the_whole(void **state)
{
    struct view view = alone();

    (void)state;
    view.expected = 0;
    view.eta_ns = -1;
    assert_string_equal(shown(&view, utf8(100)),
        "1247 done · 83 failed · 12/16 running · 1309 waiting · 16.8/s · 1m15s\n");
    view.grouped = true;
    assert_string_equal(shown(&view, utf8(60)),
        "group                               done    run  wait  fail\n"
        "api.example.com   ━━━╾─┈┈┈┈┈┈┈┈  120/400    8/8   272     3\n"
        "cdn.example.com   ━━━━━━╾─┈┈┈┈┈    40/80    2/4    38     ·\n"
        "(none)            ━━━━━━━━━━━──      7/8      1     ·     ·\n"
        "… and 12 more groups\n"
        "total                               1247  12/16  1309    83\n"
        "16.8/s · 1m15s\n");
}

static void test_an_estimate_is_marked_as_one(void **state)
{
    struct view view = alone();

    (void)state;
    view.expected_is_estimate = true;
    assert_string_equal(shown(&view, utf8(100)),
        "━━━━━━━━━━━━━━━━━━━━─┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈  ~28%\n"
        "1247/~4400 done · 83 failed · 12/16 running · 1309 waiting · 16.8/s · 1m15s · eta ~3m08s\n");
    view.expected = 2000; /* overtaken: 1247 + 12 + 1309 have come */
    assert_string_equal(shown(&view, utf8(100)),
        "━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━╾─┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈   48%\n"
        "1247/2568 done · 83 failed · 12/16 running · 1309 waiting · 16.8/s · 1m15s · eta 3m08s\n");
}

static void test_failures_are_red_and_the_rest_is_quiet(void **state)
{
    struct view view = grouped();

    (void)state;
    view.count = 2;
    view.others = 0;
    assert_string_equal(shown(&view, colored(60)),
        "\033[2mgroup                               done    run  wait  fail\033[0m\n"
        "api.example.com   \033[32m━━\033[0m\033[31m━\033[0m\033[36m─\033[0m\033[2m┈┈┈┈┈┈┈\033[0m    120/400    \033[36m8/8\033[0m   272     \033[31m3\033[0m\n"
        "cdn.example.com   \033[32m━━━━━\033[0m\033[32m╾\033[0m\033[36m─\033[0m\033[2m┈┈┈┈\033[0m      40/80    \033[36m2/4\033[0m    38     \033[2m·\033[0m\n"
        "\033[1mtotal\033[0m        28%  \033[32m━━\033[0m\033[31m━\033[0m\033[36m─\033[0m\033[2m┈┈┈┈┈┈┈\033[0m  \033[1m1247/4400\033[0m  \033[36m12/16\033[0m  1309    \033[31m83\033[0m\n"
        "16.8/s\033[2m · \033[0m1m15s\033[2m · \033[0meta 3m08s\n");
}

static void test_phase_and_reasons_stand_below(void **state)
{
    static const char *const why[] = {
        "api.example.com: 272 wait for one of its 8 permits, the oldest for 12s",
        "cdn.example.com: 38 wait until its cooling down ends",
    };
    struct view view = grouped();
    struct view_look look = utf8(60);

    (void)state;
    view.count = 1;
    view.others = 0;
    view.phase = "draining: Ctrl-C again ends 12 running";
    view.why = why;
    view.why_count = 2;
    look.keys = true;
    assert_string_equal(shown(&view, look),
        "group                               done    run  wait  fail\n"
        "api.example.com   ━━━─┈┈┈┈┈┈┈    120/400    8/8   272     3\n"
        "total        28%  ━━━─┈┈┈┈┈┈┈  1247/4400  12/16  1309    83\n"
        "16.8/s · 1m15s · eta 3m08s · w: hide the reasons\n"
        "draining: Ctrl-C again ends 12 running\n"
        "  api.example.com: 272 wait for one of its 8 permits, the\n"
        "    oldest for 12s\n"
        "  cdn.example.com: 38 wait until its cooling down ends\n");
    view.why_others = 288; /* of which no reason was asked */
    assert_non_null(strstr(shown(&view, look), " cooling down ends\n… and 288 more\n"));
    look.height = 9; /* one reason less */
    assert_non_null(strstr(shown(&view, look), " oldest for 12s\n… and 289 more\n"));
}

static void test_the_hint_is_there_only_if_keys_are(void **state)
{
    struct view view = grouped();
    struct view_look look = utf8(80);

    (void)state;
    assert_null(strstr(shown(&view, look), "w: "));
    look.keys = true;
    assert_non_null(strstr(shown(&view, look), "w: what waits and why\n"));
    view.grouped = false;
    look.width = 40;
    assert_non_null(strstr(shown(&view, look), " · w: why\n"));
}

/* clang-format on */

/* ---- bars --------------------------------------------------------------------------------------- */

/* The bar of a lone total, 14 columns wide. */
static const char *bar(uint64_t done, uint64_t running, uint64_t expected)
{
    static char text[128];
    struct view view = { .total = { .done = done, .running = running },
                         .expected = expected,
                         .eta_ns = -1 };
    const char *line = shown(&view, utf8(21));

    snprintf(text, sizeof(text), "%.*s", (int)strcspn(line, "\n"), line);
    return text;
}

static void test_a_bar_moves_by_half_a_column(void **state)
{
    (void)state;
    assert_string_equal(bar(0, 0, 28), "┈┈┈┈┈┈┈┈┈┈┈┈┈┈    0%");
    assert_string_equal(bar(1, 0, 28), "╸┈┈┈┈┈┈┈┈┈┈┈┈┈    3%");
    assert_string_equal(bar(2, 0, 28), "━┈┈┈┈┈┈┈┈┈┈┈┈┈    7%");
    assert_string_equal(bar(3, 1, 28), "━╾─┈┈┈┈┈┈┈┈┈┈┈   10%");
    assert_string_equal(bar(14, 6, 28), "━━━━━━━───┈┈┈┈   50%");
    assert_string_equal(bar(28, 0, 28), "━━━━━━━━━━━━━━  100%");
}

static void test_a_bar_is_full_only_at_the_end_and_shows_the_few(void **state)
{
    (void)state;
    assert_string_equal(bar(999999, 1, 1000000), "━━━━━━━━━━━━━╸   99%");
    assert_string_equal(bar(1, 1, 1000000), "╾─┈┈┈┈┈┈┈┈┈┈┈┈    0%");
    assert_string_equal(bar(0, 999999, 1000000), "─────────────┈    0%");
    assert_string_equal(bar(0, UINT64_MAX, UINT64_MAX), "──────────────    0%");
    assert_string_equal(bar(UINT64_MAX, UINT64_MAX, 1), "━━━━━━━━━━━━━━  100%");
}

/* ---- names -------------------------------------------------------------------------------------- */

/* The first row's name, for which there are 12 columns. */
static const char *name(const char *key, bool as_utf8)
{
    static char text[128];
    struct view_group group;
    struct view view = group_named(key, &group);
    const char *row = strchr(shown(&view, as_utf8 ? utf8(34) : ascii(34)), '\n') + 1;
    size_t length = (size_t)(strpbrk(row, "\n") - row);

    /* Behind it: spaces, and a bar that is known. */
    snprintf(text, sizeof(text), "%.*s", (int)length, row);
    *strstr(text, as_utf8 ? "━" : "=") = '\0';
    for (length = strlen(text); length > 0 && text[length - 1] == ' '; length--)
        text[length - 1] = '\0';
    return text;
}

static void test_long_names_lose_their_middle(void **state)
{
    (void)state;
    assert_string_equal(name("short", true), "short");
    assert_string_equal(name("a-name-that-is-much-too-long", true), "a-name…long");
    assert_string_equal(name("a-name-that-is-much-too-long", false), "a-name..ong");
    assert_string_equal(name("日本語日本語日本語日本語", true), "日本語…本語");
}

static void test_characters_a_terminal_must_not_get_are_replaced(void **state)
{
    (void)state;
    assert_string_equal(name("", true), "(none)");
    assert_string_equal(name("a\033[2Jb", true), "a\uFFFD[2Jb");
    assert_string_equal(name("a\033[2Jb", false), "a?[2Jb");
    assert_string_equal(name("a\nb\tc\x7f", true), "a\uFFFDb\uFFFDc\uFFFD");
    assert_string_equal(name("\xc2\x9b"
                             "31m",
                             true),
                        "\uFFFD31m"); /* CSI in one character */
    assert_string_equal(name("\xff\xc0\xafx", true),
                        "\uFFFD\uFFFD\uFFFDx");                            /* not UTF-8, overlong */
    assert_string_equal(name("\xed\xa0\x80", true), "\uFFFD\uFFFD\uFFFD"); /* a surrogate */
    assert_string_equal(name("x\xe2\x82", true), "x\uFFFD\uFFFD");         /* cut off */
    assert_string_equal(name("a\u202eb", true), "a\uFFFDb");               /* right to left */
    assert_string_equal(name("grün", false), "gr?n");
    assert_string_equal(name("grün", true), "grün");
}

static void test_marks_stay_with_their_letter_but_do_not_pile_up(void **state)
{
    (void)state;
    assert_string_equal(name("e\u0301a", true), "e\u0301a");
    assert_string_equal(name("e\u0301\u0302\u0303\u0304\u0305", true), "e\u0301\u0302");
    assert_string_equal(name("\u0301a", true), "\uFFFDa");
    assert_string_equal(name("e\u0301a", false), "ea");
    assert_int_equal(glyph_columns("日本e\u0301\u200d", true), 5);
}

/* ---- figures ------------------------------------------------------------------------------------ */

static const char *rate(double per_second)
{
    static char text[64];
    struct view view = { .total = { .per_second = per_second }, .eta_ns = -1 };
    const char *comma;

    view_render_plain(&out, &view);
    comma = strrchr(out.text, ',');
    snprintf(text, sizeof(text), "%.*s", (int)strcspn(comma + 2, "\n"), comma + 2);
    return text;
}

static void test_rates_use_the_unit_that_fits(void **state)
{
    (void)state;
    assert_string_equal(rate(0), "0/s");
    assert_string_equal(rate(4.24), "4.2/s");
    assert_string_equal(rate(99.94), "99.9/s");
    assert_string_equal(rate(99.96), "100/s");
    assert_string_equal(rate(1234), "1.23k/s");
    assert_string_equal(rate(12.5e6), "12.5M/s");
    assert_string_equal(rate(0.05), "3.0/m");
    assert_string_equal(rate(0.001), "3.6/h");
    assert_string_equal(rate(1e-9), "0/s");
    assert_string_equal(rate(-1), "0/s");
    assert_string_equal(rate((double)NAN), "0/s");
    assert_string_equal(rate((double)INFINITY), "0/s");
    assert_string_equal(rate(1e30), "999P/s");
}

static void test_large_counts_are_shortened_in_the_table(void **state)
{
    struct view_group group = { .key = "big", .done = 999999, .waiting = 1234567, .failed = 12345 };
    struct view view = { .groups = &group,
                         .count = 1,
                         .grouped = true,
                         .total = group,
                         .expected = 123456789,
                         .elapsed_ns = 5 * S,
                         .eta_ns = -1 };

    (void)state;
    assert_string_equal(shown(&view, utf8(60)),
                        "group                               done  run   wait   fail\n"
                        "big           ━━━━━━┈┈┈┈┈┈┈┈  999k/2.23M    ·  1.23M  12345\n"
                        "total     0%  ╸┈┈┈┈┈┈┈┈┈┈┈┈┈   999k/123M    ·  1.23M  12345\n"
                        "5s\n");
}

static void test_the_plain_line(void **state)
{
    struct view view = {
        .total = { .done = 120, .failed = 3, .running = 8, .waiting = 269, .per_second = 4.2 },
        .expected = 400,
        .eta_ns = 64 * S
    };

    (void)state;
    view_render_plain(&out, &view);
    assert_string_equal(out.text, "weir: 120 of 400 done, 3 failed, 8 running, 269 waiting, 4.2/s, "
                                  "eta 1m04s\n");
    assert_int_equal(out.lines, 1);
    view.expected_is_estimate = true;
    view.phase = "draining\n\033[2J";
    view_render_plain(&out, &view);
    assert_string_equal(out.text, "weir: 120 of about 400 done, 3 failed, 8 running, 269 waiting, "
                                  "4.2/s, eta 1m04s; draining\uFFFD\uFFFD[2J\n");
    view = (struct view){ .eta_ns = -1 };
    view_render_plain(&out, &view);
    assert_string_equal(out.text, "weir: 0 done, 0 failed, 0 running, 0 waiting, 0/s\n");
}

/* ---- lines -------------------------------------------------------------------------------------- */

static void test_groups_that_do_not_fit_are_counted(void **state)
{
    struct view_group many[100];
    struct view view = grouped();
    struct view_look look = utf8(60);

    (void)state;
    for (int i = 0; i < 100; i++)
        many[i] = hosts[0];
    view.groups = many;
    view.count = 100;
    look.height = 10; /* 9 lines: heading, 5 groups, how many more, total, sentence */
    assert_non_null(strstr(shown(&view, look), "… and 107 more groups\n"));
    assert_int_equal(out.lines, 9);
    view.count = 6;
    view.others = 0;
    assert_null(strstr(shown(&view, look), "more group"));
    view.count = 7;
    assert_non_null(strstr(shown(&view, look), "… and 2 more groups\n"));
    look.height = 2;
    assert_int_equal(strncmp(shown(&view, look), "total", 5), 0);
    assert_int_equal(out.lines, 1);
    look.height = 1;
    assert_string_equal(shown(&view, look), "");
    assert_int_equal(out.lines, 0);
}

static void test_with_no_group_active_the_total_is_told_in_words(void **state)
{
    struct view view = grouped();

    (void)state;
    view.count = 0;
    view.others = 0;
    assert_non_null(strstr(shown(&view, utf8(100)), "\n1247/4400 done · 83 failed"));
}

/* ---- anything at all ---------------------------------------------------------------------------- */

/* The same numbers in every run. */
struct luck {
    uint64_t state;
};

static uint64_t luck_next(struct luck *luck)
{
    uint64_t x = luck->state += 0x9e3779b97f4a7c15u;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static uint64_t luck_below(struct luck *luck, uint64_t limit)
{
    return luck_next(luck) % limit;
}

static const char *random_text(struct luck *luck, char *text, size_t size)
{
    static const char *const pieces[] = { "a",      "Z",    "example",  " ",        "-",
                                          "日",     "ü",    "e\u0301",  "\u202e",   "\033[31m",
                                          "\n",     "\xff", "\xe2\x82", "\xc2\x9b", "👩\u200d👩",
                                          "\u0300", "\t",   "\u2028",   "…",        "\x01" };
    size_t length = 0, count = luck_below(luck, 30);

    for (size_t i = 0; i < count; i++) {
        const char *piece = pieces[luck_below(luck, sizeof(pieces) / sizeof(pieces[0]))];
        if (length + strlen(piece) + 1 > size)
            break;
        memcpy(text + length, piece, strlen(piece));
        length += strlen(piece);
    }
    text[length] = '\0';
    return text;
}

static uint64_t random_count(struct luck *luck)
{
    static const uint64_t limits[] = { 1, 3, 100, 10000, 100000000, UINT64_MAX };

    return luck_next(luck) % limits[luck_below(luck, 6)];
}

static void random_group(struct luck *luck, struct view_group *group, char texts[2][64])
{
    *group = (struct view_group){ .key = random_text(luck, texts[0], 64),
                                  .done = random_count(luck),
                                  .failed = random_count(luck),
                                  .running = random_count(luck),
                                  .waiting = random_count(luck),
                                  .per_second = (double)random_count(luck) / 1000,
                                  .limit = (int64_t)(random_count(luck) / 2) };
    if (luck_below(luck, 2))
        group->state = random_text(luck, texts[1], 64);
}

/* Walks the text as a terminal would; written apart from glyph.c on purpose. */
static void check_text(const struct view_look *look)
{
    const char *at = out.text;
    int columns = 0, lines = 0;
    mbstate_t mb = { 0 };

    while (*at) {
        wchar_t c;
        size_t length;
        if (*at == '\n') {
            assert_true(columns <= look->width - 1);
            columns = 0;
            lines++;
            at++;
            continue;
        }
        if (*at == '\033') {
            assert_true(look->color);
            assert_int_equal(at[1], '[');
            at += 2 + strspn(at + 2, "0123456789;");
            assert_int_equal(*at++, 'm');
            continue;
        }
        length = mbrtowc(&c, at, MB_CUR_MAX, &mb);
        assert_true(length > 0 && length <= 4);
        assert_true(look->utf8 || length == 1);
        assert_true(wcwidth(c) >= 0); /* control characters have -1 */
        columns += wcwidth(c);
        at += length;
    }
    assert_int_equal(columns, 0);
    assert_int_equal(lines, out.lines);
    assert_true(lines <= (look->height > 1 ? look->height - 1 : 0));
    assert_int_equal(at - out.text, out.length);
}

static void check_random(struct luck *luck, int width)
{
    enum { GROUPS = 30, REASONS = 5 };
    static char texts[GROUPS + 1][2][64], reasons[REASONS][64], phase[64];
    struct view_group groups[GROUPS];
    const char *why[REASONS];
    struct view view = { .groups = groups,
                         .count = luck_below(luck, GROUPS + 1),
                         .others = random_count(luck),
                         .grouped = luck_below(luck, 4) > 0,
                         .expected = random_count(luck),
                         .expected_is_estimate = luck_below(luck, 2),
                         .elapsed_ns = (int64_t)(random_count(luck) / 2),
                         .eta_ns = (int64_t)(random_count(luck) / 2) - 1,
                         .why = why,
                         .why_count = luck_below(luck, 2) * luck_below(luck, REASONS + 1),
                         .why_others = luck_below(luck, 2) * random_count(luck) };
    struct view_look look = { .width = width,
                              .height = (int)luck_below(luck, 40),
                              .color = luck_below(luck, 2),
                              .utf8 = luck_below(luck, 2),
                              .keys = luck_below(luck, 2) };

    for (int i = 0; i < GROUPS; i++)
        random_group(luck, &groups[i], texts[i]);
    random_group(luck, &view.total, texts[GROUPS]);
    for (int i = 0; i < REASONS; i++)
        why[i] = random_text(luck, reasons[i], sizeof(reasons[i]));
    if (luck_below(luck, 2))
        view.phase = random_text(luck, phase, sizeof(phase));
    view_render(&out, &view, &look);
    check_text(&look);
}

static void test_no_snapshot_breaks_the_terminal(void **state)
{
    (void)state;
    for (int width = 0; width <= 200; width++) {
        struct luck luck = { (uint64_t)width << 32 };
        for (int i = 0; i < 60; i++)
            check_random(&luck, width);
    }
}

static int teardown(void **state)
{
    (void)state;
    free(out.text);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_wide_terminal_shows_everything),
        cmocka_unit_test(test_a_usual_terminal_leaves_single_rates_to_the_total),
        cmocka_unit_test(test_a_narrow_terminal_says_figures_without_a_column_below),
        cmocka_unit_test(test_ascii_does_without_line_drawing),
        cmocka_unit_test(test_without_groups_there_is_a_bar_and_a_sentence),
        cmocka_unit_test(test_without_an_expected_number_there_is_no_bar_of_the_whole),
        cmocka_unit_test(test_an_estimate_is_marked_as_one),
        cmocka_unit_test(test_failures_are_red_and_the_rest_is_quiet),
        cmocka_unit_test(test_phase_and_reasons_stand_below),
        cmocka_unit_test(test_the_hint_is_there_only_if_keys_are),
        cmocka_unit_test(test_a_bar_moves_by_half_a_column),
        cmocka_unit_test(test_a_bar_is_full_only_at_the_end_and_shows_the_few),
        cmocka_unit_test(test_long_names_lose_their_middle),
        cmocka_unit_test(test_characters_a_terminal_must_not_get_are_replaced),
        cmocka_unit_test(test_marks_stay_with_their_letter_but_do_not_pile_up),
        cmocka_unit_test(test_rates_use_the_unit_that_fits),
        cmocka_unit_test(test_large_counts_are_shortened_in_the_table),
        cmocka_unit_test(test_the_plain_line),
        cmocka_unit_test(test_groups_that_do_not_fit_are_counted),
        cmocka_unit_test(test_with_no_group_active_the_total_is_told_in_words),
        cmocka_unit_test(test_no_snapshot_breaks_the_terminal),
    };

    setlocale(LC_ALL, "C.UTF-8");
    return cmocka_run_group_tests(tests, NULL, teardown);
}
