/* gpu: see gpu.h. */
#include "gpu.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 128u /* Of a block. */
#define ALLOCS 32
#define TO_DEVICE 1
#define TO_HOST 2

struct cuda {
    int (*set_device)(int);
    int (*malloc)(void **, size_t);
    int (*free)(void *);
    int (*memset)(void *, int, size_t, void *);
    int (*stream_new)(void **, unsigned);
    int (*stream_free)(void *);
    int (*stream_wait)(void *);
    int (*copy)(void *, const void *, size_t, int, void *);
    const char *(*text)(int);
};

struct driver {
    int (*load)(void **, const void *);
    int (*unload)(void *);
    int (*find)(void **, void *, const char *);
    int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned,
                  unsigned, unsigned, void *, void **, void **);
    int (*text)(int, const char **);
};

struct compiler {
    int (*create)(void **, const char *, const char *, int, const char *const *,
                  const char *const *);
    int (*compile)(void *, int, const char *const *);
    int (*size)(void *, size_t *);
    int (*get)(void *, char *);
    int (*log_size)(void *, size_t *);
    int (*log)(void *, char *);
    int (*destroy)(void **);
    const char *(*text)(int);
};

struct gpu {
    struct cuda cuda;
    struct driver driver;
    struct compiler compiler;
    void *stream, *module, *kernels[GPU_KERNELS];
    void *allocs[ALLOCS];
    unsigned n_allocs;
    char fault[GPU_WHY];
};

/* --- libraries ----------------------------------------------------------- */

/* The calls named, from the first of the libraries that is there. */
static int find(const char *const *libs, const char *const *names, void *ret,
                size_t size, char *why)
{
    void *h = NULL, *at = NULL;

    for (unsigned i = 0; !h && libs[i]; i++)
        h = dlopen(libs[i], RTLD_LAZY | RTLD_LOCAL);
    if (!h) {
        (void)snprintf(why, GPU_WHY, "%s", dlerror());
        return -1;
    }
    for (size_t i = 0; i < size / sizeof at; i++) {
        at = dlsym(h, names[i]);
        if (!at) {
            (void)snprintf(why, GPU_WHY, "%s has no %s", libs[0], names[i]);
            return -1;
        }
        memcpy((char *)ret + i * sizeof at, &at, sizeof at);
    }
    return 0;
}

static int open_all(struct gpu *g)
{
    static const char *const cudart[] = {"libcudart.so.13", "libcudart.so.12",
                                         "libcudart.so", NULL};
    static const char *const nvrtc[] = {"libnvrtc.so.13", "libnvrtc.so.12",
                                        "libnvrtc.so", NULL};
    static const char *const driver[] = {"libcuda.so.1", NULL};
    static const char *const of_cudart[] = {
        "cudaSetDevice", "cudaMalloc", "cudaFree", "cudaMemsetAsync",
        "cudaStreamCreateWithFlags", "cudaStreamDestroy",
        "cudaStreamSynchronize", "cudaMemcpyAsync", "cudaGetErrorString"};
    static const char *const of_driver[] = {
        "cuModuleLoadData", "cuModuleUnload", "cuModuleGetFunction",
        "cuLaunchKernel", "cuGetErrorString"};
    static const char *const of_nvrtc[] = {
        "nvrtcCreateProgram", "nvrtcCompileProgram", "nvrtcGetPTXSize",
        "nvrtcGetPTX", "nvrtcGetProgramLogSize", "nvrtcGetProgramLog",
        "nvrtcDestroyProgram", "nvrtcGetErrorString"};

    return find(cudart, of_cudart, &g->cuda, sizeof g->cuda, g->fault) ||
           find(driver, of_driver, &g->driver, sizeof g->driver, g->fault) ||
           find(nvrtc, of_nvrtc, &g->compiler, sizeof g->compiler, g->fault);
}

/* --- faults -------------------------------------------------------------- */

static int fail(struct gpu *g, const char *what, const char *why)
{
    if (!g->fault[0])
        (void)snprintf(g->fault, sizeof g->fault, "%s: %.900s", what,
                       why ? why : "unknown");
    return -1;
}

static int check(struct gpu *g, const char *what, int error)
{
    return error ? fail(g, what, g->cuda.text(error)) : 0;
}

static int check_driver(struct gpu *g, const char *what, int error)
{
    const char *why = NULL;

    if (!error)
        return 0;
    (void)g->driver.text(error, &why);
    return fail(g, what, why);
}

const char *gpu_fault(const struct gpu *g)
{
    return g->fault[0] ? g->fault : NULL;
}

/* --- kernels ------------------------------------------------------------- */

