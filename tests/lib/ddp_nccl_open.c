/* ddp_nccl_open: prints version and path of the NCCL that libddp opens. */
#include "ddp/nccl_lib.h"

#include <stdio.h>

int main(void)
{
    struct ddp_nccl_lib l;
    char why[300], version[32];

    if (!ddp_nccl_open(&l, why, sizeof why)) {
        printf("%s\n", why);
        return 1;
    }
    ddp_nccl_version(l.version, version, sizeof version);
    printf("%s %s\n", version, l.path);
    return 0;
}
