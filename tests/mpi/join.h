/* Ranks for a program of its own: the module is loaded (FINETTI_MPI says where it is), and its calls handed to the library. */
#include <finetti.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static fin_status join_ranks(fin_error *err)
{
    fin_ranks_calls calls = {.version = FIN_RANKS_VERSION};
    void *module = dlopen(getenv("FINETTI_MPI"), RTLD_NOW | RTLD_GLOBAL);
    fin_ranks_join join = NULL;
    if (module)
        *(void **)&join = dlsym(module, FIN_RANKS_JOIN);
    if (!join) {
        snprintf(err->message, sizeof err->message, "%s", dlerror());
        return err->status = FIN_ERR_IO;
    }
    return join(&calls, err) ? err->status : fin_ranks_start(&calls, err);
}
