/* The table of commands. A new command is one file, src/command/<name>.c or src/lab/<name>.c, and one row here. */
#include "command/command.h"

#include <string.h>

/* In the order in which they are listed: the verbs of the tool, then the laboratory. */
#define COMMAND_LIST(C)                                                                            \
    C(risk)                                                                                        \
    C(train)                                                                                       \
    C(layer)                                                                                       \
    C(landscape)                                                                                   \
    C(curve)                                                                                       \
    C(latent)                                                                                      \
    C(fit)                                                                                         \
    C(law)                                                                                         \
    C(heads)                                                                                       \
    C(rate)                                                                                        \
    C(limit)                                                                                       \
    C(identity)                                                                                    \
    C(regret)                                                                                      \
    C(urn)                                                                                         \
    C(minimal)                                                                                     \
    C(prior)                                                                                       \
    C(erm)                                                                                         \
    C(linear)                                                                                      \
    C(lipschitz)                                                                                   \
    C(stationary)                                                                                  \
    C(shift)                                                                                       \
    C(head)                                                                                        \
    C(encoder)                                                                                     \
    C(pretrain)                                                                                    \
    C(images)                                                                                      \
    C(text)                                                                                        \
    C(mil)

#define COMMAND_EXTERN(name) extern const fin_command fini_command_##name;
COMMAND_LIST(COMMAND_EXTERN)

#define COMMAND_ROW(name) &fini_command_##name,
static const fin_command *const commands[] = {COMMAND_LIST(COMMAND_ROW)};
enum { COMMANDS = sizeof commands / sizeof *commands };

int fin_command_count(void)
{
    return COMMANDS;
}

const fin_command *fin_command_at(int i)
{
    return i >= 0 && i < COMMANDS ? commands[i] : NULL;
}

const fin_command *fin_command_find(const char *name)
{
    for (int i = 0; name && i < COMMANDS; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

fin_status fini_command_perform(const fin_command *command, const void *values, fin_result *result,
                                const fin_progress *progress, fin_error *err)
{
    fin_error own;
    err = err ? err : &own; /* a command may look at what it excuses */
    FINI_TRY(command->run(values, result, progress, err));
    FINI_TRY(fini_result_status(result, err));
    *err = (fin_error){FIN_OK, ""};
    return FIN_OK;
}

fin_status fin_command_run(const fin_command *command, const fin_pair *pairs, int count,
                           const fin_progress *progress, fin_result **out, fin_error *err)
{
    FINI_NEED_TO_MAKE(err, out, command, !count || pairs);
    if (count < 0)
        return fini_fail(err, FIN_ERR_ARGUMENT, "%d settings; there are 0 or more", count);
    void *values = fini_alloc(command->size);
    fin_result *result = fin_result_create();
    fin_status status = values && result
                            ? fin_command_apply(command, values, pairs, count, NULL, err)
                            : fini_fail_memory(err, command->size, "a command");
    if (!status)
        status = fini_command_perform(command, values, result, progress, err);
    fini_free(values);
    FINI_HAND_OVER(out, result, status, fin_result_destroy);
}
