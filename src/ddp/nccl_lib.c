/* nccl_lib: see nccl_lib.h. */
#include "ddp/nccl_lib.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define LIBRARY "libnccl.so.2"

static const struct {
    const char *name;
    size_t at;
} calls[] = {
#define CALL(field, name) {name, offsetof(struct ddp_nccl_lib, field)}
    CALL(get_version, "ncclGetVersion"),
    CALL(get_id, "ncclGetUniqueId"),
    CALL(init, "ncclCommInitRankConfig"),
    CALL(split, "ncclCommSplit"),
    CALL(async_error, "ncclCommGetAsyncError"),
    CALL(count, "ncclCommCount"),
    CALL(finalize, "ncclCommFinalize"),
    CALL(destroy, "ncclCommDestroy"),
    CALL(abort, "ncclCommAbort"),
    CALL(text, "ncclGetErrorString"),
    CALL(last_error, "ncclGetLastError"),
    CALL(all_reduce, "ncclAllReduce"),
    CALL(reduce_scatter, "ncclReduceScatter"),
    CALL(all_gather, "ncclAllGather"),
    CALL(broadcast, "ncclBroadcast"),
#undef CALL
};

void ddp_nccl_version(int code, char *out, size_t cap)
{
    int major = code < 10000 ? code / 1000 : code / 10000;
    int rest = code < 10000 ? code % 1000 : code % 10000;

    (void)snprintf(out, cap, "%d.%d.%d", major, rest / 100, rest % 100);
}

/* NULL, or the first call that is missing. */
static const char *bind(struct ddp_nccl_lib *l)
{
    for (unsigned i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        void *at = dlsym(l->handle, calls[i].name);

        if (!at)
            return calls[i].name;
        memcpy((char *)l + calls[i].at, &at, sizeof at);
    }
    return NULL;
}

static bool check(struct ddp_nccl_lib *l, char *why, size_t cap)
{
    const char *missing = NULL;
    void *at = dlsym(l->handle, "ncclGetVersion");
    char version[32];
    Dl_info info;

    if (at && dladdr(at, &info) && info.dli_fname)
        (void)snprintf(l->path, sizeof l->path, "%s", info.dli_fname);
    memcpy(&l->get_version, &at, sizeof at);
    if (!at || l->get_version(&l->version) != 0 || l->version <= 0) {
        (void)snprintf(why, cap, "%s does not tell its version", l->path);
        return false;
    }
    ddp_nccl_version(l->version, version, sizeof version);
    if (l->version < DDP_NCCL_OLDEST ||
        l->version / 10000 != DDP_NCCL_MAJOR) {
        (void)snprintf(why, cap, "%s is NCCL %s: 2.18 or a later 2.x is "
                       "needed", l->path, version);
        return false;
    }
    missing = bind(l);
    if (missing)
        (void)snprintf(why, cap, "%s (NCCL %s) has no %s", l->path, version,
                       missing);
    return !missing;
}

bool ddp_nccl_open(struct ddp_nccl_lib *ret, char *why, size_t cap)
{
    memset(ret, 0, sizeof *ret);
    (void)snprintf(ret->path, sizeof ret->path, "%s", LIBRARY);
    if (dlsym(RTLD_DEFAULT, "ncclGetVersion"))
        ret->handle = dlopen(NULL, RTLD_LAZY);
    if (!ret->handle)
        ret->handle = dlopen(LIBRARY, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
    if (!ret->handle)
        ret->handle = dlopen(LIBRARY, RTLD_LAZY | RTLD_LOCAL);
    if (!ret->handle) {
        const char *error = dlerror();

        (void)snprintf(why, cap, "NCCL cannot be opened: %s",
                       error ? error : LIBRARY);
        return false;
    }
    if (check(ret, why, cap))
        return true;
    (void)dlclose(ret->handle);
    ret->handle = NULL;
    return false;
}
