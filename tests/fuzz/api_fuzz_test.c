/* The whole API under random calls: bytes in, calls out, on the simulator, with faults.
 *
 * A life is decided by its bytes: the first eight are the simulator's seed, then come the faults, the policy and the
 * calls. Here they are made from a number. A failure names it, and WEIR_SEED=<number> repeats that life,
 * WEIR_FUZZ_TRACE=1 prints its calls. WEIR_FUZZ_COUNT says how many lives there are, from WEIR_SEED on. Built with WEIR_LIBFUZZER
 * it has libFuzzer's entry instead of a main.
 * SPDX-License-Identifier: MIT */
#include "fuzz/fuzz_life.h"
#include "support/seed.h"

enum { LENGTH = 600 };

static int run_life(struct input *in, weir_sim_report *report)
{
    weir_sim_options opt = { .size = sizeof(opt) };

    take_faults(in, &opt);
    in->at = 0;
    return weir_sim_run(report, &opt, fuzz_life, in);
}

#ifdef WEIR_LIBFUZZER
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    weir_sim_report report = WEIR_SIM_REPORT;
    struct input in = { .bytes = bytes, .size = size };

    if (run_life(&in, &report)) {
        fprintf(stderr, "%s\n", report.message);
        abort();
    }
    return 0;
}
#else

static void life_from(uint64_t number)
{
    uint8_t bytes[LENGTH];
    struct input in = { .bytes = bytes, .size = LENGTH };
    weir_sim_report report = WEIR_SIM_REPORT;

    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(number >> 8 * i);
    for (int i = 8; i < LENGTH; i++)
        bytes[i] = (uint8_t)mix(mix(number) + (uint64_t)i);
    if (run_life(&in, &report))
        fail_msg("%s", report.message);
}

#ifdef __SANITIZE_ADDRESS__ /* several times slower, and there to look for other things */
enum { LIVES = 3000 };
#else
enum { LIVES = 12000 };
#endif

static void test_random_calls_keep_all_promises(void **state)
{
    const char *given = getenv("WEIR_SEED"), *count = getenv("WEIR_FUZZ_COUNT");
    uint64_t first = given ? strtoull(given, NULL, 0) : 1;
    uint64_t lives = count ? strtoull(count, NULL, 0) : given ? 1 : LIVES;

    (void)state;
    printf("%llu lives from WEIR_SEED=%llu\n", (unsigned long long)lives,
           (unsigned long long)first);
    for (uint64_t number = first; number < first + lives; number++)
        life_from(number);
}

/* Lives that fail if a mend is taken back, by what they show then. They hold for the present meaning of the bytes. */
static const uint64_t found_once[] = {
    98,    /* a local that a body without options has set stays behind on its worker            */
    251,   /* a submit that blocks on the executor's queue, full of its own task's, never ends  */
    1541,  /* a blocked submit that finds no room again is not looked at again                  */
    2313,  /* waits are moved to the next generation of a group, which is gone before they end  */
    3610,  /* figures of a policy that are out of range are added up (UBSan)                    */
    5653,  /* a circle is told of though the wait has ended otherwise                           */
    6129,  /* free waits for a task that only another call could start                          */
    83791, /* a stall moves a group to threads, and so closes a circle that is not found        */
};

static void test_faults_found_once_stay_mended(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(found_once) / sizeof(found_once[0]); i++)
        life_from(found_once[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_faults_found_once_stay_mended),
        cmocka_unit_test(test_random_calls_keep_all_promises),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
