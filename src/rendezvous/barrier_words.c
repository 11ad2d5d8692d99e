/* barrier_words: who is missing and why, in words: a summary now and then, and
 * what has changed soon after it did. Ranks are folded. */
#include "rendezvous/barrier_round.h"

#include "base/text.h"

#define RANKS_MAX 120 /* Bytes of ranks in one place. */

/* X(name, words): what can be said of a pod, in the order of a summary. Of a
 * pod that was refused it is what it said last; it may have been a stranger. */
#define WORD_TABLE(X)                                                          \
    X(UNSEEN, " not seen yet")                                                 \
    X(WRONG_JOB, " refused (wrong job id)")                                    \
    X(WRONG_TOKEN, " refused (wrong token)")                                   \
    X(WRONG_NNODES, " refused (another --nnodes)")                             \
    X(STAGING, " staging")                                                     \
    X(PREPARING, " at --pre-start")                                            \
    X(LOST, " seen and lost")                                                  \
    X(LEFT, " told to stop from outside")                                      \
    X(STOPPING, " still stopping the workers of the last round")               \
    X(ARRIVED, " arrived")                                                     \
    X(NOTHING, "")

enum word {
#define X(name, words) WORD_##name,
    WORD_TABLE(X)
#undef X
    WORDS,
};

static const char *const words[] = {
#define X(name, words) words,
    WORD_TABLE(X)
#undef X
};

/* A connection that has just been closed may come back: no news yet. */
static enum word word_of(const struct bar_peer *p)
{
    static const enum word refused[] = {
        [BAR_NOT_REFUSED] = WORD_UNSEEN,
        [BAR_WRONG_JOB] = WORD_WRONG_JOB,
        [BAR_WRONG_TOKEN] = WORD_WRONG_TOKEN,
        [BAR_WRONG_NNODES] = WORD_WRONG_NNODES,
    };

    if ((p->state == PEER_STAGING || p->state == PEER_STOPPING) &&
        p->percent == WIRE_PREPARING && !p->down_ms)
        return WORD_PREPARING;
    switch (p->state) {
    case PEER_UNSEEN:
        return refused[p->refused];
    case PEER_LEFT:
        return WORD_LEFT;
    case PEER_LOST:
        return WORD_LOST;
    case PEER_STAGING:
        return p->down_ms ? WORD_LOST : WORD_STAGING;
    case PEER_STOPPING:
        return p->down_ms ? WORD_LOST : WORD_STOPPING;
    case PEER_ARRIVED:
        return p->down_ms ? WORD_LOST : WORD_ARRIVED;
    case PEER_RUNNING:
    case PEER_DONE:
        return p->down_ms ? WORD_LOST : WORD_NOTHING;
    case PEER_BYE:
    case PEER_STATES:
        break;
    }
    return WORD_NOTHING;
}

struct those { /* The pods of which this is to be said. */
    const struct barrier *b;
    enum word word;
    bool news; /* And was not said before. */
};

static bool is_one(const void *ctx, unsigned i)
{
    const struct those *those = ctx;
    const struct bar_peer *p = &those->b->peers[i];

    return word_of(p) == those->word &&
           (!those->news || (p->told != those->word && !p->down_ms));
}

static void add_percent(struct text *t, const struct those *those)
{
    unsigned low = 100, high = 0;

    for (unsigned i = 0; i < those->b->cfg.nnodes; i++) {
        unsigned percent = those->b->peers[i].percent;

        if (!is_one(those, i))
            continue;
        low = percent < low ? percent : low;
        high = percent > high ? percent : high;
    }
    if (low == high)
        text_add(t, " (%u %%)", low);
    else
        text_add(t, " (%u to %u %%)", low, high);
}

/* The one that has stood still longest stands for the others. */
static void add_still(struct text *t, const struct those *those,
                      uint64_t now_ms)
{
    uint64_t longest = 0;

    for (unsigned i = 0; i < those->b->cfg.nnodes; i++) {
        const struct bar_peer *p = &those->b->peers[i];

        if (is_one(those, i) && p->progress_ms &&
            now_ms - p->progress_ms > longest)
            longest = now_ms - p->progress_ms;
    }
    if (longest < BARRIER_STAGING_MS)
        return;
    text_add(t, ", no progress for ");
    text_add_duration(t, longest);
}

