/* contract: see contract.h. */
#include "agent/contract.h"

#include "agent/offline.h"
#include "agent/options.h"
#include "base/text.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SLOTS 16384u             /* Of the table of names; a power of two. */
#define NAMES_MAX (SLOTS / 4 * 3) /* A fuller table is slow. */

/* The strings and addresses that are being written, and a table of the names
 * in envp: 1 + index, by hash. An environment of thousands of entries
 * (service links) is built for each worker, so each name is looked up once. */
struct env {
    char *buf;
    size_t cap, len;
    const char **envp;
    size_t max, n;
    bool full;
    unsigned n_names;
    uint32_t slots[SLOTS];
};

/* Whether no entry has the name of `s`, whose first `len` bytes are the name
 * and '='. The next entry will be `s` then. Names beyond NAMES_MAX are not
 * noted: doubles among these stay, and getenv() finds the first. */
static bool note_name(struct env *v, const char *s, size_t len)
{
    uint64_t h = 14695981039346656037u; /* FNV-1a */
    uint32_t at;

    for (size_t i = 0; i < len; i++)
        h = (h ^ (unsigned char)s[i]) * 1099511628211u;
    for (at = (uint32_t)(h >> 32) % SLOTS; v->slots[at];
         at = (at + 1) % SLOTS)
        if (strncmp(v->envp[v->slots[at] - 1], s, len) == 0)
            return false;
    if (v->n_names < NAMES_MAX) {
        v->slots[at] = (uint32_t)v->n + 1;
        v->n_names++;
    }
    return true;
}

/* Add an entry, unless there is one with its name. Nothing more is added, or
 * noted, once the room is used up. */
static bool add_entry(struct env *v, const char *s, size_t name_len)
{
    if (v->n + 1 >= v->max) /* One for the NULL. */
        v->full = true;
    if (v->full || !note_name(v, s, name_len + 1))
        return false;
    v->envp[v->n++] = s;
    return true;
}

__attribute__((format(printf, 2, 3)))
static void add(struct env *v, const char *fmt, ...)
{
    size_t room = v->cap - v->len;
    char *at = v->buf + v->len;
    int n;
    va_list ap;

    va_start(ap, fmt);
    n = vsnprintf(at, room, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= room)
        v->full = true;
    else if (add_entry(v, at, strcspn(at, "=")))
        v->len += (size_t)n + 1;
}

static const char *dataset_dir(const struct contract_in *in)
{
    return in->n_datasets > 0 ? in->datasets[0].dir : "";
}

/* A data set's name as part of a variable's name. */
static char fold(char c)
{
    if (c >= 'a' && c <= 'z')
        return (char)(c - 'a' + 'A');
    return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ? c : '_';
}

static void add_datasets(struct env *v, const struct contract_in *in)
{
    char name[NAME_MAX + 1]; /* It is one path component. */

    if (in->n_datasets > 0)
        add(v, "AGENT_DATASET_DIR=%s", dataset_dir(in));
    for (unsigned i = 0; in->n_datasets > 1 && i < in->n_datasets; i++) {
        (void)text_copy(name, sizeof name, in->datasets[i].name);
        for (char *s = name; *s; s++)
            *s = fold(*s);
        /* "a-b" and "a_b" become one name; the first data set keeps it. */
        add(v, "AGENT_DATASET_DIR_%s=%s", name, in->datasets[i].dir);
    }
}

