/* nccl: which NCCL a program here would load. */
#include "probe/library.h"

#include <stdio.h>

/* X*10000+Y*100+Z from 2.9 on, X*1000+Y*100+Z before. */
static void add_version(json_t *part, int code)
{
    int major = code < 10000 ? code / 1000 : code / 10000;
    int rest = code < 10000 ? code % 1000 : code % 10000;
    char text[48];

    (void)snprintf(text, sizeof text, "%d.%d.%d", major, rest / 100,
                   rest % 100);
    (void)json_object_set_new(part, "version", json_string(text));
    (void)json_object_set_new(part, "code", json_integer(code));
}

/* False where it does not tell its version: it is broken. */
static bool describe(const struct library *l, json_t *into)
{
    int (*get)(int *), code = 0;

    probe_set_text(into, "library", l->path);
    if (!LIBRARY_FIND(l, get, "ncclGetVersion") || get(&code) != 0)
        return false;
    add_version(into, code);
    return true;
}

void probe_nccl(json_t *part)
{
    struct library l, wheel;
    json_t *python = json_object();

    /* The linker's first: once the wheel's is loaded, its name means that. */
    (void)library_open(&l, "libnccl.so.2");
    if (library_open_wheel(&wheel, "libnccl.so.2", "nvidia/nccl/lib") &&
        describe(&wheel, python))
        (void)json_object_set_new(part, "wheel", python);
    else
        json_decref(python);
    if (!l.handle && !wheel.handle)
        probe_missing(part, false, "no NCCL here: %s", l.why);
    else if (!describe(l.handle ? &l : &wheel, part))
        probe_missing(part, true, "%s does not tell its version",
                      l.handle ? l.path : wheel.path);
    else
        (void)json_object_set_new(part, "found", json_true());
}