/* The one that has been away longest stands for the others. */
static void add_last_heard(struct text *t, const struct those *those,
                           uint64_t now_ms)
{
    const struct bar_peer *worst = NULL, *p;

    for (unsigned i = 0; i < those->b->cfg.nnodes; i++) {
        p = &those->b->peers[i];
        if (is_one(those, i) && (!worst || p->heard_ms < worst->heard_ms))
            worst = p;
    }
    if (!worst)
        return;
    text_add(t, ", last heard ");
    text_add_duration(t, now_ms - worst->heard_ms);
    text_add(t, " ago at %s", worst->addr);
}

/* "node rank 3 not seen yet" or "node ranks 3-5,7 not seen yet", as far as
 * there are any; else nothing. */
static void add_those(struct text *t, const struct those *those,
                      uint64_t now_ms)
{
    unsigned n = 0;

    for (unsigned i = 0; i < those->b->cfg.nnodes; i++)
        n += is_one(those, i);
    if (n == 0)
        return;
    text_add(t, "%snode rank%s ", t->len ? "; " : "", text_plural(n));
    text_add_ranges(t, those->b->cfg.nnodes, is_one, those, RANKS_MAX);
    text_add(t, "%s", words[those->word]);
    if (those->word == WORD_STAGING) {
        add_percent(t, those);
        add_still(t, those, now_ms);
    } else if (those->word == WORD_LOST) {
        add_last_heard(t, those, now_ms);
    }
}

/* As of WORD_TABLE, where no rank can be named. */
static const char *const refusals[] = {
    [BAR_NOT_REFUSED] = "",
    [BAR_WRONG_JOB] = "wrong job id",
    [BAR_WRONG_TOKEN] = "wrong token",
    [BAR_WRONG_NNODES] = "another --nnodes",
};

/* The last of these may have been long ago. */
static void add_stray(struct text *t, const struct bar_stray *s,
                      uint64_t now_ms)
{
    text_add(t, "%s", s->addr);
    if (now_ms - s->at_ms < 1000)
        return;
    text_add(t, ", ");
    text_add_duration(t, now_ms - s->at_ms);
    text_add(t, " ago");
}

static void add_strays(struct text *t, const struct barrier *b, bool news,
                       uint64_t now_ms)
{
    const struct bar_stray *s = &b->twin;

    if (s->at_ms && !(news && s->told)) {
        text_add(t, "%snode rank %u claimed twice (%s and ",
                 t->len ? "; " : "", s->what, b->peers[s->what].addr);
        add_stray(t, s, now_ms);
        text_add(t, ")");
    }
    s = &b->unranked;
    if (s->at_ms && !(news && s->told)) {
        text_add(t, "%sa pod refused (%s; ", t->len ? "; " : "",
                 refusals[s->what]);
        add_stray(t, s, now_ms);
        text_add(t, ")");
    }
    s = &b->foreign;
    if (s->at_ms && !(news && s->told)) {
        text_add(t, "%sa pod of protocol version %u refused (",
                 t->len ? "; " : "", s->what);
        add_stray(t, s, now_ms);
        text_add(t, ")");
    }
}

static uint64_t last_call_until(const struct barrier *b)
{
    if (b->counts[PEER_ARRIVED] == b->cfg.nnodes || b->enough_ms == 0)
        return 0;
    return b->enough_ms + b->cfg.last_call_ms;
}

/* Enough are there, and yet nothing starts: why, and for how long. */
static bool add_hold(struct text *t, const struct barrier *b, uint64_t now_ms)
{
    uint64_t until = b->not_before_ms, missing = bar_missing_until(b),
             call = last_call_until(b);
    const char *why = b->fence_ms > now_ms
                          ? ": workers of a pod that was silent may still run"
                          : ": the back-off after a failure";

    if (missing > until) {
        until = missing;
        why = ": a missing pod may still run workers under the last node rank "
              "0";
    }
    if (call > until) {
        until = call;
        why = ": the last call for the others";
    }
    if (now_ms >= until || !bar_has_enough(b))
        return false;
    text_add(t, "%s%u of %u pods are there; no round starts within ",
             t->len ? "; " : "", b->counts[PEER_ARRIVED], b->cfg.nnodes);
    text_add_duration(t, until - now_ms);
    text_add(t, "%s", why);
    return true;
}