static void add_torch(struct env *v, const struct contract_in *in)
{
    uint32_t rank = in->rank_base + in->local_rank;

    add(v, "RANK=%u", rank);
    add(v, "LOCAL_RANK=%u", in->local_rank);
    add(v, "WORLD_SIZE=%u", in->world_size);
    add(v, "LOCAL_WORLD_SIZE=%u", in->nproc);
    add(v, "GROUP_RANK=%u", in->node_rank);
    add(v, "GROUP_WORLD_SIZE=%u", in->nnodes);
    add(v, "ROLE_NAME=%s", in->role);
    add(v, "ROLE_RANK=%u", rank);
    add(v, "ROLE_WORLD_SIZE=%u", in->world_size);
    add(v, "MASTER_ADDR=%s", in->master_addr);
    add(v, "MASTER_PORT=%u", in->master_port);
    add(v, "TORCHELASTIC_RESTART_COUNT=%u", in->round);
    add(v, "TORCHELASTIC_MAX_RESTARTS=%u", in->max_restarts);
    add(v, "TORCHELASTIC_RUN_ID=%s", in->job_id);
    /* With "True" no worker would host the store, and agent has none. */
    add(v, "TORCHELASTIC_USE_AGENT_STORE=False");
    if (in->error_dir)
        add(v, "TORCHELASTIC_ERROR_FILE=%s/attempt_%u/%u/error.json",
            in->error_dir, in->round, in->local_rank);
    else
        add(v, "TORCHELASTIC_ERROR_FILE=");
}

static void add_own(struct env *v, const struct contract_in *in)
{
    add(v, "AGENT_PROCESS_INDEX=%u", in->rank_base + in->local_rank);
    add(v, "AGENT_PROCESS_NUM=%u", in->world_size);
    if (in->gpu >= 0)
        add(v, "AGENT_GPU=%d", in->gpu);
    if (in->cookie)
        add(v, "AGENT_COOKIE=%s", in->cookie);
    add_datasets(v, in);
}

/* A stray download fails at the proxy, at once, instead of hanging the job. */
static void add_offline(struct env *v, const struct contract_in *in)
{
    static const char *const proxies[] = {"http_proxy", "https_proxy",
                                          "HTTP_PROXY", "HTTPS_PROXY"};

    if (in->dead_port == 0)
        return;
    add(v, "HF_HUB_OFFLINE=1");
    add(v, "HF_DATASETS_OFFLINE=1");
    add(v, "TRANSFORMERS_OFFLINE=1");
    add(v, "PIP_NO_INDEX=1");
    for (unsigned i = 0; i < sizeof proxies / sizeof proxies[0]; i++)
        add(v, "%s=http://127.0.0.1:%u", proxies[i], in->dead_port);
    add(v, "no_proxy=%s", in->no_proxy);
    add(v, "NO_PROXY=%s", in->no_proxy);
}

/* What the base may set otherwise; present but empty is set. */
static void add_defaults(struct env *v, const struct contract_in *in)
{
    if (in->omp_threads > 0)
        add(v, "OMP_NUM_THREADS=%u", in->omp_threads);
    add(v, "PYTHONUNBUFFERED=1");
    add(v, "TORCH_NCCL_ASYNC_ERROR_HANDLING=1");
    if (in->gloo_ifname)
        add(v, "GLOO_SOCKET_IFNAME=%s", in->gloo_ifname);
}

/* Sockets that systemd handed to agent: the workers have none of these
 * descriptors. */
static bool is_of_sockets(const char *s, size_t len)
{
    static const char *const names[] = {"LISTEN_FDS", "LISTEN_PID",
                                        "LISTEN_FDNAMES"};

    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strlen(names[i]) == len && memcmp(s, names[i], len) == 0)
            return true;
    return false;
}

/* Take over what the base has and the contract neither sets nor hides. Of
 * two entries with one name the first stays, as getenv() finds it. */
static void add_base(struct env *v, const struct contract_in *in)
{
    static const char ours[] = "AGENT_";

    for (size_t i = 0; in->base_env[i]; i++) {
        const char *s = in->base_env[i];
        size_t len = strcspn(s, "=");

        if (s[len] == '\0' || len == 0 || is_of_sockets(s, len))
            continue;
        if (strncmp(s, ours, sizeof ours - 1) == 0 &&
            options_is_variable(s, len))
            continue;
        (void)add_entry(v, s, len);
    }
}

