/* mesh: see mesh.h. */
#include "rendezvous/mesh.h"

#include "rendezvous/barrier_round.h"

#include <string.h>

#define NOBODY UINT32_MAX

/* Addresses of one class can be reached from each other's machine, or should
 * be. A pod that reaches pod 0 by loopback has no other address to offer. */
enum address_class { V4, V4_LOOPBACK, V6, V6_LOOPBACK, V6_LINK };

static enum address_class class_of(const struct wire_addr *a)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    static const uint8_t loopback[16] = {[15] = 1};

    if (memcmp(a->ip, mapped, sizeof mapped) == 0)
        return a->ip[12] == 127 ? V4_LOOPBACK : V4;
    if (memcmp(a->ip, loopback, sizeof loopback) == 0)
        return V6_LOOPBACK;
    return a->ip[0] == 0xfe && (a->ip[1] & 0xc0) == 0x80 ? V6_LINK : V6;
}

/* The pod that is `distance` places further on in the ring. */
static uint32_t further(const struct barrier *b, uint32_t r, uint32_t distance)
{
    uint32_t place = b->peers[r].mesh.place + distance;

    return b->peers[place % b->mesh.n_pods].mesh.at_place;
}

static bool is_new(const struct bar_peer *p)
{
    return p->mesh.tested != p->hello.incarnation;
}

/* In the ring a pod may get another neighbour, though both are old. */
static bool is_tested(const struct barrier *b, const struct bar_peer *x,
                      const struct bar_peer *y)
{
    if (is_new(x) || is_new(y))
        return false;
    return b->cfg.mesh_reach > MESH_RING ||
           x->mesh.tested_next == y->hello.incarnation ||
           y->mesh.tested_next == x->hello.incarnation;
}

/* Whether `from` is to connect to `to`. */
static bool is_pair(const struct barrier *b, uint32_t from, uint32_t to)
{
    const struct bar_peer *x = &b->peers[from], *y = &b->peers[to];

    if (x->mesh.at.port == 0 || y->mesh.at.port == 0 || is_tested(b, x, y))
        return false;
    return from == 0 || to == 0 ||
           class_of(&x->mesh.at) == class_of(&y->mesh.at);
}

static uint32_t n_candidates(const struct barrier *b)
{
    uint32_t half = b->mesh.n_pods / 2;

    return 2 * (b->cfg.mesh_reach < half ? b->cfg.mesh_reach : half);
}

/* The k-th pod that is near enough to be tested: the next one, the one before,
 * the next but one, ... NOBODY where it is no pair to test, or was counted
 * from the other side. */
static uint32_t candidate(const struct barrier *b, uint32_t r, uint32_t k)
{
    uint32_t n = b->mesh.n_pods, distance = k / 2 + 1, to;

    if (k % 2 && 2 * distance == n)
        return NOBODY;
    to = further(b, r, k % 2 ? n - distance : distance);
    return is_pair(b, r, to) ? to : NOBODY;
}

static uint32_t count_partners(const struct barrier *b, uint32_t r)
{
    uint32_t n = 0, end = n_candidates(b);

    for (uint32_t k = 0; k < end; k++)
        n += candidate(b, r, k) != NOBODY;
    return n;
}

/* Pod 0 has no address of its own: it is the one that this pod has reached
 * it by. */
static struct wire_addr address_for(const struct barrier *b, uint32_t from,
                                    uint32_t to)
{
    struct wire_addr a = b->peers[to].mesh.at;

    if (to == 0)
        memcpy(a.ip, b->conns[b->peers[from].conn].here.ip, sizeof a.ip);
    return a;
}

/* Returns how many partners it has; nothing is sent to one without any. */
static uint32_t ask(const struct barrier *b, uint32_t r)
{
    struct wire_msg m = {.kind = WIRE_MESH, .round = b->round};
    uint32_t end = n_candidates(b);

    m.mesh_nonce = b->mesh.nonce;
    m.n_total = count_partners(b, r);
    if (m.n_total == 0 || b->peers[r].conn == BARRIER_NO_CONN)
        return m.n_total;
    for (uint32_t k = 0; k < end; k++) {
        uint32_t to = candidate(b, r, k);

        if (to == NOBODY)
            continue;
        if (m.n_partners == WIRE_PARTNERS_MAX) {
            bar_send(b, &b->peers[r], &m);
            m.first += m.n_partners;
            m.n_partners = 0;
        }
        m.partners[m.n_partners].rank = to;
        m.partners[m.n_partners].at = address_for(b, r, to);
        m.n_partners++;
    }
    bar_send(b, &b->peers[r], &m);
    return m.n_total;
}

