/* opts: see opts.h. */
#include "allreduce/opts.h"

#include "agent/option_types.h"
#include "allreduce/pattern.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define AT(field) offsetof(struct opts, field)
#define MANY 1000000

/* "4096", "32M": whole, with K, M, G or T of 1024. */
static bool read_bytes(const char *s, uint64_t *ret)
{
    static const char units[] = "KMGT";
    size_t len = strlen(s);
    const char *unit = len > 1 ? strchr(units, s[len - 1] & ~0x20) : NULL;
    unsigned shift = 0;

    if (unit && *unit) {
        shift = 10 * (unsigned)(unit - units + 1);
        len--;
    }
    if (!opt_read_uint(s, len, 1, OPTS_BYTES_MAX >> shift, ret))
        return false;
    *ret <<= shift;
    return true;
}

static int take_bytes(void *to, const struct cli_row *row, const char *text,
                      struct err *e)
{
    if (!read_bytes(text, CLI_FIELD(to, row, uint64_t)))
        return cli_bad(row, text, "use a number of bytes: 8, 64K, 32M, 1G", e);
    return 0;
}

static int take_busbw(void *to, const struct cli_row *row, const char *text,
                      struct err *e)
{
    char *end;
    double v = strtod(text, &end);

    if (text[0] < '0' || text[0] > '9' || *end || !isfinite(v))
        return cli_bad(row, text, "use a bandwidth in GB/s: 0.8, 12", e);
    *CLI_FIELD(to, row, double) = v;
    return 0;
}

static const char *type_name(unsigned i)
{
    return pattern_type(i) ? pattern_type(i)->name : NULL;
}

static const char *op_name(unsigned i)
{
    return pattern_op(i) ? pattern_op(i)->name : NULL;
}

static int take_name(void *to, const struct cli_row *row, const char *text,
                     const char *(*name)(unsigned), struct err *e)
{
    char list[128] = "all";

    for (unsigned i = 0; name(i); i++) {
        if (strcmp(text, name(i)) == 0) {
            *CLI_FIELD(to, row, int) = (int)i;
            return 0;
        }
        strncat(list, ", ", sizeof list - strlen(list) - 1);
        strncat(list, name(i), sizeof list - strlen(list) - 1);
    }
    if (strcmp(text, "all") != 0)
        return err_set(e, ERR_USAGE, "--%s=%.40s: use one of %s", row->name,
                       text, list);
    *CLI_FIELD(to, row, int) = OPTS_ALL;
    return 0;
}

static int take_type(void *to, const struct cli_row *row, const char *text,
                     struct err *e)
{
    return take_name(to, row, text, type_name, e);
}

static int take_op(void *to, const struct cli_row *row, const char *text,
                   struct err *e)
{
    return take_name(to, row, text, op_name, e);
}

/* What only nccl-tests can vary: the one value that is what happens here. */
static int take_fixed(void *to, const struct cli_row *row, const char *text,
                      struct err *e)
{
    char why[160];

    (void)to;
    if (strcmp(text, row->initial) == 0)
        return 0;
    (void)snprintf(why, sizeof why, "only %s is possible: %s", row->initial,
                   row->at ? "this measures host memory, not GPUs"
                           : "a rank is a process; agent --nproc N starts N");
    return cli_bad(row, text, why, e);
}

#define FIXED(name, letter, value, of_gpus)                                    \
    {name, letter, CLI_OTHER, of_gpus, 0, 0, "N", value, NULL, take_fixed}

