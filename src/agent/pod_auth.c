/* pod_auth: a pod with a token listens to nobody at pod 0's address who has
 * not proved that he has it, too. The pod proves it first (see auth.h). */
#include "agent/pod.h"

#include "agent/pod_parts.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

void pod_auth_begin(struct pod *p, struct wire_msg *hello)
{
    uint8_t frame[WIRE_FRAME_MAX];
    size_t len;

    p->challenged = p->proven = false;
    p->hello_len = 0;
    if (p->bar || !p->cfg.auth.has_token)
        return;
    hello->has_token = 1;
    auth_nonce(&p->cfg.auth, ++p->n_nonces, hello->nonce);
    len = wire_encode(hello, frame);
    if (len > sizeof p->hello)
        return; /* Of no HELLO: all its strings are short. */
    memcpy(p->hello, frame, len);
    p->hello_len = (uint16_t)len;
}

static void send_proof(struct pod *p, const struct wire_msg *challenge)
{
    struct wire_msg m = {.kind = WIRE_PROOF};

    p->challenged = true;
    auth_script(p->hello, p->hello_len, challenge, p->script);
    auth_proof(&p->cfg.auth, AUTH_POD, p->script, m.proof);
    p->out.link_send(p->out.ctx, &m);
}

/* Before this pod was ever admitted somebody gave it, or pod 0, a wrong token:
 * that is its end. Later it is somebody else at pod 0's address: the pod goes
 * on looking for the one it knew. */
static void turn_away(struct pod *p, uint64_t now_ms, int code,
                      const char *why)
{
    struct failure f = {.kind = FAILURE_AGENT, .code = code};

    if (p->was_admitted) {
        p->out.link_close(p->out.ctx, true);
        pod_link_down(p, now_ms, why);
        return;
    }
    f.node_rank = p->cfg.node_rank;
    f.round = p->round;
    (void)text_copy(f.host, sizeof f.host, p->cfg.host);
    (void)snprintf(f.text, sizeof f.text, "node rank 0 at %s %.400s",
                   p->cfg.zero, why);
    if (p->failure.kind == FAILURE_AGENT)
        f = p->failure; /* Its own fault comes first. */
    pod_end(p, now_ms, f.code, &f);
}

static void refused(struct pod *p, uint64_t now_ms, const struct wire_msg *m)
{
    char why[WIRE_TEXT_MAX];

    (void)snprintf(why, sizeof why, "refuses this pod: %.400s", m->text);
    for (char *s = why; *s; s++)
        if (*s == '\n' || *s == '\t')
            *s = ' '; /* A stranger may have written it. */
    /* Of another version it cannot prove anything. */
    turn_away(p, now_ms, m->code == ERR_MISMATCH ? ERR_MISMATCH : ERR_AUTH,
              why);
}

bool pod_auth_trusts(struct pod *p, uint64_t now_ms, const struct wire_msg *m)
{
    if (p->bar || !p->cfg.auth.has_token || p->proven)
        return true;
    if (m->kind == WIRE_CHALLENGE && !p->challenged && p->hello_len > 0) {
        send_proof(p, m);
    } else if (m->kind == WIRE_PROOF && p->challenged &&
               auth_check(&p->cfg.auth, AUTH_ZERO, p->script, m->proof)) {
        p->proven = true;
    } else if (m->kind == WIRE_REFUSE) {
        refused(p, now_ms, m);
    } else {
        turn_away(p, now_ms, ERR_AUTH,
                  "does not prove that it has this job's token: give all pods "
                  "the same --token-file or AGENT_TOKEN");
    }
    return p->proven;
}
