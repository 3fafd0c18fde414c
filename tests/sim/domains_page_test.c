/* docs/domains.md: its first policy, word for word, does what the table below it says.
 * SPDX-License-Identifier: MIT */
#include "support/domain_support.h"

/* Code that stands in the page; and its text, to be looked for there. */
#define AS_SHOWN(name, ...)                                \
    static const char name##_text[] UNUSED = #__VA_ARGS__; \
    __VA_ARGS__

static const char *shown;

/* clang-format off */
static weir_executor *new_as_shown(void)
{
    weir_executor *ex = NULL;
    weir_message why;

    AS_SHOWN(page,
weir_domain_policy domains[] = {
    { .name = "A", .slots = 16, .queue = 32 },
    { .name = "B", .slots = 32, .slots_mode = WEIR_RESERVED, .queue = 64 },
};
weir_group_policy groups[] = { { .key = "A", .domain = "A" }, { .key = "B", .domain = "B" } };
weir_executor_new(&ex, WEIR_POLICY(.slots = 64, .queue_places = 128, .domains = domains, .domain_count = 2,
                                   .groups = groups, .group_count = 2, .group_limit = WEIR_NO_LIMIT), &why);
    )
    shown = page_text;
    CHECK(ex != NULL);
    return ex;
}
/* clang-format on */

static uint64_t refused(weir_executor *ex, const char *key)
{
    uint64_t count = 0;

    CHECK(weir_group_rejections_get(&count, ex, key, WEIR_REASON_DOMAIN_QUEUE_FULL) == 0);
    return count;
}

SIM_TEST(test_sixty_tasks_for_a, 20)
{
    weir_executor *ex = new_as_shown();
    struct body body = { .until_ms = 100 };
    struct heap a = { 0 };

    heap_add(&a, ex, "A", 60, &body);
    let_start();
    CHECK_DOMAIN(ex, "A", 16, 0, 32);
    CHECK_EQ(stats_of(ex, "A").running, 16);
    CHECK_EQ(refused(ex, "A"), 12);
    heap_free(&a);
    weir_executor_free(ex);
}

SIM_TEST(test_sixty_for_b_and_forty_for_the_default_domain, 20)
{
    weir_executor *ex = new_as_shown();
    struct body body = { .until_ms = 100 }, first = { .until_ms = 50 };
    struct heap b = { 0 }, others = { 0 };

    heap_add(&b, ex, "B", 1, &first);
    heap_add(&b, ex, "B", 59, &body);
    let_start();
    CHECK_DOMAIN(ex, "B", 48, 16, 12);
    CHECK_EQ(refused(ex, "B"), 0);
    heap_add(&others, ex, "others", 40, &body);
    let_start();
    CHECK_DOMAIN(ex, "default", 0, 0, 32);
    CHECK_EQ(refused(ex, "others"), 8);
    sleep_until(51); /* one of B's has ended: the loan is paid back first */
    CHECK_DOMAIN(ex, "B", 47, 15, 12);
    CHECK_DOMAIN(ex, "default", 1, 0, 31);
    heap_free(&b);
    heap_free(&others);
    weir_executor_free(ex);
}

/* ---- the page ---------------------------------------------------------------------------------------- */

/* Without blanks, which are the page's own affair. */
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

static char *read_page(const char *name)
{
    char path[4096], *text = calloc(1, 1 << 20);
    FILE *file;

    snprintf(path, sizeof(path), "%.*s/../../docs/%s", (int)(strrchr(__FILE__, '/') - __FILE__),
             __FILE__, name);
    file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(text);
    assert_true(fread(text, 1, (1 << 20) - 1, file) > 0);
    fclose(file);
    return text;
}

static void test_the_page_shows_this_policy(void **state)
{
    char *page = read_page("domains.md"), *page_squeezed = squeezed(page);
    char *code = squeezed(shown); /* by the tests before */

    (void)state;
    assert_non_null(strstr(page_squeezed, code));
    free(page);
    free(page_squeezed);
    free(code);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sixty_tasks_for_a),
        cmocka_unit_test(test_sixty_for_b_and_forty_for_the_default_domain),
        cmocka_unit_test(test_the_page_shows_this_policy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
