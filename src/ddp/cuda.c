/* cuda: see cuda.h. */
#include "ddp/cuda.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static const char *const names[] = {"libcudart.so.13", "libcudart.so.12",
                                    "libcudart.so.11.0", "libcudart.so"};

/* The C standard has no way from an object pointer to a function's. */
static bool find(void *handle, const char *name, void *ret, size_t size)
{
    void *at = dlsym(handle, name);

    memcpy(ret, &at, size);
    return at != NULL;
}
#define FIND(c, field, name) find((c)->handle, name, &(c)->field, \
                                  sizeof (c)->field)

static bool bind(struct ddp_cuda *c)
{
    return FIND(c, attributes, "cudaPointerGetAttributes") &&
           FIND(c, event_new, "cudaEventCreateWithFlags") &&
           FIND(c, event_record, "cudaEventRecord") &&
           FIND(c, event_query, "cudaEventQuery") &&
           FIND(c, event_free, "cudaEventDestroy") &&
           FIND(c, copy, "cudaMemcpyAsync") &&
           FIND(c, stream_new, "cudaStreamCreateWithPriority") &&
           FIND(c, stream_free, "cudaStreamDestroy") &&
           FIND(c, stream_wait, "cudaStreamWaitEvent") &&
           FIND(c, malloc, "cudaMalloc") && FIND(c, free, "cudaFree") &&
           FIND(c, get_device, "cudaGetDevice") &&
           FIND(c, set_device, "cudaSetDevice") &&
           FIND(c, last_error, "cudaGetLastError") &&
           FIND(c, text, "cudaGetErrorString");
}

bool ddp_cuda_open(struct ddp_cuda *ret, bool fresh, char why[DDP_CUDA_WHY])
{
    const char *error = "not loaded by this program";

    /* The program's own, or one of LD_PRELOAD; then a library's. */
    ret->handle = RTLD_DEFAULT;
    if (bind(ret)) {
        ret->handle = dlopen(NULL, RTLD_LAZY);
        return ret->handle != NULL;
    }
    for (int pass = 0; pass < (fresh ? 2 : 1); pass++)
        for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
            ret->handle = dlopen(names[i], RTLD_LAZY | RTLD_LOCAL |
                                               (pass ? 0 : RTLD_NOLOAD));
            if (ret->handle && bind(ret))
                return true;
            if (ret->handle)
                (void)dlclose(ret->handle);
            if (pass)
                error = ret->handle ? "a call is missing in it" : dlerror();
        }
    ret->handle = NULL;
    (void)snprintf(why, DDP_CUDA_WHY, "libcudart: %s", error ? error : "?");
    return false;
}

/* Errors that stay. Others are CUDA 10's word for unknown memory, and those of
 * a machine without a GPU, where all memory is the host's. */
static bool is_broken(int error)
{
    return error == DDP_CUDA_ECC ||
           (error >= DDP_CUDA_BROKEN && error < DDP_CUDA_BROKEN + 100);
}

int ddp_cuda_is_device(const struct ddp_cuda *c, const void *p)
{
    struct ddp_cuda_attributes a;
    int e;

    if (!p)
        return 0;
    memset(&a, 0, sizeof a);
    e = c->attributes(&a, p);
    if (e != 0) {
        (void)c->last_error();
        return is_broken(e) ? -e : 0;
    }
    return a.type == DDP_CUDA_DEVICE || a.type == DDP_CUDA_MANAGED;
}

int ddp_cuda_is_done(const struct ddp_cuda *c, void *event)
{
    int e = c->event_query(event);

    if (e == DDP_CUDA_NOT_READY) {
        (void)c->last_error();
        return 0;
    }
    return e == 0 ? 1 : -e;
}
