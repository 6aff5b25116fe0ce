/* Files of a folder as people have them. */
#include "text/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

char *fini_folder_path(const char *folder, const char *name, char buffer[FINI_FOLDER_PATH])
{
    if (snprintf(buffer, FINI_FOLDER_PATH, "%s/%s", folder, name) >= FINI_FOLDER_PATH)
        buffer[0] = '\0';
    return buffer;
}

bool fini_folder_has(const char *folder, const char *name)
{
    char path[FINI_FOLDER_PATH];
    struct stat about;
    return stat(fini_folder_path(folder, name, path), &about) == 0;
}

fin_status fini_folder_json(const char *folder, const char *name, json_t **root, fin_error *err)
{
    char path[FINI_FOLDER_PATH], *text = NULL;
    size_t size;
    json_error_t why;
    *root = NULL;
    if (!fini_folder_has(folder, name))
        return FIN_OK;
    FINI_TRY(fini_read_text(fini_folder_path(folder, name, path), &text, &size, err));
    *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &why);
    fini_free(text);
    if (json_is_object(*root))
        return FIN_OK;
    bool starved = !*root && json_error_code(&why) == json_error_out_of_memory;
    const char *what = *root ? "it is no object" : why.text;
    json_decref(*root);
    *root = NULL;
    if (starved)
        return fini_fail_memory(err, size, "a JSON file");
    return fini_fail(err, FIN_ERR_FORMAT, "'%.200s' is no JSON that can be read: %s", path,
                     FINI_SHOW(what));
}
