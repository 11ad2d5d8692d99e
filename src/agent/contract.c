/* contract: see contract.h. */
#include "agent/contract_parts.h"

#include "agent/offline.h"
#include "agent/options.h"
#include "base/text.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The slot of the entry that has the name of `s`, whose first `len` bytes are
 * the name and '='; a free one where there is none. */
static uint32_t find_slot(const struct env *v, const char *s, size_t len)
{
    uint64_t h = 14695981039346656037u; /* FNV-1a */
    uint32_t at;

    for (size_t i = 0; i < len; i++)
        h = (h ^ (unsigned char)s[i]) * 1099511628211u;
    at = (uint32_t)(h >> 32) % v->n_slots;
    while (v->slots[at] && strncmp(v->envp[v->slots[at] - 1], s, len) != 0)
        at = (at + 1) % v->n_slots;
    return at;
}

bool env_has(const struct env *v, const char *name)
{
    return v->slots[find_slot(v, name, strlen(name))] > 0;
}

/* A fuller table is slow. */
static size_t names_max(size_t n_slots)
{
    return n_slots / 4 * 3;
}

/* Whether no entry has its name. The next entry will be `s` then. Names beyond
 * names_max() are not noted: doubles among these stay, and getenv() finds the
 * first. */
static bool note_name(struct env *v, const char *s, size_t len)
{
    uint32_t at = find_slot(v, s, len);

    if (v->slots[at])
        return false;
    if (v->n_names < names_max(v->n_slots)) {
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

void env_take(struct env *v, size_t n)
{
    char *at = v->buf + v->len;

    if (n >= v->cap - v->len)
        v->full = true;
    else if (add_entry(v, at, strcspn(at, "=")))
        v->len += n + 1;
}

/* Where the next goes; without room for it nothing is written, but counted. */
static size_t put(struct env *v, size_t at, const char *s, size_t n)
{
    if (at < v->cap && n < v->cap - at)
        memcpy(v->buf + at, s, n);
    return at + n;
}

static size_t put_number(struct env *v, size_t at, unsigned number)
{
    char digits[10], *s = digits + sizeof digits;

    do
        *--s = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    return put(v, at, s, (size_t)(digits + sizeof digits - s));
}

/* vsnprintf() would take a sixth of a pod's start for 30 variables. */
void env_add(struct env *v, const char *fmt, ...)
{
    size_t at = v->len;
    va_list ap;

    va_start(ap, fmt);
    while (*fmt) {
        size_t n = strcspn(fmt, "%");

        at = put(v, at, fmt, n);
        fmt += n;
        if (*fmt != '%')
            break;
        if (fmt[1] == 's') {
            const char *s = va_arg(ap, const char *);

            at = put(v, at, s, strlen(s));
        } else { /* %u */
            at = put_number(v, at, va_arg(ap, unsigned));
        }
        fmt += 2;
    }
    va_end(ap);
    at = put(v, at, "", 1);
    env_take(v, at - 1 - v->len);
}

const char *contract_dataset_dir(const struct contract_in *in)
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

bool contract_same_variable(const char *a, const char *b)
{
    while (*a && fold(*a) == fold(*b)) {
        a++;
        b++;
    }
    return *a == '\0' && *b == '\0';
}

static void add_datasets(struct env *v, const struct contract_in *in)
{
    char name[NAME_MAX + 1]; /* It is one path component. */

    if (in->n_datasets > 0)
        env_add(v, "AGENT_DATASET_DIR=%s", contract_dataset_dir(in));
    for (unsigned i = 0; in->n_datasets > 1 && i < in->n_datasets; i++) {
        (void)text_copy(name, sizeof name, in->datasets[i].name);
        for (char *s = name; *s; s++)
            *s = fold(*s);
        /* "a-b" and "a_b" become one name; the first data set keeps it, which
         * the log says. */
        env_add(v, "AGENT_DATASET_DIR_%s=%s", name, in->datasets[i].dir);
    }
}

static void add_own(struct env *v, const struct contract_in *in)
{
    if (in->cookie)
        env_add(v, "AGENT_COOKIE=%s", in->cookie);
    if (in->heartbeat_fd > 0)
        env_add(v, "AGENT_HEARTBEAT_FD=%u", (unsigned)in->heartbeat_fd);
    add_datasets(v, in);
}

/* A stray download fails at the proxy, at once, instead of hanging the job. */
static void add_offline(struct env *v, const struct contract_in *in)
{
    static const char *const proxies[] = {"http_proxy", "https_proxy",
                                          "HTTP_PROXY", "HTTPS_PROXY"};

    if (in->dead_port == 0)
        return;
    env_add(v, "HF_HUB_OFFLINE=1");
    env_add(v, "HF_DATASETS_OFFLINE=1");
    env_add(v, "TRANSFORMERS_OFFLINE=1");
    env_add(v, "PIP_NO_INDEX=1");
    for (unsigned i = 0; i < sizeof proxies / sizeof proxies[0]; i++)
        env_add(v, "%s=http://127.0.0.1:%u", proxies[i], in->dead_port);
    env_add(v, "no_proxy=%s", in->no_proxy);
    env_add(v, "NO_PROXY=%s", in->no_proxy);
}

/* What the base may set otherwise; present but empty is set. */
static void add_defaults(struct env *v, const struct contract_in *in)
{
    if (in->omp_threads > 0)
        env_add(v, "OMP_NUM_THREADS=%u", in->omp_threads);
    env_add(v, "PYTHONUNBUFFERED=1");
    env_add(v, "TORCH_NCCL_ASYNC_ERROR_HANDLING=1");
    if (in->gloo_ifname)
        env_add(v, "GLOO_SOCKET_IFNAME=%s", in->gloo_ifname);
    if (in->gloo_ifname && in->nccl_ifname) /* = is: no other eth0x. */
        env_add(v, "NCCL_SOCKET_IFNAME==%s", in->gloo_ifname);
    contract_add_unset(v, in);
}

/* Sockets that systemd handed to agent, the heartbeat pipe of an outer one:
 * the workers have none of these descriptors. */
static bool is_of_descriptors(const char *s, size_t len)
{
    static const char *const names[] = {"LISTEN_FDS", "LISTEN_PID",
                                        "LISTEN_FDNAMES",
                                        "AGENT_HEARTBEAT_FD"};

    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strlen(names[i]) == len && memcmp(s, names[i], len) == 0)
            return true;
    return false;
}

/* It would be of another process: the pod's rank as a worker's. */
static bool is_dropped(const struct env *v, const char *s, size_t len)
{
    for (unsigned i = 0; i < v->n_drops; i++)
        if (strncmp(v->drops[i], s, len) == 0 && v->drops[i][len] == '\0')
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

        if (s[len] == '\0' || len == 0 || is_of_descriptors(s, len) ||
            is_dropped(v, s, len))
            continue;
        if (strncmp(s, ours, sizeof ours - 1) == 0 &&
            options_is_variable(s, len))
            continue;
        (void)add_entry(v, s, len);
    }
}

