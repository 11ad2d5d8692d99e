/* wire: see wire.h. One walk over the fields serves both directions, so that
 * what is written and what is read cannot drift apart. */
#include "rendezvous/wire.h"

#include "rendezvous/wire_walk.h"

#include <stddef.h>
#include <string.h>

static void walk_failure(struct walk *w, struct failure *f)
{
    uint8_t kind = (uint8_t)f->kind, code = (uint8_t)f->code,
            signo = (uint8_t)f->signo,
            flags = (uint8_t)(f->from_file | (unsigned)f->role << 1 |
                              (unsigned)f->hung << 3);

    walk_u8(w, &kind);
    walk_u8(w, &code);
    walk_u8(w, &signo);
    if (!w->why && kind > FAILURE_PREPARE)
        w->why = "no such kind of failure";
    if (!w->writes && !w->why) {
        f->kind = (enum failure_kind)kind;
        f->code = code;
        f->signo = signo;
    }
    walk_u32(w, &f->node_rank);
    walk_u32(w, &f->rank);
    walk_u32(w, &f->local_rank);
    walk_u32(w, &f->pid);
    walk_u32(w, &f->round);
    walk_u64(w, &f->ran_ms);
    walk_string(w, f->host, sizeof f->host);
    walk_string(w, f->text, sizeof f->text);
    walk_string(w, f->tail, sizeof f->tail);
    walk_u8(w, &flags);
    if (!w->why && ((flags >> 1 & 3) > PROC_SCHEDULER || flags >> 4))
        w->why = "no such role of a process";
    if (!w->writes && !w->why) {
        f->from_file = flags & 1;
        f->role = (enum proc_role)(flags >> 1 & 3);
        f->hung = flags >> 3 & 1;
    }
}

/* Ages go up, so that what is read is what past_add() makes. */
static void walk_past(struct walk *w, struct wire_msg *m)
{
    struct past *p = &m->past;
    uint64_t n_runs = p->n_runs, n_lost = p->n_lost;

    walk_u32(w, &m->n_restarts);
    walk_u32(w, &m->in_a_row);
    walk_u32(w, &p->zero_losses);
    walk_u64(w, &p->zero_age_ms);
    walk_uint(w, &n_runs, 2);
    if (!w->why && n_runs > PAST_RUNS_MAX)
        w->why = "a list is too long";
    for (uint64_t i = 0; !w->why && i < n_runs; i++) {
        walk_u32(w, &p->runs[i].age_ms);
        walk_u16(w, &p->runs[i].n);
        if (!w->out && !w->why && i > 0 &&
            p->runs[i].age_ms < p->runs[i - 1].age_ms)
            w->why = "ages are not in order";
    }
    p->n_runs = (uint32_t)n_runs;
    walk_uint(w, &n_lost, 2);
    if (!w->why && n_lost > PAST_LOST_MAX)
        w->why = "a list is too long";
    for (uint64_t i = 0; !w->why && i < n_lost; i++) {
        walk_u32(w, &p->lost[i].rank);
        walk_u32(w, &p->lost[i].age_ms);
    }
    p->n_lost = (uint32_t)n_lost;
}

static void walk_hello(struct walk *w, struct wire_msg *m)
{
    walk_u64(w, &m->incarnation);
    walk_u32(w, &m->node_rank);
    walk_u32(w, &m->nnodes);
    walk_u32(w, &m->nproc);
    if (!w->out && !w->why && m->nproc > WIRE_NPROC_MAX)
        w->why = "nproc is out of bounds";
    walk_u32(w, &m->running);
    walk_u8(w, &m->any_rank);
    walk_u64(w, &m->command_hash);
    walk_u64(w, &m->last_zero);
    walk_u8(w, &m->last_end);
    walk_u8(w, &m->zero_lost);
    walk_u64(w, &m->lost_age_ms);
    walk_past(w, m);
    walk_string(w, m->job_id, sizeof m->job_id);
    walk_string(w, m->host, sizeof m->host);
    walk_u8(w, &m->has_token);
    walk_bytes(w, m->nonce, sizeof m->nonce);
}