static const struct cli_row rows[] = {
    {"minbytes", 'b', CLI_OTHER, AT(min_bytes), 0, 0, "SIZE", "32M",
     "The smallest size: bytes, or with K, M, G for 1024 and so on.",
     take_bytes},
    {"maxbytes", 'e', CLI_OTHER, AT(max_bytes), 0, 0, "SIZE", "32M",
     "The largest size. Each rank has two buffers of it.", take_bytes},
    {"stepbytes", 'i', CLI_OTHER, AT(step_bytes), 0, 0, "SIZE", "1M",
     "From one size to the next, where there is no factor.", take_bytes},
    {"stepfactor", 'f', CLI_NUMBER, AT(factor), 1, MANY, "N", "1",
     "Each size is N times the one before; 1: in steps of --stepbytes.", NULL},
    {"iters", 'n', CLI_NUMBER, AT(iters), 1, MANY, "N", "20",
     "Calls that are timed; the time is their mean, over all ranks.", NULL},
    {"warmup-iters", 'w', CLI_NUMBER, AT(warmup), 0, MANY, "N", "1",
     "Calls before that, which are not.", NULL},
    {"check", 'c', CLI_NUMBER, AT(check), 0, MANY, "N", "1",
     "Calls after that, of which each element is compared; 0: none.", NULL},
    {"op", 'o', CLI_OTHER, AT(op), 0, 0, "OP", "sum",
     "sum, prod, max, min, avg or all.", take_op},
    {"datatype", 'd', CLI_OTHER, AT(type), 0, 0, "TYPE", "float",
     "int8, uint8, int32, uint32, int64, uint64, half, float, double, "
     "bfloat16 or all.", take_type},
    {"timeout", 'T', CLI_DURATION, AT(timeout_ms), 1, UINT64_C(86400000), "T",
     NULL, "Deadline of each call; without it DDP_TIMEOUT, else 60s.", NULL},
    {"min-busbw", 0, CLI_OTHER, AT(min_busbw), 0, 0, "GB/S", NULL,
     "Fail where the mean bus bandwidth is less.", take_busbw},
    {"json", 0, CLI_FLAG, AT(json), 0, 0, NULL, NULL,
     "One JSON object in place of the table.", NULL},
    {"ngpus", 'g', CLI_OTHER, 0, 0, 0, "N", "1",
     "Must be 1, as a rank is a process: agent --nproc N starts N.",
     take_fixed},
    FIXED("nthreads", 't', "1", 0), FIXED("parallel-init", 'p', "0", 0),
    FIXED("agg-iters", 'm', "1", 1), FIXED("run-cycles", 'N', "1", 1),
    FIXED("blocking", 'z', "0", 1), FIXED("stream-null", 'y', "0", 1),
    FIXED("cudagraph", 'G', "0", 1), FIXED("report-cputime", 'C', "0", 1),
    FIXED("average", 'a', "1", 1), FIXED("local-register", 'R', "0", 1),
    {"help", 'h', CLI_HELP, 0, 0, 0, NULL, NULL, "Print this.", NULL},
    {"version", 0, CLI_VERSION, 0, 0, 0, NULL, NULL, "Print the version.",
     NULL},
};

static int take_word(void *to, unsigned n, const char *word, struct err *e)
{
    char shown[OPT_SHOWN_MAX];

    (void)to;
    (void)n;
    return err_set(e, ERR_USAGE, "%s: it takes no words; see agent-allreduce "
                   "--help", opt_shown(shown, word, strlen(word)));
}

static const char man_head[] =
    ".Dd November 28, 2026\n.Dt AGENT-ALLREDUCE 1\n.Os\n"
    ".Sh NAME\n.Nm agent-allreduce\n"
    ".Nd speed and correctness of an all-reduce between the ranks of a job\n"
    ".Sh SYNOPSIS\n.Nm agent\n.Op Ar options\n.Fl Fl\n.Nm\n.Op Ar options\n"
    ".Sh DESCRIPTION\n"
    ".Nm\n"
    "is a worker: each rank of the job runs it.\n"
    "It calls\n.Fn ddp_all_reduce\nof\n.Xr ddp 3\n"
    "on host memory, for a row of sizes, first from one buffer to another, "
    "then in\nplace, and rank 0 prints the time in the columns of nccl-tests' "
    "all_reduce_perf.\n"
    "The algorithm's bandwidth\n.Pq algbw\n"
    "is the size divided by the time; that of the bus\n.Pq busbw\n"
    "is 2(n-1)/n of it for n ranks, which can be compared with what the "
    "network can\ndo, whatever n is.\n"
    "One rank alone has a busbw of 0.\n.Pp\n"
    "Between ranks of one pod data goes through shared memory;\n"
    ".Ev DDP_TRANSPORT Ns =tcp\nlets it all go over TCP.\n";

