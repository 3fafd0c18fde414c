/* The program of the README: five bodies wait at the same time on as many workers as there are CPUs.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <weir.h>

static void brew(void *cup)
{
    weir_sleep(weir_in_ms(200)); /* parks: the worker runs the others meanwhile */
    printf("%s is ready\n", (const char *)cup);
}

int main(void)
{
    const char *cups[] = { "espresso", "latte", "flat white", "tea", "cocoa" };
    weir_runtime *rt;
    int rc = weir_runtime_new(&rt, NULL);

    for (int i = 0; i < 5 && rc == 0; i++)
        rc = weir_spawn(rt, brew, (void *)cups[i], NULL);
    if (rc == 0)
        rc = weir_runtime_drain(rt, weir_in_s(5)); /* all five after 0.2 s, not after 1 s */
    if (rc)
        fprintf(stderr, "%s\n", weir_strerror(rc));
    weir_runtime_free(rt);
    return rc != 0;
}