static void walk_start(struct walk *w, struct wire_msg *m)
{
    walk_u32(w, &m->rank_base);
    walk_u32(w, &m->world_size);
    walk_u32(w, &m->group_rank);
    walk_u32(w, &m->group_size);
    walk_u32(w, &m->master_port);
    walk_past(w, m);
    walk_string(w, m->hosts, sizeof m->hosts);
}

static void walk_failed(struct walk *w, struct wire_msg *m)
{
    walk_failure(w, &m->failure);
    walk_u32(w, &m->serial);
    walk_u32(w, &m->in_a_row);
    walk_u32(w, &m->same);
}

static void walk_waiting(struct walk *w, struct wire_msg *m)
{
    walk_u64(w, &m->delay_ms);
    walk_u8(w, &m->bound);
    walk_string(w, m->text, sizeof m->text);
}

static void walk_again(struct walk *w, struct wire_msg *m)
{
    walk_u32(w, &m->serial);
    walk_u8(w, &m->go);
    walk_u32(w, &m->n_restarts);
    walk_u64(w, &m->delay_ms);
    walk_string(w, m->text, sizeof m->text);
}

static void walk_end(struct walk *w, struct wire_msg *m)
{
    walk_u8(w, &m->code);
    walk_u32(w, &m->world_size);
    walk_u32(w, &m->n_restarts);
    walk_failure(w, &m->failure);
    walk_string(w, m->text, sizeof m->text);
}

static void walk_addr(struct walk *w, struct wire_addr *a)
{
    walk_bytes(w, a->ip, sizeof a->ip);
    walk_u16(w, &a->port);
}

static void walk_mesh(struct walk *w, struct wire_msg *m)
{
    uint64_t n = m->n_partners;

    walk_u64(w, &m->mesh_nonce);
    walk_u32(w, &m->n_total);
    walk_u32(w, m->kind == WIRE_MESH ? &m->first : &m->n_bad);
    walk_uint(w, &n, 2);
    if (!w->why && n > WIRE_PARTNERS_MAX)
        w->why = "a list is too long";
    for (uint64_t i = 0; !w->why && i < n; i++) {
        walk_u32(w, &m->partners[i].rank);
        walk_addr(w, &m->partners[i].at);
        if (m->kind == WIRE_MESHED)
            walk_u8(w, &m->partners[i].reason);
    }
    m->n_partners = (uint32_t)n;
}

static void walk_payload(struct walk *w, struct wire_msg *m)
{
    switch (m->kind) {
    case WIRE_HELLO:
        walk_hello(w, m);
        break;
    case WIRE_WELCOME:
        walk_u64(w, &m->incarnation);
        walk_u32(w, &m->node_rank);
        walk_u32(w, &m->max_restarts);
        walk_u64(w, &m->restart_period_ms);
        break;
    case WIRE_REFUSE:
        walk_u8(w, &m->code);
        walk_string(w, m->text, sizeof m->text);
        break;
    case WIRE_PROGRESS:
        walk_u8(w, &m->percent);
        if (!w->out && !w->why && m->percent > WIRE_PREPARING)
            w->why = "more than 100 percent";
        break;
    case WIRE_ARRIVED:
        walk_bytes(w, m->digest, sizeof m->digest);
        walk_addr(w, &m->mesh);
        break;
    case WIRE_WAITING:
        walk_waiting(w, m);
        break;
    case WIRE_START:
        walk_start(w, m);
        break;
    case WIRE_FAILED:
        walk_failed(w, m);
        break;
    case WIRE_AGAIN:
        walk_again(w, m);
        break;
    case WIRE_STOP:
        walk_u64(w, &m->delay_ms);
        walk_past(w, m);
        walk_failure(w, &m->failure);
        walk_string(w, m->text, sizeof m->text);
        break;
    case WIRE_END:
        walk_end(w, m);
        break;
    case WIRE_CHALLENGE:
        walk_u64(w, &m->incarnation);
        walk_bytes(w, m->nonce, sizeof m->nonce);
        break;
    case WIRE_PROOF:
        walk_bytes(w, m->proof, sizeof m->proof);
        break;
    case WIRE_MESH:
    case WIRE_MESHED:
        walk_mesh(w, m);
        break;
    case WIRE_DONE:
    case WIRE_BYE:
    case WIRE_PING:
        break;
    }
}

