/* probe_libraries: stands for libcuda, libnvidia-ml, libnccl and libibverbs
 * in the test of agent-probe. FAKE says what goes wrong. */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int goes_wrong(const char *how)
{
    const char *fake = getenv("FAKE");

    return fake && strcmp(fake, how) == 0;
}

/* A process that stays, with what it has inherited, until it is killed. */
static void leave_one(void)
{
    FILE *f;

    if (fork() == 0) {
        f = fopen(getenv("FAKE_PID"), "w");
        if (f) {
            fprintf(f, "%d\n", (int)getpid());
            (void)fclose(f);
        }
        (void)alarm(120);
        for (;;)
            (void)pause();
    }
}

/* --- libcuda: two GPUs --- */

int cuInit(unsigned flags)
{
    printf("a library that talks on stdout\n");
    (void)fflush(stdout);
    if (goes_wrong("hang"))
        for (;;)
            (void)pause();
    if (goes_wrong("leaves") || goes_wrong("leaves and crashes"))
        leave_one();
    if (goes_wrong("crash") || goes_wrong("leaves and crashes"))
        (void)raise(SIGSEGV);
    if (goes_wrong("exit"))
        exit(3);
    return goes_wrong("nodevice") ? 100 : goes_wrong("mismatch") ? 803
                                                                 : (int)flags;
}

int cuDriverGetVersion(int *v) { return *v = 12040, 0; }
int cuDeviceGetCount(int *n)
{
    return *n = 2, goes_wrong("no count") ? 999 : 0;
}
int cuDeviceGet(int *d, int i) { return *d = i, 0; }

int cuDeviceGetName(char *s, int len, int d)
{
    (void)snprintf(s, (size_t)len, "Fake H100 %d", d);
    return 0;
}

int cuDeviceGetUuid_v2(unsigned char *u, int d)
{
    memset(u, 0xa0 + d, 16);
    return 0;
}

int cuDeviceGetPCIBusId(char *s, int len, int d)
{
    (void)snprintf(s, (size_t)len, "0000:0%d:00.0", d + 1);
    return 0;
}

int cuDeviceTotalMem_v2(size_t *n, int d) { return *n = 85899345920u, d * 0; }
int cuDeviceGetAttribute(int *v, int a, int d)
{
    return *v = a == 75 ? 9 : 0, d * 0;
}
int cuDeviceCanAccessPeer(int *v, int a, int b) { return *v = a != b, 0; }
int cuDeviceGetP2PAttribute(int *v, int a, int i, int j)
{
    return *v = a == 1, (i + j) * 0;
}
int cuGetErrorString(int e, const char **s)
{
    *s = e == 803 ? "system has unsupported display driver / cuda driver "
                    "combination"
                  : "no CUDA-capable device is detected";
    return 0;
}

/* --- libnvidia-ml --- */

int nvmlInit_v2(void) { return goes_wrong("no nvml") ? 18 : 0; }
int nvmlSystemGetDriverVersion(char *s, unsigned len)
{
    (void)snprintf(s, len, "550.1.2");
    return 0;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, void **d)
{
    return *d = (void *)(intptr_t)pci[6], 0;
}
int nvmlDeviceGetMigMode(void *d, unsigned *now, unsigned *then)
{
    return *now = *then = d == (void *)(intptr_t)'2', 0;
}
int nvmlDeviceGetNvLinkState(void *d, unsigned link, unsigned *active)
{
    *active = link != 3;
    return link < 4 && d ? 0 : 2;
}
int nvmlDeviceGetTotalEccErrors(void *d, int type, int counter,
                                unsigned long long *n)
{
    return *n = (unsigned long long)(type + counter), d ? 0 : 1;
}

/* --- libnccl --- */

int ncclGetVersion(int *v)
{
    const char *fake = getenv("FAKE");

    *v = goes_wrong("old nccl") ? 2708 : 22703;
    if (fake && strncmp(fake, "code ", 5) == 0)
        *v = (int)strtol(fake + 5, NULL, 10);
    return goes_wrong("no version");
}

/* --- libibverbs: one device with one port --- */

static int device;

void **ibv_get_device_list(int *n)
{
    void **list;

    *n = 0;
    if (goes_wrong("no kernel")) {
        errno = ENOSYS;
        return NULL;
    }
    list = calloc(2, sizeof *list);
    if (list)
        list[0] = &device;
    *n = 1;
    return list;
}
void ibv_free_device_list(void **list) { free(list); }
const char *ibv_get_device_name(void *d) { return d ? "mlx5_0" : "?"; }
void *ibv_open_device(void *d) { return d; }
int ibv_close_device(void *d) { return !d; }
int ibv_query_port(void *c, uint8_t n, void *p)
{
    if (n != 1 || !c)
        return EINVAL;
    memcpy(p, (int[]){4, 5, 5}, 3 * sizeof(int));
    memcpy((char *)p + 34, &(uint16_t){17}, 2);  /* lid */
    ((char *)p)[46] = 2;                         /* link_layer: Ethernet */
    return 0;
}
void *ibv_alloc_pd(void *c) { return c; }
int ibv_dealloc_pd(void *pd) { return !pd; }
void *ibv_reg_mr(void *pd, void *at, size_t n, int flags)
{
    errno = ENOMEM;
    return goes_wrong("memlock") || n != 64u << 20 || flags != 1 || !at ? NULL
                                                                      : pd;
}
int ibv_dereg_mr(void *mr) { return !mr; }