void barrier_describe(const struct barrier *b, uint64_t now_ms, char *out,
                      size_t cap)
{
    struct those those = {.b = b};
    struct text t;

    text_init(&t, out, cap);
    for (those.word = 0; those.word < WORD_ARRIVED; those.word++)
        add_those(&t, &those, now_ms);
    if (b->counts[PEER_ARRIVED] < b->cfg.nnodes)
        add_strays(&t, b, false, now_ms);
    (void)add_hold(&t, b, now_ms);
}

static void summary(struct barrier *b, uint64_t now_ms)
{
    struct wire_msg m = {.kind = WIRE_WAITING, .round = b->round};

    b->summary_ms = now_ms + BARRIER_SUMMARY_MS;
    barrier_describe(b, now_ms, m.text, sizeof m.text);
    if (m.text[0] == '\0')
        return;
    m.bound = (uint8_t)bar_bound(b, now_ms, &m.delay_ms);
    for (uint32_t i = 0; i < b->cfg.nnodes; i++)
        bar_send(b, &b->peers[i], &m);
}

void bar_note_refused(struct barrier *b, uint64_t now_ms, uint32_t conn,
                      uint32_t rank, enum bar_refused why)
{
    if (rank == WIRE_ANY_RANK)
        bar_note_stray(b, &b->unranked, now_ms, conn, why);
    if (rank >= b->cfg.nnodes || b->peers[rank].state != PEER_UNSEEN)
        return;
    b->peers[rank].refused = (uint8_t)why;
    b->has_news = true;
}

void bar_note_stray(struct barrier *b, struct bar_stray *s, uint64_t now_ms,
                    uint32_t conn, uint32_t what)
{
    if (b->phase != BAR_GATHER)
        return;
    /* One that comes again and again is no news each time; and of versions and
     * reasons a stranger has as many as it likes. */
    s->told = s->told && s->at_ms && (s != &b->twin || s->what == what);
    b->has_news = b->has_news || !s->told;
    s->at_ms = now_ms ? now_ms : 1;
    s->what = what;
    (void)text_copy(s->addr, sizeof s->addr, b->conns[conn].addr);
}

void bar_forget_news(struct barrier *b)
{
    b->has_news = false;
    b->news_ms = 0;
    b->twin.told = b->foreign.told = b->unranked.told = true;
    for (uint32_t i = 0; i < b->cfg.nnodes; i++)
        if (!b->peers[i].down_ms)
            b->peers[i].told = (uint8_t)word_of(&b->peers[i]);
}

/* Pod 0 itself has said more of it when it happened, unless there are many. */
static void news(struct barrier *b, uint64_t now_ms)
{
    struct wire_msg m = {.kind = WIRE_WAITING, .round = b->round};
    struct those those = {.b = b, .news = true};
    bool all = b->counts[PEER_ARRIVED] == b->cfg.nnodes;
    uint32_t first = all || b->cfg.nnodes > BARRIER_SAY_MAX ? 0 : 1;
    struct text t;

    text_init(&t, m.text, sizeof m.text);
    for (those.word = WORD_WRONG_JOB; those.word <= WORD_ARRIVED; those.word++)
        if (those.word != WORD_STOPPING)
            add_those(&t, &those, now_ms);
    if (!all)
        add_strays(&t, b, true, now_ms);
    bar_forget_news(b);
    if (t.len == 0 || (all && b->fence_ms <= now_ms))
        return;
    if (!add_hold(&t, b, now_ms) && !all)
        text_add(&t, "; %u of %u pods are there", b->counts[PEER_ARRIVED],
                 b->cfg.nnodes);
    m.bound = (uint8_t)bar_bound(b, now_ms, &m.delay_ms);
    for (uint32_t i = first; i < b->cfg.nnodes; i++)
        bar_send(b, &b->peers[i], &m);
}

/* The more pods, the longer: it goes to each of them. */
void bar_plan_news(struct barrier *b, uint64_t now_ms)
{
    if (!b->has_news || b->news_ms || b->phase != BAR_GATHER)
        return;
    b->news_ms = now_ms + BARRIER_NEWS_MS + b->cfg.nnodes;
    bar_wake(b, b->news_ms);
}

void bar_tell_waiting(struct barrier *b, uint64_t now_ms)
{
    if (b->news_ms && now_ms >= b->news_ms)
        news(b, now_ms);
    if (now_ms >= b->summary_ms)
        summary(b, now_ms);
    if (b->news_ms)
        bar_wake(b, b->news_ms);
}
