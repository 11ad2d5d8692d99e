/* Fuzz target: Slurm's lists of hosts. */
#include "agent/hostlist.h"
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char name[HOSTLIST_NAME_MAX], *list = malloc(size + 1);
    uint32_t n;

    if (!list)
        return 0;
    memcpy(list, data, size);
    list[size] = '\0';
    n = hostlist_count(list);
    fuzz_require(n <= HOSTLIST_MAX);
    fuzz_require(!hostlist_at(list, n, name));
    for (uint32_t i = 0; i < n; i += 1 + n / 7)
        if (hostlist_at(list, i, name))
            fuzz_require(name[0] && !strpbrk(name, "[], \n"));
    free(list);
    return 0;
}
