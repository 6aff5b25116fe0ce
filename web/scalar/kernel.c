/* The kernel of the page's first module: the reference. */
#include "kernel/kernel.h"

const fini_kernel *fini_kernel_get(void)
{
    return &fini_kernel_ref;
}
