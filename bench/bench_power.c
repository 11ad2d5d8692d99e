/* bench_device's look at NVML: the energy that the GPU took, its clock, and
 * whether its power limit held the clock down (numbers of nvml.h). */
#include "bench_device.h"

#define CLOCK_SM 1
#define REASON_POWER_CAP 4u

static struct {
    int (*init)(void);
    int (*by_pci)(const char *, void **);
    int (*energy)(void *, unsigned long long *); /* In mJ. */
    int (*clock)(void *, int, unsigned *);       /* In MHz. */
    int (*reasons)(void *, unsigned long long *);
} nvml;
static void *gpu;
static bool was_asked;
static unsigned long long began_mj;
static double began, sum_mhz;
static unsigned looks, capped;

static void open_nvml(void)
{
    static const char *const libs[] = {
        "libnvidia-ml.so.1", "/usr/local/nvidia/lib64/libnvidia-ml.so.1"};
    static const char *const names[] = {
        "nvmlInit_v2", "nvmlDeviceGetHandleByPciBusId_v2",
        "nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetClockInfo",
        "nvmlDeviceGetCurrentClocksThrottleReasons"};
    char pci[32];

    was_asked = true;
    if (cuda.pci_bus_id(pci, sizeof pci, ddp_local_rank(comm)) == 0 &&
        find(libs, names, 5, &nvml) && nvml.init() == 0 &&
        nvml.by_pci(pci, &gpu) != 0)
        gpu = NULL;
}

void power_begin(void)
{
    if (!was_asked)
        open_nvml();
    looks = capped = 0;
    sum_mhz = 0;
    began = now();
    if (gpu && nvml.energy(gpu, &began_mj) != 0)
        gpu = NULL;
}

void power_look(void)
{
    unsigned long long reasons = 0;
    unsigned mhz = 0;

    if (!gpu || nvml.clock(gpu, CLOCK_SM, &mhz) != 0 ||
        nvml.reasons(gpu, &reasons) != 0)
        return;
    looks++;
    sum_mhz += mhz;
    capped += (reasons & REASON_POWER_CAP) != 0;
}

struct power power_end(void)
{
    unsigned long long mj = 0;

    if (!gpu || looks == 0 || nvml.energy(gpu, &mj) != 0)
        return (struct power){0};
    return (struct power){
        .watts = (double)(mj - began_mj) / 1e3 / (now() - began),
        .mhz = sum_mhz / looks,
        .capped = (double)capped / looks};
}
