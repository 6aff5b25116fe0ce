/* Joining the other processes of mpirun or srun, through a module that has MPI in it.
 *
 * A program that was started alone never loads it: that takes half a second and opens sockets, for
 * nothing. Started with others, but unable to talk to them, it must not begin: every process would do
 * all of the work, and write the same files. */
#include "cli.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Marks that those who start ranks leave: Open MPI, Hydra (MPICH, Intel), MVAPICH, Cray, PMIx, and
 * srun, which sets those of the PMI that it was told to use, and its own. */
static const char *const counts[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE",
                                     "MP_COMM_WORLD_SIZE"};
static const char *const marks[] = {"PMI_RANK", "PMIX_RANK", "MPI_LOCALRANKID", "PALS_RANKID"};

static int number(const char *variable)
{
    const char *text = getenv(variable);
    return text && atoi(text) > 0 ? atoi(text) : 0;
}

/* Of how many processes this is one; 0: of some, nobody says how many; -1: it was started alone. */
static int started_with(void)
{
    int count = 0;
    for (size_t i = 0; i < sizeof counts / sizeof *counts && !count; i++)
        count = number(counts[i]);
    bool some = count > 0;
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        some = some || (getenv(marks[i]) && *getenv(marks[i]));
    if (!count)
        count = number("SLURM_STEP_NUM_TASKS");
    /* It is there in every shell of a job too, where a person starts a program alone. */
    return some || (count > 1 && !isatty(STDIN_FILENO)) ? count : -1;
}

/* The folder of the program, with a '/'; "" if the system does not say. */
static void find_folder(char *path, size_t size)
{
    ssize_t length = readlink("/proc/self/exe", path, size - 1);
    path[length > 0 ? length : 0] = '\0';
    char *name = strrchr(path, '/');
    path[name ? name + 1 - path : 0] = '\0';
}

/* Where the module is; false: there is no such file. */
static bool find_module(char *path, size_t size)
{
    static const char *const places[] = {CLI_MODULES "/finetti_mpi.so", "finetti_mpi.so"};
    char folder[CLI_PATH];
    const char *told = getenv("FINETTI_MPI");
    bool found = false;
    find_folder(folder, sizeof folder);
    for (size_t i = 0; i < sizeof places / sizeof *places && !found; i++) {
        snprintf(path, size, "%s%s", told && *told ? "" : folder, told && *told ? told : places[i]);
        found = access(path, R_OK) == 0;
    }
    return found;
}

static void *load(fin_error *err)
{
    char path[2 * CLI_PATH];
    find_module(path, sizeof path);
    /* Parts that MPI loads in turn look for its names among those that everybody sees. */
    void *module = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!module)
        cli_status(err, FIN_ERR_UNSUPPORTED, "the module for MPI cannot be loaded: %.350s",
                   dlerror());
    return module;
}

bool cli_ranks_can(void)
{
    char path[2 * CLI_PATH];
    return find_module(path, sizeof path);
}

static fin_status join(fin_ranks_calls *calls, fin_error *err)
{
    void *module = load(err);
    fin_ranks_join call;
    if (!module)
        return err->status;
    *(void **)&call = dlsym(module, FIN_RANKS_JOIN);
    if (!call)
        return cli_status(err, FIN_ERR_UNSUPPORTED, "the module for MPI is none: %.350s",
                          dlerror());
    return call(calls, err);
}

fin_status cli_ranks_start(fin_error *err)
{
    const char *told = getenv("FINETTI_MPI");
    int count = started_with();
    fin_error why = {FIN_OK, ""};
    fin_ranks_calls calls = {.version = FIN_RANKS_VERSION};
    if (count < 0 || (told && strcmp(told, "none") == 0))
        return FIN_OK;
    fin_status status = join(&calls, &why);
    if (status && count == 1)
        return FIN_OK;
    if (status)
        return cli_status(err, status,
                          "started as one of several processes, but %.330s; FINETTI_MPI=FILE says "
                          "where the module is, FINETTI_MPI=none lets every process work alone",
                          why.message);
    if (count && calls.ranks != count)
        return cli_status(err, FIN_ERR_UNSUPPORTED,
                          "started as one of %d processes, of which MPI finds %d: mpirun or srun "
                          "belongs to another MPI than the module (srun --mpi=list says what it "
                          "has); FINETTI_MPI=none lets every process work alone",
                          count, calls.ranks);
    return fin_ranks_start(&calls, err);
}
