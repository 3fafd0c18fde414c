/* docs/flow.md: its code runs, and its pictures are what the library draws of those runs. WEIR_REMAKE=1 writes them anew.
 * SPDX-License-Identifier: MIT */
#include "support/flow_support.h"

/* Code that stands in the page; its text is looked for there. */
#define SHOWN(...)        \
    shown = #__VA_ARGS__; \
    __VA_ARGS__

static const char *shown;

/* A body that takes `ms` and fails if it is told to. */
static weir_node *node(weir_flow *flow, const char *id, int64_t ms, int error)
{
    struct seen *s = new_seen(id, ms);
    weir_node *made = NULL;

    s->error = error;
    CHECK_EQ(weir_flow_node(&made, flow, id, node_body, s, NULL), 0);
    return made;
}

#define body node_body

/* ---- one for each kind of edge ----------------------------------------------------------------------- */

/* clang-format off */
static void must_example(weir_flow *flow)
{
    weir_node *price = node(flow, "price", 30, 0), *stock = node(flow, "stock", 20, 0), *offer = node(flow, "offer", 10, 0);
    SHOWN(
weir_node_needs(offer, price, WEIR_MUST);
weir_node_needs(offer, stock, WEIR_MUST);
    )
}

static void any_example(weir_flow *flow)
{
    weir_node *cache = node(flow, "cache", 5, -ENOENT), *replica = node(flow, "replica", 20, 0);
    weir_node *origin = node(flow, "origin", 80, 0), *page = node(flow, "page", 10, 0);
    SHOWN(
weir_node_needs(page, cache, WEIR_ANY);
weir_node_needs(page, replica, WEIR_ANY);
weir_node_needs(page, origin, WEIR_ANY);
    )
}

static void optional_example(weir_flow *flow)
{
    weir_node *user = node(flow, "user", 20, 0), *avatar = node(flow, "avatar", 60, 0), *hello = node(flow, "hello", 10, 0);
    SHOWN(
weir_node_needs(hello, user, WEIR_MUST);
weir_node_needs(hello, avatar, WEIR_OPTIONAL);
    )
}

static void at_least_example(weir_flow *flow)
{
    weir_node *a = node(flow, "a", 10, 0), *b = node(flow, "b", 20, -EIO), *c = node(flow, "c", 30, 0);
    void *arg = new_seen("commit", 5);
    weir_node *commit = NULL;
    SHOWN(
weir_flow_node(&commit, flow, "commit", body, arg, WEIR_NODE(.at_least = 2));
weir_node_needs(commit, a, WEIR_AT_LEAST);
weir_node_needs(commit, b, WEIR_AT_LEAST);
weir_node_needs(commit, c, WEIR_AT_LEAST);
    )
}

static void after_example(weir_flow *flow)
{
    weir_node *work = node(flow, "work", 20, -EIO), *clean = node(flow, "clean up", 5, 0);
    SHOWN(
weir_node_needs(clean, work, WEIR_AFTER);
    )
}

static void none_failed_example(weir_flow *flow)
{
    weir_node *lint = node(flow, "lint", 10, 0), *test = node(flow, "test", 20, -EIO), *build = node(flow, "build", 30, 0);
    weir_node *ship = node(flow, "ship", 10, 0);
    SHOWN(
weir_node_needs(ship, build, WEIR_MUST);
weir_node_needs(ship, lint, WEIR_NONE_FAILED);
weir_node_needs(ship, test, WEIR_NONE_FAILED);
    )
}

static weir_judgement half(const weir_edges *edges, weir_step *step, void *arg)
{
    (void)step;
    (void)arg;
    SHOWN(
if (2 * edges->succeeded > edges->total)
    return WEIR_JUDGE_START;
return 2 * edges->failed >= edges->total ? WEIR_JUDGE_FAIL : WEIR_JUDGE_WAIT;
    )
}

static void judge_example(weir_flow *flow)
{
    weir_node *a = node(flow, "a", 10, 0), *b = node(flow, "b", 20, 0), *c = node(flow, "c", 90, 0), *decided = NULL;
    struct seen *s = new_seen("decided", 5);

    CHECK_EQ(weir_flow_node(&decided, flow, "decided", node_body, s, WEIR_NODE(.judge = half)), 0);
    weir_node_needs(decided, a, WEIR_MUST);
    weir_node_needs(decided, b, WEIR_MUST);
    weir_node_needs(decided, c, WEIR_MUST);
}
/* clang-format on */

/* The short circuit: whatever the winner makes needless is skipped. */
static void skip_example(weir_flow *flow)
{
    weir_node *fast = node(flow, "fast", 10, 0), *slow = node(flow, "slow", 30, 0);
    weir_node *polish = node(flow, "polish", 20, 0), *answer = node(flow, "answer", 5, 0);

    must(polish, slow);
    needs(answer, fast, WEIR_ANY);
    needs(answer, polish, WEIR_ANY);
}

