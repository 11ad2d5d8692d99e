/* allreduce: an all-reduce over all pods: a small job of its own, run by
 * another agent of this pod before the real one, whose workers are
 * agent-allreduce. It meets as the job will meet, at the barrier's port, or at
 * the next one where an agent holds that already. */
#include "preflight/ask.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/text.h"

#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORD(s) (char *)(uintptr_t)(s)
#define ENTRIES_MAX 65536
#define LEAVE_MS 60000 /* Of the check's own deadline, for the work itself. */

struct words {
    char *at[64];
    unsigned n;
    char bytes[6 * 64 + 2 * PATH_MAX + 1024];
    size_t len;
};

static void add(struct words *w, const char *word)
{
    if (w->n < sizeof w->at / sizeof w->at[0] - 1)
        w->at[w->n++] = WORD(word);
}

static void add_option(struct words *w, const char *name, const char *value)
{
    add(w, name);
    add(w, value);
}

static void add_number(struct words *w, const char *name, uint64_t v,
                       const char *unit)
{
    char *to = w->bytes + w->len;
    int n = snprintf(to, sizeof w->bytes - w->len, "%" PRIu64 "%s", v, unit);

    w->len += (size_t)n + 1;
    add_option(w, name, to);
}

/* The same on all pods; behind the last port there is none. */
static unsigned own_port(const struct preflight_job *job)
{
    if (!job->in_run)
        return job->barrier_port;
    return job->barrier_port < 65535 ? job->barrier_port + 1
                                     : job->barrier_port - 1;
}

static void list_words(const struct preflight_job *job, const char *tool,
                       struct words *w)
{
    uint64_t wait = preflight_row(PREFLIGHT_ALLREDUCE)->limit_ms - LEAVE_MS;

    if (job->barrier_timeout_ms < wait)
        wait = job->barrier_timeout_ms;
    add(w, "/proc/self/exe");
    add_option(w, "run", "-q"); /* The mesh test's warning names the pair. */
    add_number(w, "--nproc", job->nproc, "");
    add_number(w, "--nnodes", job->nnodes, "");
    if (job->any_rank)
        add_option(w, "--node-rank", "auto");
    else
        add_number(w, "--node-rank", job->node_rank, "");
    add_option(w, "--master-addr", job->master_addr);
    add_number(w, "--barrier-port", own_port(job), "");
    add_number(w, "--barrier-timeout", wait, "ms");
    if (job->rejoin_timeout_ms)
        add_number(w, "--rejoin-timeout", job->rejoin_timeout_ms, "ms");
    add_option(w, "--job-id", job->job_id);
    if (job->token_file)
        add_option(w, "--token-file", job->token_file);
    add_option(w, "--preflight", "off");
    add_option(w, "--max-restarts", "0");
    add_option(w, "--log-prefix", "none");
    add_option(w, "--termination-log", "/dev/null");
    add_option(w, "--", tool);
    add(w, "--json");
    add_option(w, "-b", "1M");
    add_option(w, "-e", "64M");
    add_option(w, "-f", "8");
}

/* The options are words; what AGENT_* says besides is for the real job. */
static char **plain_environment(const struct preflight_job *job)
{
    size_t n = 0, k = 0;
    char **envp;

    while (job->envp[n] && n < ENTRIES_MAX)
        n++;
    envp = calloc(n + 1, sizeof *envp);
    for (size_t i = 0; envp && i < n; i++)
        if (strncmp(job->envp[i], "AGENT_", 6) != 0 ||
            strncmp(job->envp[i], "AGENT_TOKEN=", 12) == 0)
            envp[k++] = job->envp[i];
    return envp;
}

static void say(const struct preflight_sink *s, enum preflight_level level,
                const char *what, const char *fix)
{
    struct preflight_finding f = finding_new(level);

    FINDING_SET(f.what, "%s", what);
    FINDING_SET(f.why, "the job's own collectives go the same way: they would "
                "hang, fail, or be as slow");
    FINDING_SET(f.fix, "%s", fix);
    finding_add(s, &f);
}

