/* nccl: which NCCL a program here would load. */
#include "probe/library.h"

#include <stdio.h>

#define CODE_MIN 2000 /* 2.0: no older one tells it. */
#define CODE_MAX 999999

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

static void describe(const struct library *l, json_t *into)
{
    int (*get)(int *), code = 0;

    if (!l->handle) {
        probe_missing(into, l->is_there, "%s: %s",
                      l->is_there ? "libnccl cannot be loaded"
                                  : "no NCCL here", l->why);
        return;
    }
    probe_set_text(into, "library", l->path);
    if (!LIBRARY_FIND(l, get, "ncclGetVersion") || get(&code) != 0) {
        probe_missing(into, true, "%s does not tell its version", l->path);
    } else if (code < CODE_MIN || code > CODE_MAX) {
        probe_missing(into, true, "%s says %d, which is no version of NCCL",
                      l->path, code);
    } else {
        add_version(into, code);
        (void)json_object_set_new(into, "found", json_true());
    }
}

void probe_nccl(json_t *part)
{
    struct library l, wheel;
    json_t *python;

    /* The linker's first: once the wheel's is loaded, its name means that. */
    (void)library_open(&l, "libnccl.so.2");
    (void)library_open_wheel(&wheel, "libnccl.so.2", "nvidia/nccl/lib");
    describe(l.is_there || !wheel.is_there ? &l : &wheel, part);
    if (wheel.is_there) {
        python = json_object();
        describe(&wheel, python);
        (void)json_object_set_new(part, "wheel", python);
    }
    probe_plugins(part);
}
