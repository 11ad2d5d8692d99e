/* names: see names.h. */
#include "ddp/names.h"

#include <stdlib.h>
#include <string.h>

#define PORT_FIRST 20000
#define PORTS 12000
#define TASKS_MAX 4096

const struct ddp_names ddp_names[DDP_N_NAMES] = {
    [DDP_NAMES_TORCHRUN] = {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK",
                            "LOCAL_WORLD_SIZE", "TORCHELASTIC_RUN_ID", NULL,
                            NULL, NULL, NULL},
    {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE",
     "PMIX_NAMESPACE", NULL, NULL, NULL, NULL},
    /* Those of a step: a batch script alone is no rank of several. */
    {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", NULL,
     "SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_STEP_NODELIST",
     "SLURM_STEP_TASKS_PER_NODE", "SLURM_NODEID"},
};

int ddp_names_first_host(const char *list, char *ret, size_t cap)
{
    size_t n = 0;

    for (; *list && *list != ','; list++) {
        if (*list == '[') { /* The first number of the first range. */
            for (list++; *list >= '0' && *list <= '9' && n + 1 < cap; list++)
                ret[n++] = *list;
            while (*list && *list != ']')
                list++;
            if (!*list)
                return -1;
            continue;
        }
        if (*list == ']' || n + 1 >= cap)
            return -1;
        ret[n++] = *list;
    }
    ret[n] = '\0';
    return n > 0 ? 0 : -1;
}

static unsigned long number(const char **at)
{
    unsigned long n = 0;

    while (**at >= '0' && **at <= '9' && n <= TASKS_MAX)
        n = n * 10 + (unsigned long)(*(*at)++ - '0');
    return n;
}

int ddp_names_tasks(const char *list, unsigned node, int *ret)
{
    unsigned long first = 0;

    while (*list >= '0' && *list <= '9') {
        unsigned long tasks = number(&list), nodes = 1;

        if (!strncmp(list, "(x", 2)) {
            list += 2;
            nodes = number(&list);
            if (*list++ != ')')
                return -1;
        }
        if (tasks == 0 || tasks > TASKS_MAX)
            return -1;
        if (node < first + nodes) {
            *ret = (int)tasks;
            return 0;
        }
        first += nodes;
        if (*list == ',')
            list++;
    }
    return -1;
}

uint16_t ddp_names_port(const char *job)
{
    uint32_t h = 2166136261u;

    for (; *job; job++)
        h = (h ^ (unsigned char)*job) * 16777619u;
    return (uint16_t)(PORT_FIRST + h % PORTS);
}
