/* barrier_door: see barrier_door.h.
 *
 * With a token: HELLO (the pod's nonce), CHALLENGE (pod 0's), PROOF of the
 * pod, PROOF of pod 0; only then the HELLO is acted on. Without: HELLO. */
#include "rendezvous/barrier_door.h"

#include "base/text.h"
#include "rendezvous/barrier_round.h"

#include <inttypes.h>
#include <string.h>

#define NOBODY UINT32_MAX
#define SAY_MAX 20 /* Refusals told one by one between two heartbeats. */
#define DROP_SAY_MS 60000 /* Of dropped connections, at most this often. */
#define SAME_TOKEN "give all pods the same --token-file or AGENT_TOKEN"

static void drop(struct barrier *b, uint32_t guest, const char *why)
{
    uint32_t conn = b->guests.at[guest].conn;

    bar_say(b, LOG_DEBUG, "closed %s: %s", b->conns[conn].addr, why);
    bar_door_leave(b, conn);
    b->out.close(b->out.ctx, conn, true);
}

static void say_dropped(struct barrier *b, uint64_t now_ms)
{
    if (b->n_dropped == 0 || now_ms < b->drop_say_ms)
        return;
    bar_say(b, LOG_WARNING,
            "too many connections that are no pods: at most %u are kept, %u of "
            "one address; dropped %" PRIu64 ", the oldest first: is something "
            "scanning this port?", b->guests.n_max, b->guests.share,
            b->n_dropped);
    b->n_dropped = 0;
    b->drop_say_ms = now_ms + DROP_SAY_MS;
}

void bar_door_enter(struct barrier *b, uint64_t now_ms, uint32_t conn)
{
    struct bar_conn *c = &b->conns[conn];
    uint32_t surplus;

    if (b->guests.n_max == 0)
        return;
    surplus = bar_guests_surplus(&b->guests, c->addr);
    if (surplus != BAR_NO_GUEST) {
        drop(b, surplus, "too many connections that are no pods");
        b->n_dropped++;
        say_dropped(b, now_ms);
    }
    c->guest = bar_guests_add(&b->guests, now_ms, conn, c->addr);
    bar_wake(b, now_ms + BARRIER_HELLO_MS);
}

bool barrier_make_room(struct barrier *b)
{
    if (b->guests.all.n == 0)
        return false;
    drop(b, b->guests.all.oldest, "no descriptors left");
    b->n_dropped++;
    return true;
}

void bar_door_pass(struct barrier *b, uint32_t conn)
{
    struct bar_conn *c = &b->conns[conn];

    if (c->guest != BAR_NO_GUEST)
        bar_guests_remove(&b->guests, c->guest);
    c->guest = BAR_NO_GUEST;
}

static void end_challenge(struct barrier *b, struct bar_conn *c)
{
    if (c->challenges != NOBODY)
        b->peers[c->challenges].challenger = BARRIER_NO_CONN;
    c->challenges = NOBODY;
}

void bar_door_leave(struct barrier *b, uint32_t conn)
{
    struct bar_conn *c = &b->conns[conn];

    bar_door_pass(b, conn);
    end_challenge(b, c);
    c->rank = NOBODY;
    c->open_ms = 0;
}

/* It stays a guest until it is closed, so that it can still be dropped. */
void bar_refuse(struct barrier *b, uint32_t conn, int code, const char *text)
{
    struct wire_msg m = {.kind = WIRE_REFUSE, .code = (uint8_t)code};

    (void)text_copy(m.text, sizeof m.text, text);
    if (++b->n_refused <= SAY_MAX)
        bar_say(b, LOG_WARNING, "refused %s: %s", b->conns[conn].addr, text);
    b->out.send(b->out.ctx, conn, &m);
    b->out.close(b->out.ctx, conn, false);
    b->conns[conn].open_ms = 0;
    end_challenge(b, &b->conns[conn]);
}

static void refuse_token(struct barrier *b, uint64_t now_ms, uint32_t conn,
                         const struct wire_msg *hello, const char *what)
{
    char buf[WIRE_TEXT_MAX];
    struct text t;

    text_init(&t, buf, sizeof buf);
    if (hello->node_rank == WIRE_ANY_RANK)
        text_add(&t, "a pod");
    else
        text_add(&t, "node rank %u", hello->node_rank);
    text_add(&t, " (%s) %s; " SAME_TOKEN, hello->host, what);
    bar_note_refused(b, now_ms, conn, hello->node_rank, BAR_WRONG_TOKEN);
    bar_refuse(b, conn, ERR_AUTH, buf);
}

