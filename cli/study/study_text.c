/* Settings that tell the runs of a study apart. */
#include "study/study.h"

#include <stdio.h>
#include <string.h>

json_t *study_settings(const char *settings)
{
    json_t *root = json_loads(settings, JSON_DECODE_ANY, NULL);
    json_t *inner = json_object_get(root, "settings"); /* beside command and revision */
    if (!inner)
        return root;
    json_incref(inner);
    json_decref(root);
    return inner;
}

bool study_varying_create(study_varying *v)
{
    v->blocks = json_object();
    return v->blocks != NULL;
}

void study_varying_destroy(study_varying *v)
{
    json_decref(v->blocks);
    v->blocks = NULL;
}

fin_status study_varying_add(study_varying *v, const char *block, const char *settings,
                             fin_error *err)
{
    json_t *now = study_settings(settings), *known = json_object_get(v->blocks, block), *value;
    const char *name;
    if (!json_is_object(now)) {
        json_decref(now);
        return cli_status(err, FIN_ERR_FORMAT, "the settings of a run cannot be read: %.100s",
                          settings);
    }
    if (!known) {
        json_object_set_new(v->blocks, block, json_pack("{s:o, s:{}}", "first", now, "names"));
        return FIN_OK;
    }
    json_t *first = json_object_get(known, "first"), *names = json_object_get(known, "names");
    json_object_foreach(now, name, value)
    {
        if (!json_equal(value, json_object_get(first, name)))
            json_object_set_new(names, name, json_true());
    }
    json_object_foreach(first, name, value)
    {
        if (!json_object_get(now, name)) /* another form has other settings */
            json_object_set_new(names, name, json_true());
    }
    json_decref(now);
    return FIN_OK;
}

char *study_varying_text(const study_varying *v, const char *block, const char *settings,
                         char *buffer, size_t size)
{
    json_t *now = study_settings(settings), *value;
    json_t *names = json_object_get(json_object_get(v->blocks, block), "names");
    const char *name;
    char text[256], part[320];
    size_t used = 0;
    buffer[0] = '\0';
    json_object_foreach(now, name, value)
    {
        if (!json_object_get(names, name))
            continue;
        snprintf(part, sizeof part, "%s%.40s=%s", used ? " " : "", name,
                 cli_value(value, text, sizeof text));
        snprintf(buffer + used, size - used, "%s", part);
        used = strlen(buffer);
    }
    json_decref(now);
    return buffer;
}

char *study_varying_names(const study_varying *v, const char *block, char *buffer, size_t size)
{
    const json_t *known = json_object_get(v->blocks, block);
    json_t *names = json_object_get(known, "names"), *value;
    const char *name;
    size_t used = 0;
    buffer[0] = '\0';
    json_object_foreach(json_object_get(known, "first"), name, value)
    {
        if (!json_object_get(names, name))
            continue;
        snprintf(buffer + used, size - used, "%s%.40s", used ? ", " : "", name);
        used = strlen(buffer);
    }
    return buffer;
}

json_t *study_run_row(const fin_run_row *row, const study_varying *v, bool json)
{
    const char *block = row->block ? row->block : "";
    char text[2048];
    return json_pack(
        "{s:I, s:o, s:o, s:s, s:s, s:o, s:o*, s:o*}", "position", cli_int(row->position), "block",
        cli_json_text(block), "command", cli_json_text(row->command), "hash", row->hash, "state",
        fin_state_name(row->state), "reason", cli_json_text(row->reason ? row->reason : ""),
        "settings", json ? study_settings(row->settings) : NULL, "varying",
        cli_json_text(json ? NULL
                           : study_varying_text(v, block, row->settings, text, sizeof text)));
}