/* Where agent's own table tells of another thing, or network is no fix. */
static const struct {
    int code;
    const char *meaning, *fix; /* NULL: as for all others. */
} told[] = {
    {1, "a result is wrong", NULL},
    {ERR_AUTH, NULL, "give all pods the same --job-id and --token-file (or "
     "AGENT_TOKEN)"},
    {ERR_MISMATCH, NULL, "give all pods the same --nnodes, each its own "
     "--node-rank, and one version of agent"},
    {ERR_NOEXEC, "agent-allreduce cannot be run", "copy it into the image "
     "anew, of this machine's kind, with what it needs (ldd shows it)"},
    {ERR_NOTFOUND, "agent-allreduce lacks its loader or a library", "copy "
     "what it needs into the image (ldd shows it)"},
    {ERR_BARRIER, NULL, "look at the other pods: all of them need --preflight "
     "with allreduce; then at the network between them"},
    {ERR_PEER, NULL, "look at the pod that is named: why it ended, and its "
     "node"},
    {ERR_RESOURCE, "a port is taken, or memory, the network or another rank "
     "failed", NULL},
};

static void say_failed(const struct preflight_sink *s, int code)
{
    const struct err_row *row = err_row(code);
    const char *meaning = row ? row->meaning : "a rank failed";
    const char *fix = "look at the network between the pods (MTU, firewall, a "
                      "slow or failing link), and at the node that is named";
    char what[256];

    for (unsigned i = 0; i < sizeof told / sizeof told[0]; i++) {
        if (told[i].code != code)
            continue;
        meaning = told[i].meaning ? told[i].meaning : meaning;
        fix = told[i].fix ? told[i].fix : fix;
    }
    FINDING_SET(what, "an all-reduce over %u pod%s failed: %s (%d); its lines "
                "are on stderr", s->job->nnodes, text_plural(s->job->nnodes),
                code < 0 ? strerror(-code) : meaning, code);
    say(s, row && !row->retry ? PREFLIGHT_FATAL : PREFLIGHT_RETRY, what, fix);
}

/* Pod 0 has the numbers of all. */
static void judge(const struct preflight_sink *s, const char *answer)
{
    json_t *all = json_loads(answer, JSON_REJECT_DUPLICATES, NULL);
    double busbw = json_number_value(json_object_get(all, "avg_busbw"));
    double least = (double)s->job->busbw / 1000;
    unsigned ranks = s->job->nnodes * s->job->nproc;
    char what[256];

    if (!json_is_object(all)) {
        finding_pass(s, "an all-reduce over %u rank%s was right; node rank "
                     "0 has the numbers", ranks, text_plural(ranks));
    } else if (busbw < least) {
        FINDING_SET(what, "an all-reduce over %u rank%s reaches %.3f GB/s of "
                    "bus bandwidth, and %.3f are asked for", ranks,
                    text_plural(ranks), busbw, least);
        say(s, PREFLIGHT_RETRY, what, "look for the slow link: agent-allreduce "
            "in pairs of pods; the interface that is taken (iface), MTU, other "
            "jobs on the node; or lower allreduce=GBS");
    } else {
        finding_pass(s, "an all-reduce over %u rank%s was right, with %.3f "
                     "GB/s of bus bandwidth through host memory", ranks,
                     text_plural(ranks), busbw);
    }
    json_decref(all);
}

void check_allreduce(const struct preflight_sink *s)
{
    autofree char *answer = malloc(ASK_MAX);
    autofree char **envp = plain_environment(s->job);
    struct words w = {.n = 0};
    char tool[PATH_MAX];
    int code;

    if (!answer || !envp || !ask_find(s, tool, sizeof tool))
        return;
    list_words(s->job, tool, &w);
    finding_step(s, "waiting for the other pods' all-reduce");
    code = ask_run(w.at, envp, answer, ASK_MAX);
    if (code != 0)
        say_failed(s, code);
    else
        judge(s, answer);
}