void mesh_here(struct barrier *b, uint32_t conn, const struct wire_addr *here)
{
    b->conns[conn].here = *here;
}

void mesh_arrived(struct barrier *b, uint32_t rank, const struct wire_msg *m)
{
    struct bar_peer *p = &b->peers[rank];

    if (p->state == PEER_STAGING || p->state == PEER_STOPPING) {
        p->mesh.at = m->mesh;
        b->mesh.runs = false;
    } else if (b->mesh.runs && p->mesh.state == MESH_ASKED) {
        (void)ask(b, rank);
    }
}

void mesh_answered(struct barrier *b, uint64_t now_ms, uint32_t rank,
                   const struct wire_msg *m)
{
    struct bar_peer *p = &b->peers[rank];
    struct mesh *mesh = &b->mesh;

    if (!mesh->runs || m->mesh_nonce != mesh->nonce ||
        p->mesh.state != MESH_ASKED)
        return;
    p->mesh.state = MESH_ANSWERED;
    p->mesh.hides = m->n_bad > m->n_partners;
    mesh->n_answered++;
    mesh->n_bad += m->n_bad < MESH_PARTNERS_MAX ? m->n_bad
                                                : MESH_PARTNERS_MAX;
    for (uint32_t i = 0; i < m->n_partners && mesh->n_kept < MESH_BAD_MAX;
         i++) {
        if (m->partners[i].rank >= b->cfg.nnodes)
            continue;
        mesh->bad[mesh->n_kept].from = rank;
        mesh->bad[mesh->n_kept++].to = m->partners[i];
    }
    bar_try_start(b, now_ms);
}

/* All that have arrived, in the order of their ranks. */
static void form_ring(struct barrier *b)
{
    uint32_t n = 0;

    for (uint32_t r = 0; r < b->cfg.nnodes; r++)
        if (b->peers[r].state == PEER_ARRIVED) {
            b->peers[n].mesh.at_place = r;
            b->peers[r].mesh.place = n++;
        }
    b->mesh.n_pods = n;
}

/* Pod 0 itself last: it works at once, and the others should not wait. */
static void begin(struct barrier *b, uint64_t now_ms)
{
    struct mesh *mesh = &b->mesh;

    memset(mesh, 0, sizeof *mesh);
    mesh->begin_ms = now_ms;
    mesh->nonce = bar_random(b);
    mesh->runs = true;
    form_ring(b);
    for (uint32_t i = mesh->n_pods; i-- > 0;) {
        uint32_t r = b->peers[i].mesh.at_place;
        bool asked = ask(b, r) > 0;

        b->peers[r].mesh.state = asked ? MESH_ASKED : MESH_NOT_ASKED;
        b->peers[r].mesh.hides = false;
        mesh->n_asked += asked;
    }
}

static bool is_any_down(const struct barrier *b)
{
    for (uint32_t i = 0; i < b->mesh.n_pods; i++)
        if (b->peers[b->peers[i].mesh.at_place].down_ms)
            return true;
    return false;
}

/* Nothing of it is tested again. */
static void end(struct barrier *b)
{
    b->mesh.runs = false;
    for (uint32_t i = 0; i < b->mesh.n_pods; i++) {
        uint32_t r = b->peers[i].mesh.at_place;
        struct bar_peer *p = &b->peers[r], *next = &b->peers[further(b, r, 1)];

        p->mesh.tested = p->hello.incarnation;
        p->mesh.tested_next = next->hello.incarnation;
    }
}

bool mesh_is_over(struct barrier *b, uint64_t now_ms)
{
    struct mesh *m = &b->mesh;

    if (b->cfg.mesh_reach == 0 || b->counts[PEER_ARRIVED] < 2)
        return true;
    if (m->runs && m->n_pods != b->counts[PEER_ARRIVED])
        m->runs = false; /* One has left, and the others will do. */
    if (!m->runs)
        begin(b, now_ms);
    if (m->n_answered < m->n_asked && now_ms - m->begin_ms < MESH_LIMIT_MS) {
        bar_wake(b, m->begin_ms + MESH_LIMIT_MS);
        return false;
    }
    /* Perhaps that is why: wait until it is back, or lost. */
    if (m->n_bad > 0 && is_any_down(b))
        return false;
    end(b);
    if (m->n_bad == 0 && m->n_answered == m->n_asked) {
        if (m->n_asked > 0)
            bar_say(b, LOG_DEBUG, "%u pods reach each other", m->n_asked);
        return true;
    }
    if (b->cfg.mesh_strict) {
        mesh_give_up(b, now_ms);
        return false;
    }
    mesh_warn(b);
    return true;
}
