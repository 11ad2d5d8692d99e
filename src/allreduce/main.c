/* main of agent-allreduce: a rank of a test of an all-reduce, for agent,
 * torchrun or any other launcher that libddp knows. */
#include "allreduce/measure.h"
#include "allreduce/opts.h"
#include "base/std_fds.h"

static int run(const struct opts *o, struct err *e)
{
    const struct ddp_options opt = {.size = sizeof opt,
                                    .timeout_ms = o->timeout_ms};
    struct ddp_comm *c = NULL;
    struct ddp_error d;
    int rc;

    if (ddp_init(&c, &opt, &d))
        return measure_fault(&d, e);
    rc = measure_all(c, o, stdout, e);
    ddp_free(c);
    return rc;
}

int main(int argc, char **argv)
{
    struct opts o;
    struct err e;
    const char *why;
    int rc;

    (void)std_fds_fill();
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    rc = opts_read(&o, argc, argv, &e);
    if (rc == 0 && o.view != CLI_RUN)
        opts_write(stdout, o.view);
    else if (rc == 0)
        rc = run(&o, &e);
    if (rc < 0) {
        fprintf(stderr, "agent-allreduce: %s\n", e.text);
        return -rc;
    }
    why = std_fds_end(stdout);
    if (!why)
        return rc;
    fprintf(stderr, "agent-allreduce: write to stdout: %s\n", why);
    return ERR_RESOURCE;
}