static int write_env(struct env *v, const struct contract_in *in,
                     struct err *e)
{
    /* Who comes first has the name. */
    contract_add_dialects(v, in);
    add_own(v, in);
    add_offline(v, in);
    add_base(v, in);
    add_defaults(v, in);
    if (v->fault)
        return err_set(e, ERR_USAGE, "local rank %u: %s", in->local_rank,
                       v->fault);
    if (v->full)
        return err_set(e, ERR_AGENT,
                       "the environment of local rank %u does not fit in %zu "
                       "bytes and %zu entries; this is a fault of agent",
                       in->local_rank, v->cap, v->max);
    v->envp[v->n] = NULL;
    return 0;
}

/* Apart, as few need so much of the stack: new pages of each start. */
static int __attribute__((noinline))
write_large_env(struct env *v, const struct contract_in *in, struct err *e)
{
    uint32_t slots[CONTRACT_SLOTS_MAX];

    while (v->n_slots < CONTRACT_SLOTS_MAX && names_max(v->n_slots) < v->max)
        v->n_slots *= 2;
    memset(slots, 0, v->n_slots * sizeof slots[0]);
    v->slots = slots;
    return write_env(v, in, e);
}

int contract_env(const struct contract_in *in, char *buf, size_t cap,
                 const char **envp, size_t max, struct err *e)
{
    uint32_t slots[CONTRACT_SLOTS_MIN] = {0};
    struct env v = {.buf = buf, .cap = cap, .envp = envp, .max = max,
                    .n_slots = CONTRACT_SLOTS_MIN, .slots = slots};

    return names_max(CONTRACT_SLOTS_MIN) < max ? write_large_env(&v, in, e)
                                               : write_env(&v, in, e);
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
    size_t bytes = 608, entries = 18; /* Fixed words. */

    contract_room_dialects(in, &bytes, &entries);
    bytes += in->cookie ? strlen(in->cookie) : 0;
    bytes += path_room(in->error_dir) +
             path_room(contract_dataset_dir(in));
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