static const char man_tail[] =
    "Other options of all_reduce_perf are taken with the one value that is "
    "what happens\nhere, and refused with others.\n"
    ".Sh OUTPUT\n"
    "With\n.Fl Fl json\n"
    "an object of\n.Ql ranks ,\n.Ql min_bytes ,\n.Ql max_bytes ,\n"
    ".Ql iters ,\n.Ql warmup ,\n.Ql check ,\n"
    ".Ql results ,\n.Ql wrong\n.Pq null where nothing was compared ,\n"
    ".Ql avg_busbw ,\n.Ql min_busbw\n.Pq null where none was asked for\nand\n"
    ".Ql ok .\n"
    "A result has\n.Ql bytes ,\n.Ql count ,\n.Ql type\nand\n.Ql op ,\nand in\n"
    ".Ql out_of_place\nand\n.Ql in_place\neach\n"
    ".Ql time_us ,\n.Ql algbw ,\n.Ql busbw\n.Pq GB/s\nand\n.Ql wrong .\n"
    ".Sh ENVIRONMENT\n"
    "The ranks find each other as all programs with libddp do: see\n"
    ".Xr ddp 3 .\n"
    ".Sh EXIT STATUS\nThat of all ranks alike.\n.Bl -tag -width Ds\n"
    ".It 0\nAll is right, and fast enough.\n"
    ".It 1\nAn element is wrong, or the bandwidth is below\n"
    ".Fl Fl min-busbw .\n"
    ".It 64\nA bad option or environment.\n"
    ".It 78\nThe ranks do not agree: world size, options.\n"
    ".It 202\nMemory, the network or another rank failed: worth a retry.\n.El\n"
    ".Sh EXAMPLES\n"
    "Four ranks on this machine, from 8 bytes to 128 MiB:\n.Pp\n"
    ".Dl agent --nproc 4 -- agent-allreduce -b 8 -e 128M -f 2\n.Pp\n"
    "The second of two pods, as a check before a training:\n"
    ".Bd -literal -offset indent\n"
    "agent --nnodes 2 --node-rank 1 --master-addr train-0.train \\e\n"
    "      --nproc 4 --max-restarts 0 -- agent-allreduce --min-busbw 1\n"
    ".Ed\n.Pp\n"
    "JSON without the prefix of the rank:\n.Pp\n"
    ".Dl agent --log-prefix none --nproc 4 -- agent-allreduce --json\n"
    ".Sh SEE ALSO\n.Xr agent 1 , Xr ddp 3\n";

static const struct cli cli = {
    .program = "agent-allreduce", .rows = rows,
    .n_rows = sizeof rows / sizeof rows[0], .word = take_word,
    .help_head = "usage: agent [options] -- agent-allreduce [options]\n\n"
        "Time an all-reduce between the ranks of a job, as nccl-tests do, and "
        "compare\neach element.\n\n",
    .help_tail = "\nExit codes: 0; 1 a wrong element, or below --min-busbw; "
        "64 usage; 78 ranks differ;\n202 memory, network or another rank.\n",
    .man_head = man_head, .man_tail = man_tail};

int opts_read(struct opts *ret, int argc, char **argv, struct err *e)
{
    int rc;

    memset(ret, 0, sizeof *ret);
    rc = cli_read(&cli, ret, argc, argv, &ret->view, e);
    if (!rc && ret->view == CLI_RUN && ret->max_bytes < ret->min_bytes)
        rc = err_set(e, ERR_USAGE, "--minbytes is larger than --maxbytes (32M "
                     "where not given)");
    return rc;
}

void opts_write(FILE *out, enum cli_view view)
{
    cli_write(&cli, out, view);
}

uint64_t opts_next(const struct opts *o, uint64_t bytes)
{
    uint64_t next = o->factor > 1 ? bytes * o->factor : bytes + o->step_bytes;

    return next <= o->max_bytes ? next : 0;
}
