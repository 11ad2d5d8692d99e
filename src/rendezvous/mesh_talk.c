/* mesh_talk: see mesh_talk.h. */
#include "rendezvous/mesh_talk.h"

#include <errno.h>
#include <string.h>

#define MAGIC 0x41474d45u /* "AGME" */
#define VERSION 1

const char *mesh_reason_text(unsigned reason)
{
    switch (reason) {
#define X(name, number, words)                                                 \
    case number:                                                               \
        return words;
        MESH_REASON_TABLE(X)
#undef X
    default:
        return "it fails";
    }
}

enum mesh_reason mesh_reason_of_errno(int number)
{
    static const struct {
        int number;
        enum mesh_reason reason;
    } table[] = {
        {ETIMEDOUT, MESH_TIMED_OUT},      {ECONNREFUSED, MESH_REFUSED},
        {EHOSTUNREACH, MESH_NO_ROUTE},    {ENETUNREACH, MESH_NO_NETWORK},
        {ECONNRESET, MESH_RESET},         {EPIPE, MESH_RESET},
        {EPERM, MESH_FORBIDDEN},          {EACCES, MESH_FORBIDDEN},
        {EMFILE, MESH_NO_ROOM},           {ENFILE, MESH_NO_ROOM},
        {ENOMEM, MESH_NO_ROOM},           {ENOBUFS, MESH_NO_ROOM},
    };

    for (unsigned i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].number == number)
            return table[i].reason;
    return MESH_FAILED;
}

/* The longest run of two or more zero groups, for "::". */
static unsigned zero_run(const unsigned group[8], unsigned *ret_len)
{
    unsigned best = 0, len = 0, n;

    for (unsigned i = 0; i < 8; i += n + 1) {
        for (n = 0; i + n < 8 && group[i + n] == 0; n++)
            ;
        if (n > len) {
            best = i;
            len = n;
        }
    }
    *ret_len = len > 1 ? len : 0;
    return best;
}

void mesh_add_addr(struct text *t, const struct wire_addr *a)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    unsigned group[8], zeros, n_zeros;

    if (memcmp(a->ip, mapped, sizeof mapped) == 0) {
        text_add(t, "%u.%u.%u.%u:%u", a->ip[12], a->ip[13], a->ip[14],
                 a->ip[15], a->port);
        return;
    }
    for (unsigned i = 0; i < 8; i++)
        group[i] = (unsigned)a->ip[2 * i] << 8 | a->ip[2 * i + 1];
    zeros = zero_run(group, &n_zeros);
    text_add(t, "[");
    for (unsigned i = 0; i < 8; i++) {
        if (n_zeros > 0 && i == zeros) {
            text_add(t, "::");
            i += n_zeros - 1;
        } else {
            text_add(t, i == 0 || (n_zeros > 0 && i == zeros + n_zeros)
                            ? "%x" : ":%x", group[i]);
        }
    }
    text_add(t, "]:%u", a->port);
}

void mesh_add_partner(struct text *t, const struct wire_partner *p)
{
    text_add(t, "node rank %u at ", p->rank);
    mesh_add_addr(t, &p->at);
    text_add(t, ": %s", mesh_reason_text(p->reason));
}

void mesh_block(uint64_t nonce, uint8_t block[MESH_BLOCK])
{
    uint64_t x = nonce | 1;

    for (size_t i = 0; i < MESH_BLOCK; i += 8) {
        x ^= x << 13; /* xorshift64: nothing on the way can guess or pack it. */
        x ^= x >> 7;
        x ^= x << 17;
        for (unsigned k = 0; k < 8; k++)
            block[i + k] = (uint8_t)(x >> (8 * k));
    }
}

static void put(uint8_t *out, uint64_t v, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        out[i] = (uint8_t)(v >> (8 * (n - 1 - i)));
}

static uint64_t get(const uint8_t *in, unsigned n)
{
    uint64_t v = 0;

    for (unsigned i = 0; i < n; i++)
        v = v << 8 | in[i];
    return v;
}

void mesh_hello(uint8_t hello[MESH_HELLO], uint64_t nonce, uint32_t from,
                uint32_t to)
{
    memset(hello, 0, MESH_HELLO);
    put(hello, MAGIC, 4);
    hello[4] = VERSION;
    put(hello + 8, nonce, 8);
    put(hello + 16, from, 4);
    put(hello + 20, to, 4);
}

size_t mesh_talk_room(const struct mesh_talk *t)
{
    if (t->n_hello < MESH_HELLO)
        return MESH_HELLO - t->n_hello;
    return t->n_in < MESH_BLOCK ? MESH_BLOCK - t->n_in : 1;
}

bool mesh_talk_judge(struct mesh_talk *t, uint64_t nonce)
{
    uint8_t right[MESH_HELLO];

    if (!t->calls)
        t->them = (uint32_t)get(t->hello + 16, 4);
    mesh_hello(right, nonce, t->them, t->me);
    t->knows = memcmp(right, t->hello, MESH_HELLO) == 0;
    return t->knows;
}

static enum mesh_talk_next fail(enum mesh_reason *ret, enum mesh_reason why)
{
    *ret = why;
    return MESH_TALK_FAILED;
}

enum mesh_talk_next mesh_talk_take(struct mesh_talk *t, const uint8_t *bytes,
                                   size_t n, const uint8_t block[MESH_BLOCK],
                                   enum mesh_reason *ret_reason)
{
    if (n == 0)
        return MESH_TALK_READ;
    if (t->n_hello < MESH_HELLO) {
        memcpy(t->hello + t->n_hello, bytes, n);
        t->n_hello += n;
        return t->n_hello == MESH_HELLO ? MESH_TALK_JUDGE : MESH_TALK_READ;
    }
    if (!t->knows)
        return fail(ret_reason, MESH_STRANGER);
    if (t->n_in < MESH_BLOCK) {
        if (memcmp(bytes, block + t->n_in, n) != 0)
            return fail(ret_reason, MESH_CHANGED);
        t->n_in += n;
        return t->n_in == MESH_BLOCK ? MESH_TALK_THANK : MESH_TALK_READ;
    }
    if (bytes[0] != MESH_GOT_IT)
        return fail(ret_reason, MESH_CHANGED);
    t->got_it = true;
    return MESH_TALK_OVER;
}

enum mesh_reason mesh_talk_late(const struct mesh_talk *t, size_t unsent)
{
    if (!t->connected)
        return MESH_TIMED_OUT;
    if (!t->knows)
        return MESH_SILENT;
    if (t->n_in == MESH_BLOCK)
        return MESH_STUCK_THERE;
    return unsent == 0 ? MESH_STUCK_HERE : MESH_STUCK;
}
