/* Files of the host that are not guards, directories that are not private, names of any bytes.
 * SPDX-License-Identifier: MIT */
#include "support/host_guards.h"

static void refused(const char *what)
{
    weir_store *store = host();
    weir_guard *g = NULL;
    weir_message why;

    CHECK_EQUAL(weir_guard_new(&g, store, "bad", WEIR_BULKHEAD(.limit = 2), &why), WEIR_EFOREIGN);
    if (!CHECK(strstr(why.text, what) && strstr(why.text, "guard-bad")))
        printf("%s, not %s\n", why.text, what);
    weir_store_free(store);
}

static void path_of(char *path, size_t size, const char *file)
{
    snprintf(path, size, "%s/%s", directory, file);
}

static void write_file(const char *bytes, size_t size)
{
    char path[256];
    int fd;

    path_of(path, sizeof(path), "guard-bad");
    unlink(path);
    fd = open(path, O_CREAT | O_WRONLY, 0600);
    CHECK_EQUAL(write(fd, bytes, size), (ssize_t)size);
    close(fd);
}

/* A good file, of which one byte is changed. */
static void damage(long at)
{
    weir_store *store = host();
    char path[256], *bytes;
    weir_guard *g;
    int64_t size;
    int fd;

    path_of(path, sizeof(path), "guard-bad");
    unlink(path);
    g = open_guard(store, "bad", WEIR_BULKHEAD(.limit = 2));
    fd = open(path, O_RDWR);
    size = lseek(fd, 0, SEEK_END);
    bytes = malloc((size_t)size);
    CHECK_EQUAL(pread(fd, bytes, (size_t)size, 0), size);
    close(fd);
    weir_guard_unref(g); /* it was whole, so it is gone */
    weir_store_free(store);
    CHECK(access(path, F_OK) != 0);
    bytes[at] = (char)(bytes[at] ^ 0x55);
    write_file(bytes, (size_t)size);
    free(bytes);
}