int contract_env(const struct contract_in *in, char *buf, size_t cap,
                 const char **envp, size_t max, struct err *e)
{
    struct env v;

    memset(&v, 0, sizeof v);
    v.buf = buf;
    v.cap = cap;
    v.envp = envp;
    v.max = max;
    /* Who comes first has the name. */
    add_torch(&v, in);
    add_own(&v, in);
    add_offline(&v, in);
    add_base(&v, in);
    add_defaults(&v, in);
    if (v.full)
        return err_set(e, ERR_AGENT,
                       "the environment of local rank %u does not fit in %zu "
                       "bytes and %zu entries; this is a fault of agent",
                       in->local_rank, cap, max);
    envp[v.n] = NULL;
    return 0;
}

/* Room for a path that may not be known yet. */
static size_t path_room(const char *s)
{
    size_t len = s ? strlen(s) : 0;

    return len > PATH_MAX ? len : PATH_MAX;
}

void contract_room(const struct contract_in *in, size_t *ret_bytes,
                   size_t *ret_entries)
{
    /* 26 names of at most 32 bytes, numbers of at most 11, fixed words, and
     * a name of an interface. */
    size_t bytes = 2048, entries = 32;

    bytes += strlen(in->role) + strlen(in->master_addr) + strlen(in->job_id);
    bytes += in->cookie ? strlen(in->cookie) : 0;
    bytes += path_room(in->error_dir) + path_room(dataset_dir(in));
    for (unsigned i = 0; i < in->n_datasets; i++)
        bytes += sizeof "AGENT_DATASET_DIR_=" + NAME_MAX +
                 path_room(in->datasets[i].dir);
    entries += in->n_datasets;
    if (in->dead_port) {
        bytes += 512 + (size_t)2 * OFFLINE_LIST_MAX;
        entries += 10;
    }
    for (size_t i = 0; in->base_env[i]; i++)
        entries++;
    *ret_bytes = bytes;
    *ret_entries = entries;
}

/* Add the value of the macro `name`; false where it is none. */
static bool add_macro(struct text *t, const struct contract_in *in,
                      const char *name, size_t len)
{
    const struct {
        const char *name, *text;
        uint32_t number; /* Where `text` is NULL. */
    } macros[] = {
        {"rank", NULL, in->rank_base + in->local_rank},
        {"local_rank", NULL, in->local_rank},
        {"world_size", NULL, in->world_size},
        {"local_world_size", NULL, in->nproc},
        {"node_rank", NULL, in->node_rank},
        {"nnodes", NULL, in->nnodes},
        {"role", in->role, 0},
        {"master_addr", in->master_addr, 0},
        /* An address where --master-addr is one; a name stays a name, since
         * nothing is resolved here. */
        {"master_ip", in->master_addr, 0},
        {"master_port", NULL, in->master_port},
        {"attempt", NULL, in->round},
        {"gpu", in->gpu < 0 ? "" : NULL, (uint32_t)in->gpu},
        {"process_index", NULL, in->rank_base + in->local_rank},
        {"process_num", NULL, in->world_size},
        {"dataset_dir", dataset_dir(in), 0},
    };

    for (unsigned i = 0; i < sizeof macros / sizeof macros[0]; i++) {
        if (strlen(macros[i].name) != len ||
            memcmp(macros[i].name, name, len) != 0)
            continue;
        if (macros[i].text)
            text_add(t, "%s", macros[i].text);
        else
            text_add(t, "%u", macros[i].number);
        return true;
    }
    return false;
}

bool contract_expand(const struct contract_in *in, const char *src, char *out,
                     size_t cap)
{
    struct text t;

    if (cap == 0)
        return false;
    text_init(&t, out, cap);
    while (*src && !t.cut) {
        size_t len = strcspn(src, "{"), name_len;

        text_add(&t, "%.*s", (int)len, src);
        src += len;
        if (*src == '\0')
            break;
        name_len = strspn(src + 1, "abcdefghijklmnopqrstuvwxyz_");
        if (src[1 + name_len] == '}' &&
            add_macro(&t, in, src + 1, name_len)) {
            src += name_len + 2;
        } else {
            text_add(&t, "{");
            src++;
        }
    }
    return !t.cut;
}