static int fail_compile(struct gpu *g, void *program, int error)
{
    const struct compiler *c = &g->compiler;
    char *log = NULL;
    size_t size = 0;

    if (program && c->log_size(program, &size) == 0 && size > 1)
        log = malloc(size);
    if (log && c->log(program, log) != 0)
        log[0] = '\0';
    (void)fail(g, "libnvrtc", log && log[0] ? log : c->text(error));
    free(log);
    return -1;
}

/* PTX for an old GPU: the driver makes code of it for the one that is there. */
static char *compile(struct gpu *g, const char *source)
{
    const struct compiler *c = &g->compiler;
    void *program = NULL;
    char *ptx = NULL;
    size_t size = 0;
    int error = c->create(&program, source, "kernels", 0, NULL, NULL);

    if (!error)
        error = c->compile(program, 0, NULL);
    if (!error)
        error = c->size(program, &size);
    if (!error)
        ptx = malloc(size);
    if (ptx)
        error = c->get(program, ptx);
    if (error)
        (void)fail_compile(g, program, error);
    else if (!ptx)
        (void)fail(g, "kernels", "out of memory");
    if (program)
        (void)c->destroy(&program);
    return ptx;
}

static void load(struct gpu *g, const char *source, const char *const *names)
{
    char *ptx = compile(g, source);
    int rc = gpu_fault(g) ? -1 : check_driver(g, "cuModuleLoadData",
                                              g->driver.load(&g->module, ptx));

    for (unsigned k = 0; !rc && names[k] && k < GPU_KERNELS; k++)
        rc = check_driver(g, names[k], g->driver.find(&g->kernels[k],
                                                      g->module, names[k]));
    free(ptx);
}

/* --- the calls ----------------------------------------------------------- */

struct gpu *gpu_new(int device, const char *source, const char *const *names,
                    char why[GPU_WHY])
{
    struct gpu *g = calloc(1, sizeof *g);

    (void)snprintf(why, GPU_WHY, "out of memory");
    if (!g)
        return NULL;
    /* cudaFree: the context, which the driver's calls need, is made now. */
    if (!open_all(g) &&
        !check(g, "cudaSetDevice", g->cuda.set_device(device)) &&
        !check(g, "cudaFree", g->cuda.free(NULL)) &&
        !check(g, "cudaStreamCreateWithFlags",
               g->cuda.stream_new(&g->stream, 1)))
        load(g, source, names);
    if (!gpu_fault(g))
        return g;
    (void)snprintf(why, GPU_WHY, "GPU %d: %.900s", device, g->fault);
    gpu_free(g);
    return NULL;
}

void gpu_free(struct gpu *g)
{
    if (!g)
        return;
    for (unsigned i = 0; i < g->n_allocs; i++)
        (void)g->cuda.free(g->allocs[i]);
    if (g->module)
        (void)g->driver.unload(g->module);
    if (g->stream)
        (void)g->cuda.stream_free(g->stream);
    free(g);
}

void *gpu_stream(const struct gpu *g)
{
    return g->stream;
}

void *gpu_alloc(struct gpu *g, size_t size)
{
    void *p = NULL;

    if (gpu_fault(g))
        return NULL;
    if (g->n_allocs == ALLOCS) {
        (void)fail(g, "gpu_alloc", "too many pieces of memory");
        return NULL;
    }
    if (check(g, "cudaMalloc", g->cuda.malloc(&p, size > 0 ? size : 1)))
        return NULL;
    g->allocs[g->n_allocs++] = p;
    (void)check(g, "cudaMemsetAsync", g->cuda.memset(p, 0, size, g->stream));
    return p;
}

static void copy(struct gpu *g, void *to, const void *from, size_t size,
                 int kind)
{
    if (!gpu_fault(g) &&
        !check(g, "cudaMemcpyAsync",
               g->cuda.copy(to, from, size, kind, g->stream)))
        (void)check(g, "the GPU's work", g->cuda.stream_wait(g->stream));
}

void gpu_put(struct gpu *g, void *to, const void *from, size_t size)
{
    copy(g, to, from, size, TO_DEVICE);
}

void gpu_get(struct gpu *g, void *to, const void *from, size_t size)
{
    copy(g, to, from, size, TO_HOST);
}

void gpu_launch(struct gpu *g, unsigned k, size_t n, void **args)
{
    if (gpu_fault(g) || n == 0)
        return;
    (void)check_driver(
        g, "cuLaunchKernel",
        g->driver.launch(g->kernels[k], (unsigned)((n + THREADS - 1) / THREADS),
                         1, 1, THREADS, 1, 1, 0, g->stream, args, NULL));
}
