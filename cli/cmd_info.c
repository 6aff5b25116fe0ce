/* finetti info: what is running here. For a bug report, and to see that a variable was understood.
 */
#include "encoder/encoder.h"
#include "bags/fit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Versions of what the library was compiled with, where a header says so. No function is called:
 * the tool knows these libraries through their headers only, and only if they are here. */
#ifdef __has_include
#if __has_include(<sleef.h>)
#include <sleef.h>
#endif
#if __has_include(<zipconf.h>)
#include <zipconf.h>
#endif
#if __has_include(<sqlite3.h>)
#include <sqlite3.h>
#endif
#if __has_include(<zlib.h>)
#include <zlib.h>
#endif
#if __has_include(<openblas_config.h>)
#include <openblas_config.h>
#elif __has_include(<openblas-pthread/openblas_config.h>)
#include <openblas-pthread/openblas_config.h>
#endif
#endif

#define TEXT(x) #x
#define VALUE(x) TEXT(x)

static int run(cli_args *args);

static const cli_word words[] = {
    {"json", NULL, "print JSON"},
    {NULL, NULL, NULL},
};

const cli_command cli_info = {
    .name = "info",
    .summary = "version, kernels, threads, libraries, tasks and forms; what is in a model file",
    .about =
        "Prints the version, the kernels in use (FINETTI_KERNEL=ref|avx2|avx512 forces one), the\n"
        "number of threads (FINETTI_THREADS or OMP_NUM_THREADS), the libraries compiled in, tasks\n"
        "and forms. Of a model that 'finetti fit --out' has written, or an encoder of 'finetti\n"
        "pretrain': what it is, and the inputs it requires.",
    .examples = "  finetti info\n"
                "  finetti info --json\n"
                "  finetti info model.fin\n"
                "  FINETTI_KERNEL=ref finetti info\n",
    .computes = true,
    .operands = {.name = "MODEL",
                 .meaning = "a file of a model or an encoder",
                 .least = 0,
                 .most = 1},
    .words = words,
    .run = run,
};

typedef struct library {
    const char *name, *version;
} library;

static const library *libraries(void)
{
    static library list[] = {
#ifdef SLEEF_VERSION_MAJOR
        {"SLEEF", VALUE(SLEEF_VERSION_MAJOR) "." VALUE(SLEEF_VERSION_MINOR)},
#else
        {"SLEEF", ""},
#endif
#ifdef OPENBLAS_VERSION
        {"OpenBLAS", OPENBLAS_VERSION},
#else
        {"OpenBLAS", ""},
#endif
        {"LAPACKE", ""},
#ifdef LIBZIP_VERSION
        {"libzip", LIBZIP_VERSION},
#else
        {"libzip", ""},
#endif
        {"Random123", ""},
#ifdef SQLITE_VERSION
        {"SQLite", SQLITE_VERSION},
#else
        {"SQLite", ""},
#endif
        {"libyaml", ""},
#ifdef ZLIB_VERSION
        {"zlib", ZLIB_VERSION},
#else
        {"zlib", ""},
#endif
        {"xxHash", ""},
#ifdef _OPENMP
        {"OpenMP", VALUE(_OPENMP)},
#endif
        {"jansson", JANSSON_VERSION},
        {NULL, NULL},
    };
    return list;
}

/* OpenBLAS writes " OpenBLAS 0.3.21 ": the digits are enough. */
static const char *digits(const char *version, char *buffer, size_t size)
{
    version += strcspn(version, "0123456789");
    snprintf(buffer, size, "%.*s", (int)strcspn(version, " "), version);
    return buffer;
}

/* ---- variables that were not understood ----------------------------------------------------- */

enum { WARNINGS = 2, WARNING_SIZE = 256 };

static int find_warnings(char warnings[WARNINGS][WARNING_SIZE])
{
    int count = 0;
    const char *kernel = getenv("FINETTI_KERNEL"), *threads = getenv("FINETTI_THREADS");
    if (kernel && strcmp(kernel, fin_kernel_name()) != 0)
        snprintf(warnings[count++], WARNING_SIZE,
                 "FINETTI_KERNEL='%.40s' is not one of %s; %s is used", kernel,
                 fin_kernel_available(), fin_kernel_name());
    if (threads) {
        char *end;
        long value = strtol(threads, &end, 10);
        if (end == threads || *end || value < 1 || value > 4096)
            snprintf(warnings[count++], WARNING_SIZE,
                     "FINETTI_THREADS='%.40s' is not a whole number from 1 to 4096; %d are used",
                     threads, fin_threads_get());
    }
    return count;
}

/* ---- printing ------------------------------------------------------------------------------- */

static const char form[] =
    "finetti   {version}\nkernels   {kernel} (available: {kernels})\nthreads   {threads}\n"
    "libraries {*libraries|[{!first}, ]{@}[{?.} {.}]}\nMPI       {MPI}\n"
    "HDF5      {HDF5}\n"
    "\ntasks\n{*tasks|  {@:-10s} {.}\n}\nforms\n{*forms|  {@:-10s} {.}\n}"
    "\nfamilies\n{*families|  {@:-10s} {.}\n}";

static json_t *record_of(char warnings[WARNINGS][WARNING_SIZE], int count)
{
    json_t *needs = json_object(), *tasks = json_object(), *forms = json_object(),
           *families = json_object(), *list = json_array();
    char version[64];
    for (const library *l = libraries(); l->name; l++)
        json_object_set_new(needs, l->name,
                            json_string(digits(l->version, version, sizeof version)));
    for (int i = 0; i < fin_task_count(); i++)
        json_object_set_new(tasks, fin_task_kind_name(fin_task_at(i)),
                            json_string(fin_task_kind_summary(fin_task_at(i))));
    for (int i = 0; i < fin_form_count(); i++)
        json_object_set_new(forms, fin_form_name(fin_form_at(i)),
                            json_string(fin_form_summary(fin_form_at(i))));
    for (int i = 0; i < fin_family_count(); i++)
        json_object_set_new(families, fin_family_name(fin_family_at(i)),
                            json_string(fin_family_summary(fin_family_at(i))));
    for (int i = 0; i < count; i++)
        json_array_append_new(list, cli_json_text(warnings[i]));
    return json_pack("{s:s, s:s, s:s, s:i, s:o, s:s, s:s, s:o, s:o, s:o, s:o}", "version",
                     fin_version(), "kernel", fin_kernel_name(), "kernels", fin_kernel_available(),
                     "threads", fin_threads_get(), "libraries", needs, "MPI",
                     cli_ranks_can() ? "yes" : "no", "HDF5",
                     fin_hdf5_version() ? fin_hdf5_version() : "no", "tasks", tasks, "forms", forms,
                     "families", families, "warnings", list);
}

static int run(cli_args *args)
{
    char warnings[WARNINGS][WARNING_SIZE];
    int code = CLI_OK;
    if (args->operand_count)
        return encoder_info(args, &code) ? code : fit_info(args);
    int count = find_warnings(warnings);
    CLI_TRY(cli_show(args, record_of(warnings, count), form));
    for (int i = 0; i < count; i++)
        cli_note("warning: %s", warnings[i]);
    return CLI_OK;
}