static const struct example {
    const char *name;
    void (*build)(weir_flow *flow);
    int64_t deadline_ms;
} examples[] = {
    { "must", must_example, 0 },         { "any", any_example, 0 },
    { "optional", optional_example, 0 }, { "at_least", at_least_example, 0 },
    { "after", after_example, 0 },       { "none_failed", none_failed_example, 0 },
    { "judge", judge_example, 0 },       { "skip", skip_example, 0 },
    { "deadline", must_example, 25 },
};

enum { EXAMPLES = sizeof(examples) / sizeof(examples[0]) };

/* Pictures that the runs have left, for the tests that look at the page. */
static char *picture[EXAMPLES];
static const char *code[EXAMPLES];

static void run_example(void *i_arg)
{
    int i = (int)(intptr_t)i_arg;
    weir_flow *flow = new_flow(examples[i].name);
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 8));
    weir_task *run;

    forget_nodes();
    shown = NULL;
    examples[i].build(flow);
    code[i] = shown;
    run = start(flow, group_of(ex, "g"),
                WEIR_RUN(.times = true, .deadline_ms = examples[i].deadline_ms));
    CHECK_EQ(weir_task_wait(NULL, run, WEIR_FOREVER), 0);
    CHECK_EQ(weir_executor_drain(ex, WEIR_FOREVER), 0);
    free(picture[i]);
    picture[i] = NULL;
    CHECK_EQ(weir_run_picture(&picture[i], run, WEIR_PICTURE_MERMAID), 0);
    if (examples[i].build == judge_example)
        code[i] = shown; /* the judge was called meanwhile */
    weir_task_unref(run);
    weir_executor_free(ex);
    weir_flow_free(flow);
}

/* ---- the page ------------------------------------------------------------------------------------------- */

static const char *page_path(void)
{
    static char path[4096];

    snprintf(path, sizeof(path), "%.*s/../../docs/flow.md",
             (int)(strrchr(__FILE__, '/') - __FILE__), __FILE__);
    return path;
}

static char *read_page(void)
{
    char *text = calloc(1, 1 << 20);
    FILE *file = fopen(page_path(), "r");

    assert_non_null(file);
    assert_non_null(text);
    assert_true(fread(text, 1, (1 << 20) - 1, file) > 0);
    fclose(file);
    return text;
}

/* Where a picture stands in the page: from its first line to the fence. */
static char *place_of(char *page, const char *name, size_t *length)
{
    char mark[64], *at, *end;

    snprintf(mark, sizeof(mark), "<!-- picture: %s -->\n```mermaid\n", name);
    at = strstr(page, mark);
    if (!at)
        fail_msg("docs/flow.md has no picture %s", name);
    at += strlen(mark);
    end = strstr(at, "```");
    assert_non_null(end);
    *length = (size_t)(end - at);
    return at;
}

static void remake(int i)
{
    char *page = read_page();
    size_t length;
    char *at = place_of(page, examples[i].name, &length);
    FILE *file = fopen(page_path(), "w");

    assert_non_null(file);
    fprintf(file, "%.*s%s%s", (int)(at - page), page, picture[i], at + length);
    fclose(file);
    free(page);
}

static char *squeezed(const char *text)
{
    char *copy = malloc(strlen(text) + 1), *at = copy;

    assert_non_null(copy);
    for (; *text; text++)
        if (!strchr(" \t\n", *text))
            *at++ = *text;
    *at = '\0';
    return copy;
}

static void test_the_pictures_are_those_of_the_library(void **state)
{
    (void)state;
    for (int i = 0; i < EXAMPLES; i++) {
        char *page, *at;
        size_t length;
        for (uint64_t seed = 1; seed <= 5; seed++) {
            weir_sim_report report = WEIR_SIM_REPORT;
            if (weir_sim_run(&report, WEIR_SIM_OPTIONS(.seed = seed), run_example,
                             (void *)(intptr_t)i))
                fail_msg("%s", report.message);
        }
        if (getenv("WEIR_REMAKE"))
            remake(i);
        page = read_page();
        at = place_of(page, examples[i].name, &length);
        if (length != strlen(picture[i]) || memcmp(at, picture[i], length) != 0)
            fail_msg("the picture %s is another now: run this test with WEIR_REMAKE=1\n%s",
                     examples[i].name, picture[i]);
        free(page);
    }
}

static void test_the_page_shows_the_code_of_its_pictures(void **state)
{
    char *page = read_page(), *page_squeezed = squeezed(page);

    (void)state;
    for (int i = 0; i < EXAMPLES; i++) {
        char *text = code[i] ? squeezed(code[i]) : NULL;
        if (text && !strstr(page_squeezed, text))
            fail_msg("docs/flow.md does not show: %s", code[i]);
        free(text);
    }
    for (int i = 0; i < EXAMPLES; i++)
        free(picture[i]);
    free(page);
    free(page_squeezed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_pictures_are_those_of_the_library),
        cmocka_unit_test(test_the_page_shows_the_code_of_its_pictures),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
