/* topology_place: see topology_place.h. */
#include "agent/topology_place.h"

#include "agent/machine.h"
#include "base/mem.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

#define NAME_MAX_BYTES 256

/* The rest of this host's full name, from the hosts file that a kubelet
 * writes. */
static void find_domain(const char *host, char *out, size_t cap)
{
    autofclose FILE *f = fopen("/etc/hosts", "re");
    size_t n = strlen(host);
    char line[1024];

    while (n > 0 && f && !out[0] && fgets(line, sizeof line, f)) {
        char *save, *word;

        line[strcspn(line, "#\n")] = '\0';
        for (word = strtok_r(line, " \t", &save); word;
             word = strtok_r(NULL, " \t", &save))
            if (strncmp(word, host, n) == 0 && word[n] == '.')
                (void)text_copy(out, cap, word + n + 1);
    }
}

static bool read_hostfile(const char *path, char *out, size_t cap)
{
    autofclose FILE *f = path && *path ? fopen(path, "re") : NULL;

    if (!f)
        return false; /* What `out` has is not touched: a page less. */
    out[fread(out, 1, cap - 1, f)] = '\0';
    return true;
}

const struct topo_place *topology_place(void *ctx)
{
    static const char *const variables[] = {"OMPI_MCA_orte_default_hostfile",
                                            "I_MPI_HYDRA_HOST_FILE",
                                            "HYDRA_HOST_FILE"};
    static char host[NAME_MAX_BYTES], domain[NAME_MAX_BYTES];
    static char hostfile[TOPO_HOSTFILE_MAX];
    static struct topo_place place; /* Lives until exit. */

    (void)ctx;
    if (place.host)
        return &place;
    machine_host(host, sizeof host);
    host[strcspn(host, ".")] = '\0';
    place.host = host;
    place.domain = domain;
    if (getenv("JOB_COMPLETION_INDEX"))
        find_domain(host, domain, sizeof domain);
    for (unsigned i = 0; i < 3 && !place.hostfile; i++)
        if (read_hostfile(getenv(variables[i]), hostfile, sizeof hostfile)) {
            place.hostfile = hostfile;
            place.hostfile_name = getenv(variables[i]);
        }
    if (!place.hostfile &&
        read_hostfile("/etc/mpi/hostfile", hostfile, sizeof hostfile)) {
        place.hostfile = hostfile;
        place.hostfile_name = "/etc/mpi/hostfile";
    }
    return &place;
}
