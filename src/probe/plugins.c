/* plugins: those of NCCL that the environment names. A bare NAME is a library
 * of that name or, where there is none, libnccl-net-NAME.so, and so on; with
 * what it needs it is there only if the dynamic linker can load it. */
#include "probe/library.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define NAME_MAX_BYTES 255 /* NCCL's own. */
#define NAMES_MAX 16

static const struct {
    const char *variable, *prefix;
    bool is_list; /* Names with commas. */
} rows[] = {{"NCCL_NET_PLUGIN", "libnccl-net", true},
            {"NCCL_TUNER_PLUGIN", "libnccl-tuner", false},
            {"NCCL_PROFILER_PLUGIN", "libnccl-profiler", false}};

/* A path, or the whole name of a file. */
static bool is_file(const char *name)
{
    size_t len = strlen(name);

    return strchr(name, '/') || (strncmp(name, "lib", 3) == 0 && len > 3 &&
                                 strcmp(name + len - 3, ".so") == 0);
}

static void add_one(unsigned row, const char *name, json_t *list)
{
    char file[NAME_MAX_BYTES + 64];
    json_t *plugin = json_object();
    struct library l;

    if (!library_open(&l, name) && !l.is_there && !is_file(name)) {
        (void)snprintf(file, sizeof file, "%s-%s.so", rows[row].prefix, name);
        (void)library_open(&l, file);
    }
    probe_set_text(plugin, "variable", rows[row].variable);
    probe_set_text(plugin, "name", name);
    if (l.handle) {
        (void)json_object_set_new(plugin, "found", json_true());
        probe_set_text(plugin, "library", l.path);
    } else {
        probe_missing(plugin, true, "%s", l.why);
    }
    (void)json_array_append_new(list, plugin);
}

void probe_plugins(json_t *nccl)
{
    json_t *list = json_array();

    (void)json_object_set_new(nccl, "plugins", list);
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *s = getenv(rows[i].variable);
        unsigned n = 0;

        /* One that is linked in has no file. */
        if (!s || strcasecmp(s, "none") == 0 ||
            strcasecmp(s, "STATIC_PLUGIN") == 0)
            continue;
        while (*s && n < NAMES_MAX) {
            size_t len = rows[i].is_list ? strcspn(s, ",") : strlen(s);
            char name[NAME_MAX_BYTES + 1];

            (void)snprintf(name, sizeof name, "%.*s", (int)len, s);
            if (len > 0 && len <= NAME_MAX_BYTES)
                add_one(i, name, list);
            n += len > 0;
            s += len + (s[len] == ',');
        }
    }
}