const char *wire_name(unsigned kind)
{
    switch (kind) {
#define X(name, number, direction, meaning)                                    \
    case number:                                                               \
        return #name;
        WIRE_TABLE(X)
#undef X
    default:
        return "?";
    }
}

static void walk_head(struct walk *w, uint32_t *magic, uint8_t *version,
                      uint8_t *kind, uint64_t *len, uint32_t *round)
{
    walk_u32(w, magic);
    walk_u8(w, version);
    walk_u8(w, kind);
    walk_uint(w, len, 2);
    walk_u32(w, round);
}

void wire_begin(struct wire_msg *m, enum wire_kind kind, uint32_t round)
{
    memset(m, 0, offsetof(struct wire_msg, hosts));
    m->hosts[0] = '\0';
    m->kind = kind;
    m->round = round;
}

void wire_copy(struct wire_msg *to, const struct wire_msg *from)
{
    memcpy(to, from, offsetof(struct wire_msg, hosts));
    memcpy(to->hosts, from->hosts,
           strnlen(from->hosts, sizeof from->hosts - 1) + 1);
    memcpy(to->partners, from->partners,
           from->n_partners * sizeof from->partners[0]);
}

size_t wire_encode(const struct wire_msg *m, uint8_t *buf)
{
    struct wire_msg copy;
    struct walk body = {
        .writes = true, .out = buf, .pos = WIRE_HEAD, .end = WIRE_FRAME_MAX};
    struct walk head = {.writes = true, .out = buf, .end = WIRE_HEAD};
    uint32_t magic = WIRE_MAGIC;
    uint8_t version = WIRE_VERSION, kind = (uint8_t)m->kind;
    uint64_t len;

    wire_copy(&copy, m); /* Strings may have to be made valid. */
    walk_payload(&body, &copy);
    len = body.pos - WIRE_HEAD;
    walk_head(&head, &magic, &version, &kind, &len, &copy.round);
    return body.pos;
}

static int refuse(const char **ret_why, const char *why)
{
    *ret_why = why;
    return -1;
}

static int decode(const uint8_t *buf, size_t len, bool guest,
                  struct wire_msg *ret, const char **ret_why,
                  unsigned *ret_version)
{
    struct walk w = {.in = buf, .end = WIRE_HEAD};
    uint32_t magic = 0, round = 0;
    uint8_t version = 0, kind = 0;
    uint64_t body = 0;
    static const uint8_t start[4] = {'A', 'G', 'N', 'T'};

    *ret_version = 0;
    /* A stranger's first bytes are enough to know him. */
    if (len > 0 && memcmp(buf, start, len < 4 ? len : 4) != 0)
        return refuse(ret_why, "no frame of agent");
    if (len < WIRE_HEAD)
        return 0;
    walk_head(&w, &magic, &version, &kind, &body, &round);
    *ret_version = version;
    /* REFUSE is the same in all versions, so that the reason gets through. */
    if (version != WIRE_VERSION && kind != WIRE_REFUSE)
        return refuse(ret_why, "another protocol version");
    if (body > WIRE_FRAME_MAX - WIRE_HEAD)
        return refuse(ret_why, "a frame is too long");
    if (wire_name(kind)[0] == '?')
        return refuse(ret_why, "no such message");
    if (guest && kind != WIRE_HELLO && kind != WIRE_PROOF)
        return refuse(ret_why, "no HELLO first");
    if (guest && body > WIRE_GUEST_MAX - WIRE_HEAD)
        return refuse(ret_why, "a frame is too long for a newcomer");
    if (len < WIRE_HEAD + body)
        return 0;
    wire_begin(ret, (enum wire_kind)kind, round);
    w.end = WIRE_HEAD + (size_t)body;
    walk_payload(&w, ret);
    if (!w.why && w.pos != w.end)
        w.why = "a frame has bytes left over";
    if (w.why)
        return refuse(ret_why, w.why);
    return (int)w.end;
}

int wire_decode(const uint8_t *buf, size_t len, struct wire_msg *ret,
                const char **ret_why, unsigned *ret_version)
{
    return decode(buf, len, false, ret, ret_why, ret_version);
}

int wire_decode_guest(const uint8_t *buf, size_t len, struct wire_msg *ret,
                      const char **ret_why, unsigned *ret_version)
{
    return decode(buf, len, true, ret, ret_why, ret_version);
}
