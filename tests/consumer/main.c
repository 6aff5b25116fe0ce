/* The smallest program that uses an installed finetti. Prints the version. */
#include <finetti/base.h>

#include <stdio.h>

int main(void)
{
    printf("finetti %s\n", fin_version());
    return fin_threads_get() >= 1 ? 0 : 1;
}
