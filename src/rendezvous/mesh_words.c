/* mesh_words: what pod 0 says of pods that do not reach each other. */
#include "rendezvous/mesh.h"

#include "base/text.h"
#include "rendezvous/barrier_round.h"
#include "rendezvous/mesh_talk.h"

#define NOBODY UINT32_MAX

static const struct mesh_bad *find_bad(const struct mesh *m, uint32_t from,
                                       uint32_t to, uint32_t end)
{
    for (uint32_t i = 0; i < end; i++)
        if (m->bad[i].from == from && m->bad[i].to.rank == to)
            return &m->bad[i];
    return NULL;
}

/* "node rank 1 cannot reach node rank 2 at 10.0.0.3:4567: no answer (timed
 * out)", and what is known of the other direction. */
static void add_pair(struct text *t, const struct barrier *b,
                     const struct mesh_bad *x)
{
    const struct mesh_bad *back = find_bad(&b->mesh, x->to.rank, x->from,
                                           b->mesh.n_kept);
    const struct mesh_peer *other = &b->peers[x->to.rank].mesh;

    text_add(t, "node rank %u cannot reach ", x->from);
    mesh_add_partner(t, &x->to);
    if (back && back->to.reason == x->to.reason)
        text_add(t, "; nor the other way round");
    else if (back)
        text_add(t, "; nor the other way round: %s",
                 mesh_reason_text(back->to.reason));
    else if (other->state == MESH_ANSWERED && !other->hides &&
             b->mesh.n_kept < MESH_BAD_MAX)
        text_add(t, "; the other way round works");
}

/* The i-th bad connection that stands for its pair, or is the only one. */
static bool stands_for_pair(const struct mesh *m, uint32_t i)
{
    return !find_bad(m, m->bad[i].to.rank, m->bad[i].from, i);
}

/* The one rank that is in all bad pairs, where there are several. */
static uint32_t in_all(const struct mesh *m)
{
    uint32_t a = m->bad[0].from, c = m->bad[0].to.rank, n = 0;

    for (uint32_t i = 0; i < m->n_kept; i++) {
        uint32_t x = m->bad[i].from, y = m->bad[i].to.rank;

        n += stands_for_pair(m, i);
        a = a == x || a == y ? a : NOBODY;
        c = c == x || c == y ? c : NOBODY;
    }
    return n < 2 || m->n_bad > m->n_kept ? NOBODY : a != NOBODY ? a : c;
}

static bool is_silent(const void *ctx, unsigned i)
{
    const struct bar_peer *p = &((const struct barrier *)ctx)->peers[i];

    return p->state == PEER_ARRIVED && p->mesh.state == MESH_ASKED;
}

static void add_silent(struct text *t, const struct barrier *b)
{
    text_add(t, "the mesh test: no answer within %u s from node rank ",
             MESH_LIMIT_MS / 1000);
    text_add_ranges(t, b->cfg.nnodes, is_silent, b, 120);
}

void mesh_warn(const struct barrier *b)
{
    const struct mesh *m = &b->mesh;
    char line[FAILURE_TEXT_MAX];
    uint32_t said = 0, common;
    struct text t;

    for (uint32_t i = 0; i < m->n_kept; i++) {
        if (!stands_for_pair(m, i) || ++said > MESH_SAY_MAX)
            continue;
        text_init(&t, line, sizeof line);
        add_pair(&t, b, &m->bad[i]);
        bar_say(b, LOG_WARNING, "%s", line);
    }
    if (m->n_answered < m->n_asked) {
        text_init(&t, line, sizeof line);
        add_silent(&t, b);
        bar_say(b, LOG_WARNING, "%s", line);
    }
    text_init(&t, line, sizeof line);
    common = m->n_kept ? in_all(m) : NOBODY;
    if (said > MESH_SAY_MAX || m->n_bad > m->n_kept)
        text_add(&t, "%u connections between pods fail; ", m->n_bad);
    else if (common != NOBODY)
        text_add(&t, "node rank %u is in all of these pairs; ", common);
    bar_say(b, LOG_WARNING, "%sstarting all the same (with --mesh given it is "
            "an error)", line);
}

/* With --mesh given: the job ends, with as many pairs as the text holds. */
void mesh_give_up(struct barrier *b, uint64_t now_ms)
{
    const struct mesh *m = &b->mesh;
    struct failure f = bar_fault(b, ERR_BARRIER, "%s", "");
    uint32_t left = 0, common = m->n_kept ? in_all(m) : NOBODY;
    char pair[FAILURE_TEXT_MAX];
    struct text t, one;

    text_init(&t, f.text, sizeof f.text);
    for (uint32_t i = 0; i < m->n_kept; i++) {
        if (!stands_for_pair(m, i))
            continue;
        text_init(&one, pair, sizeof pair);
        add_pair(&one, b, &m->bad[i]);
        if (left > 0 || t.len + one.len > sizeof f.text - 80)
            left++;
        else
            text_add(&t, "%s%s", t.len ? ". " : "", pair);
    }
    if (t.len == 0)
        add_silent(&t, b);
    if (m->n_bad > m->n_kept)
        text_add(&t, ". %u connections fail in all", m->n_bad);
    else if (left > 0)
        text_add(&t, ". And %u more pair%s", left, text_plural(left));
    if (common != NOBODY)
        text_add(&t, ". Node rank %u is in all of them", common);
    bar_finish(b, now_ms, ERR_BARRIER, &f);
}
