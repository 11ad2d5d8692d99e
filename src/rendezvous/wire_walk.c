/* wire_walk: see wire_walk.h. */
#include "rendezvous/wire_walk.h"

#include "base/text.h"
#include "rendezvous/wire.h"

#include <string.h>

void walk_uint(struct walk *w, uint64_t *v, unsigned n)
{
    if (w->why)
        return;
    if (w->pos + n > w->end) {
        w->why = "a field is cut off";
        return;
    }
    if (w->writes) {
        for (unsigned i = 0; i < n; i++)
            w->out[w->pos + i] = (uint8_t)(*v >> (8 * (n - 1 - i)));
    } else {
        *v = 0;
        for (unsigned i = 0; i < n; i++)
            *v = *v << 8 | w->in[w->pos + i];
    }
    w->pos += n;
}

void walk_u8(struct walk *w, uint8_t *v)
{
    uint64_t wide = *v;

    walk_uint(w, &wide, 1);
    *v = (uint8_t)wide;
}

void walk_u16(struct walk *w, uint16_t *v)
{
    uint64_t wide = *v;

    walk_uint(w, &wide, 2);
    *v = (uint16_t)wide;
}

void walk_u32(struct walk *w, uint32_t *v)
{
    uint64_t wide = *v;

    walk_uint(w, &wide, 4);
    *v = (uint32_t)wide;
}

void walk_u64(struct walk *w, uint64_t *v)
{
    walk_uint(w, v, 8);
}

void walk_bytes(struct walk *w, uint8_t *v, size_t n)
{
    if (w->why)
        return;
    if (w->pos + n > w->end) {
        w->why = "a field is cut off";
        return;
    }
    if (w->writes)
        memcpy(w->out + w->pos, v, n);
    else
        memcpy(v, w->in + w->pos, n);
    w->pos += n;
}

void walk_string(struct walk *w, char *s, size_t cap)
{
    char copy[WIRE_HOSTS_MAX]; /* The longest of them. */
    uint64_t n;

    if (w->why)
        return;
    if (w->writes)
        text_make_utf8(s, cap - 1);
    n = w->writes ? strlen(s) : 0;
    walk_uint(w, &n, 2);
    if (w->why)
        return;
    if (n > cap - 1) {
        w->why = "a string is too long";
        return;
    }
    walk_bytes(w, (uint8_t *)s, (size_t)n);
    if (w->why || w->writes)
        return;
    s[n] = '\0';
    memcpy(copy, s, (size_t)n + 1);
    if (strlen(s) != n || text_make_utf8(copy, sizeof copy - 1) != n ||
        memcmp(copy, s, (size_t)n) != 0)
        w->why = "a string is no clean UTF-8";
}