static void test_files_that_are_not_guards_are_refused_with_a_sentence(void)
{
    char path[256], zeros[100000] = "";

    write_file("", 0);
    refused("not a guard of weir");
    write_file("hello", 5);
    refused("not a guard of weir");
    write_file(zeros, sizeof(zeros));
    refused("not a guard of weir");
    damage(0);
    refused("not a guard of weir");
    damage(8);
    refused("made by another version of weir");
    damage(30);
    refused("damaged: its header is not valid");
    path_of(path, sizeof(path), "guard-bad");
    unlink(path);
    assert_int_equal(symlink("/etc/passwd", path), 0);
    refused("not a plain file of this user");
    unlink(path);
    assert_int_equal(mkdir(path, 0700), 0);
    refused("not a plain file of this user");
    rmdir(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    refused("not a plain file of this user");
    unlink(path);
}

/* A few bytes anywhere: refused, or as good as any; never a crash, never a wait without end. */
static void opens_what_is_left(void *arg)
{
    weir_store *store = host();
    weir_guard *g = NULL;
    weir_permit p = WEIR_PERMIT;
    weir_guard_stats s = { .size = sizeof(s) };
    weir_message why;
    int rc = weir_guard_new(&g, store, "bad", NULL, &why);

    (void)arg;
    CHECK(rc == 0 || rc == WEIR_EFOREIGN || rc == WEIR_ENOGUARD);
    if (rc == 0) {
        if (weir_guard_enter(&p, g, weir_in_ms(1)) == 0)
            CHECK_EQUAL(weir_guard_leave(&p, -EIO), 0);
        CHECK_EQUAL(weir_guard_stats_get(&s, g), 0);
        CHECK_EQUAL(weir_guard_describe(&why, g), 0);
        weir_guard_unref(g);
    }
    weir_store_free(store);
}

static const weir_guard_options *some_options(int n)
{
    static weir_guard_options opt;

    opt = n % 4 == 0   ? *WEIR_BULKHEAD(.limit = 3)
          : n % 4 == 1 ? *WEIR_RATE(.limit = 3, .period_ns = INT64_C(3600000000000))
          : n % 4 == 2
              ? *WEIR_FREQUENCY(.mode = WEIR_EXACT, .limit = 20)
              : *WEIR_BREAKER(.window = 9, .mode = n % 8 == 3 ? WEIR_BY_TIME : WEIR_BY_COUNT);
    return &opt;
}

static void leaves_something(void *arg)
{
    weir_store *store = host();
    weir_guard *g = open_guard(store, "bad", some_options((int)(intptr_t)arg));

    for (int i = 0; i < 3; i++) {
        weir_permit p = WEIR_PERMIT;
        CHECK_EQUAL(weir_guard_enter(&p, g, 0), 0);
        if (i)
            CHECK_EQUAL(weir_guard_leave(&p, -EIO), 0);
    }
    fflush(NULL);
    _exit(atomic_load(&checks_failed) ? 1 : 0); /* without a word, so the file stays */
}

static void test_random_damage_is_refused_or_harmless(void)
{
    struct luck luck = luck_of(77);
    char path[256];
    int fd;

    path_of(path, sizeof(path), "guard-bad");
    for (int n = 0; n < 200; n++) {
        int64_t size, hot = n % 2 ? 3000 : INT32_MAX;

        unlink(path);
        CHECK_EQUAL(child_end(fork_child(leaves_something, (void *)(intptr_t)n)), 0);
        fd = open(path, O_RDWR);
        size = lseek(fd, 0, SEEK_END);
        for (uint64_t k = luck_below(&luck, 6); k < 6; k++) {
            int64_t at = (int64_t)luck_below(&luck, (uint64_t)(hot < size ? hot : size));
            char byte = (char)luck_next(&luck);
            CHECK_EQUAL(pwrite(fd, &byte, 1, at), 1);
        }
        close(fd);
        if (!CHECK_EQUAL(child_end(fork_child(opens_what_is_left, NULL)), 0))
            break;
    }
    unlink(path);
}

static void test_directories_that_are_open_to_others_are_refused(void)
{
    weir_store *store = NULL;
    weir_message why;
    char path[256];

    path_of(path, sizeof(path), "open");
    assert_int_equal(mkdir(path, 0755), 0);
    chmod(path, 0755);
    CHECK_EQUAL(weir_store_host(&store, WEIR_HOST(.directory = path), &why), WEIR_EINVAL);
    CHECK(strstr(why.text, "closed to others"));
    rmdir(path);
    CHECK_EQUAL(weir_store_host(&store, WEIR_HOST(.directory = "/nowhere/at/all"), &why), -ENOENT);
    CHECK_EQUAL(weir_store_host(&store, WEIR_HOST(.directory = ""), &why), WEIR_EINVAL);
    CHECK(strstr(why.text, "the directory's name has no bytes"));
    CHECK_EQUAL(weir_store_host(NULL, NULL, NULL), WEIR_EINVAL);
}

static void test_names_may_have_any_bytes(void)
{
    weir_store *store = host();
    char name[WEIR_KEY_MAX + 2];
    weir_guard *a, *b;

    for (int i = 0; i < WEIR_KEY_MAX + 1; i++)
        name[i] = (char)(i % 255 + 1);
    name[WEIR_KEY_MAX + 1] = '\0';
    CHECK_EQUAL(weir_guard_new(&a, store, name, WEIR_BULKHEAD(), NULL), WEIR_EINVAL);
    name[WEIR_KEY_MAX] = '\0';
    a = open_guard(store, name, WEIR_BULKHEAD());
    b = open_guard(store, "../../etc/passwd", WEIR_BULKHEAD());
    CHECK_EQUAL(files("guard-..%2F..%2Fetc%2Fpasswd"), 1);
    weir_guard_unref(a);
    weir_guard_unref(b);
    weir_store_free(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_files_that_are_not_guards_are_refused_with_a_sentence),
        TEST(test_random_damage_is_refused_or_harmless),
        TEST(test_directories_that_are_open_to_others_are_refused),
        TEST(test_names_may_have_any_bytes),
    };

    return HOST_TESTS(tests);
}
