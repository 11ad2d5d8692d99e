/* agent-probe: prints as JSON what this machine has: GPUs, NCCL, RDMA. */
#include "probe/probe.h"

#include "base/std_fds.h"
#include "base/stops.h"

#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *name;
    probe_fill *fill;
} parts[] = {{"gpu", probe_gpu}, {"nccl", probe_nccl}, {"rdma", probe_rdma}};
#define N_PARTS (sizeof parts / sizeof parts[0])

static const char usage[] =
    "Usage: agent-probe [--only gpu,nccl,rdma] [--timeout SECONDS]\n"
    "Prints as JSON what this machine has for distributed training.\n"
    "\n"
    "  --only LIST         these parts; all by default\n"
    "  --timeout SECONDS   for each part; 30 by default\n"
    "  --help, --version\n";

static int bad_usage(const char *what, const char *value)
{
    fprintf(stderr, "agent-probe: %s '%s'; see agent-probe --help\n", what,
            value);
    return 64;
}

/* `list` has the part between its commas; each of its words must be one. */
static bool is_in(const char *list, const char *name)
{
    size_t len = strlen(name);

    for (const char *at = list; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, name, len) == 0 && (at[len] == ',' || !at[len]))
            return true;
    }
    return false;
}

static bool is_list(const char *list)
{
    for (const char *at = list;; at++) {
        size_t len = strcspn(at, ",");
        bool known = false;

        for (unsigned i = 0; i < N_PARTS; i++)
            known = known || (strlen(parts[i].name) == len &&
                              strncmp(at, parts[i].name, len) == 0);
        if (!known)
            return false;
        at += len;
        if (!*at)
            return true;
    }
}

static int end_stdout(void)
{
    const char *why = std_fds_end(stdout);

    if (!why)
        return 0;
    fprintf(stderr, "agent-probe: write to stdout: %s\n", why);
    return 202;
}

static int print_all(const char *only, unsigned timeout_ms)
{
    json_t *all = json_object();
    char host[256] = "";
    int r = 0;

    (void)gethostname(host, sizeof host - 1);
    r = json_object_set_new(all, "probe", json_integer(PROBE_FORMAT));
    probe_set_text(all, "host", host);
    for (unsigned i = 0; i < N_PARTS && r == 0; i++)
        if (!only || is_in(only, parts[i].name))
            r = json_object_set_new(all, parts[i].name,
                                    probe_part(parts[i].fill, timeout_ms));
    if (r == 0 && json_dumpf(all, stdout, JSON_INDENT(2)) != 0 &&
        !ferror(stdout))
        r = -1;
    if (r != 0) {
        fprintf(stderr, "agent-probe: no memory or no more processes\n");
        r = 202;
    } else {
        (void)putchar('\n');
        r = end_stdout();
    }
    json_decref(all);
    return r;
}

int main(int argc, char **argv)
{
    static const struct sigaction plain;
    static const struct option longs[] = {
        {"only", required_argument, NULL, 'o'},
        {"timeout", required_argument, NULL, 't'},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'v'},
        {0}};
    static char name[] = "agent-probe"; /* In what getopt says, too. */
    unsigned long timeout_s = PROBE_TIMEOUT_MS / 1000;
    const char *only = NULL;
    char *end;
    int c;

    (void)std_fds_fill();
    stops_end_init();
    (void)sigaction(SIGCHLD, &plain, NULL); /* Ignored, no status would come. */
    if (argc > 0)
        argv[0] = name;
    while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
        switch (c) {
        case 'o':
            if (!is_list(optarg))
                return bad_usage("--only takes gpu, nccl and rdma, not",
                                 optarg);
            only = optarg;
            break;
        case 't':
            timeout_s = strtoul(optarg, &end, 10);
            if (optarg[0] < '0' || optarg[0] > '9' || *end || timeout_s < 1 ||
                timeout_s > 3600)
                return bad_usage("--timeout takes 1 to 3600 seconds, not",
                                 optarg);
            break;
        case 'h':
            (void)fputs(usage, stdout);
            return end_stdout();
        case 'v':
            (void)puts("agent-probe " AGENT_VERSION);
            return end_stdout();
        default:
            return 64; /* getopt has said what is wrong. */
        }
    }
    if (optind < argc)
        return bad_usage("takes no words:", argv[optind]);
    return print_all(only, (unsigned)timeout_s * 1000);
}