static void send_challenge(struct barrier *b, uint32_t conn,
                           const struct wire_msg *hello)
{
    struct bar_guest *g = &b->guests.at[b->conns[conn].guest];
    struct wire_msg m = {.kind = WIRE_CHALLENGE};
    uint8_t frame[WIRE_FRAME_MAX];
    size_t len = wire_encode(hello, frame);

    if (len > sizeof g->hello) /* The edge takes no such frame. */
        return;
    memcpy(g->hello, frame, len);
    g->hello_len = (uint16_t)len;
    m.incarnation = b->cfg.incarnation;
    auth_nonce(&b->cfg.auth, ++b->n_nonces, m.nonce);
    auth_script(g->hello, len, &m, g->script);
    b->out.send(b->out.ctx, conn, &m);
}

/* Not inlined: where there is no token its messages, 18 KB, would be pages of
 * the stack that a start goes down to. */
static void __attribute__((noinline))
check_proof(struct barrier *b, uint64_t now_ms, uint32_t conn,
            const struct wire_msg *m)
{
    struct bar_guest *g = &b->guests.at[b->conns[conn].guest];
    struct wire_msg hello, proof = {.kind = WIRE_PROOF};
    const char *why;
    unsigned version;

    if (wire_decode(g->hello, g->hello_len, &hello, &why, &version) <= 0)
        return;
    if (!auth_check(&b->cfg.auth, AUTH_POD, g->script, m->proof)) {
        refuse_token(b, now_ms, conn, &hello, "has a wrong token");
        return;
    }
    auth_proof(&b->cfg.auth, AUTH_ZERO, g->script, proof.proof);
    b->out.send(b->out.ctx, conn, &proof);
    bar_hello(b, now_ms, conn, &hello);
}

void bar_door_message(struct barrier *b, uint64_t now_ms, uint32_t conn,
                      const struct wire_msg *m)
{
    const struct bar_conn *c = &b->conns[conn];
    bool challenged = c->guest != BAR_NO_GUEST &&
                      b->guests.at[c->guest].hello_len > 0;
    bool trusted = conn == BARRIER_LOCAL;

    if (c->challenges != NOBODY) {
        /* It has said enough; the old one is being asked. */
        barrier_garbage(b, now_ms, conn, "it did not wait", WIRE_VERSION);
    } else if (m->kind == WIRE_PROOF && challenged) {
        check_proof(b, now_ms, conn, m);
    } else if (m->kind != WIRE_HELLO || challenged) {
        barrier_garbage(b, now_ms, conn, "no HELLO first", WIRE_VERSION);
    } else if (trusted || (!m->has_token && !b->cfg.auth.has_token)) {
        bar_hello(b, now_ms, conn, m);
    } else if (!b->cfg.auth.has_token) {
        refuse_token(b, now_ms, conn, m,
                     "has a token, and node rank 0 has none");
    } else if (!m->has_token) {
        refuse_token(b, now_ms, conn, m,
                     "has no token, and node rank 0 has one");
    } else if (c->guest != BAR_NO_GUEST) {
        send_challenge(b, conn, m);
    }
}

static void report(struct barrier *b, uint64_t now_ms)
{
    say_dropped(b, now_ms);
    if (b->n_refused > SAY_MAX)
        bar_say(b, LOG_WARNING, "refused %u more connection%s",
                b->n_refused - SAY_MAX, text_plural(b->n_refused - SAY_MAX));
    b->n_refused = 0;
}

void bar_door_timeout(struct barrier *b, uint64_t now_ms, bool say)
{
    const struct bar_guests *g = &b->guests;

    if (say)
        report(b, now_ms);
    while (g->n_max > 0 && g->all.n > 0) {
        uint64_t since = g->at[g->all.oldest].came_ms;

        if (now_ms - since < BARRIER_HELLO_MS) {
            bar_wake(b, since + BARRIER_HELLO_MS);
            break;
        }
        drop(b, g->all.oldest, "no HELLO and proof in time");
    }
}
