/* contract_tf: TF_CONFIG: the addresses of all workers, and which one this
 * is. A worker listens on MASTER_PORT and its rank more, so that pods on one
 * host need not know of each other. */
#include "agent/contract_parts.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

#define PORT_MAX 65535u

/* A name of DNS or an address as a JSON string has it; false for others. */
static bool is_plain(const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)s[i] <= ' ' || s[i] == '"' || s[i] == '\\')
            return false;
    return len > 0;
}

static void add_host(struct text *t, const char *host, size_t len,
                     uint32_t port)
{
    const char *comma = t->at[t->len - 1] == '[' ? "" : ", ";

    if (memchr(host, ':', len))
        text_add(t, "%s\"[%.*s]:%u\"", comma, (int)len, host, port);
    else
        text_add(t, "%s\"%.*s:%u\"", comma, (int)len, host, port);
}

/* The workers of all pods, in the order of their ranks; how many these are. */
static uint32_t add_workers(struct text *t, const struct contract_in *in)
{
    uint32_t rank = 0;
    const char *s = in->cluster ? in->cluster : "";

    while (*s && !t->cut) {
        size_t len = strcspn(s, ","), host_len = strcspn(s, ",*");
        const char *host = s;
        uint32_t n = 0;

        if (host_len < len) /* Others are for --offline. */
            n = (uint32_t)strtoul(s + host_len + 1, NULL, 10);
        if (n > 0 && rank == 0) {
            host = in->master_addr; /* As all pods call node rank 0. */
            host_len = strlen(host);
        }
        if (n > 0 && !is_plain(host, host_len))
            return 0;
        for (; n > 0 && rank < in->world_size && !t->cut; n--, rank++)
            add_host(t, host, host_len, in->master_port + rank);
        if (n > 0)
            return 0;
        s += len + (s[len] == ',');
    }
    return rank;
}

void contract_add_tf_config(struct env *v, const struct contract_in *in)
{
    struct text t;
    uint32_t n;

    if ((uint64_t)in->master_port + in->world_size - 1 > PORT_MAX) {
        v->fault = "TF_CONFIG: each worker has the port MASTER_PORT and its "
                   "rank more, and the last ones would be above 65535; give a "
                   "lower --master-port";
        return;
    }
    text_init(&t, v->buf + v->len, v->cap - v->len);
    text_add(&t, "TF_CONFIG={\"cluster\": {\"worker\": [");
    n = add_workers(&t, in);
    text_add(&t, "]}, \"task\": {\"type\": \"worker\", \"index\": %u}}",
             in->rank_base + in->local_rank);
    if (t.cut || t.len >= CONTRACT_STRING_MAX)
        v->fault = "TF_CONFIG: the list of all workers is longer than the "
                   "128 KiB that the kernel takes in one variable; leave "
                   "tensorflow out of --contract";
    else if (n != in->world_size)
        v->fault = "TF_CONFIG: node rank 0 has not told where all workers "
                   "are; it needs --contract tensorflow, too, and the pods "
                   "must fit in one message (more than a hundred may not)";
    else
        env_take(v, t.len);
}
