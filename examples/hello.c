/* The program of the README: two coffees at a time, and tea beside them.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <weir.h>

static int brew(void **value, void *cup)
{
    (void)value;
    weir_sleep(weir_in_ms(200)); /* parks: no thread is held meanwhile */
    return printf("%s is ready\n", (const char *)cup) < 0;
}

int main(void)
{
    const char *cups[] = { "espresso", "latte", "flat white", "green tea", "black tea" };
    weir_executor *ex;
    weir_message why;

    if (weir_executor_new(&ex, WEIR_POLICY(.group_limit = 2), &why))
        return puts(why.text), 1;
    for (int i = 0; i < 5; i++)
        weir_submit_key(NULL, ex, i < 3 ? "coffee" : "tea", brew, (void *)cups[i], NULL);
    weir_executor_drain(ex, weir_in_s(5)); /* four after 0.2 s, the third coffee after 0.4 s */
    weir_executor_free(ex);
    return 0;
}
