/* fuzz_relay: how the bytes of a worker are cut into reads never changes the
 * lines; each piece that comes out is whole lines; text loses no byte but
 * those of states that others took the place of. States that are shown between
 * the reads are whole lines, too, and counted. */
#include "fuzz/fuzz.h"

#include "supervise/relay.h"

#include <string.h>

#define HEAD "> "

struct sum { /* Of all that came out. */
    uint64_t hash, bytes, newlines;
};

static char buf[RELAY_BUF_BYTES], out[RELAY_JSON_MIN];

static void drain(struct relay *r, struct sum *s, bool at_end)
{
    size_t n;

    while ((n = relay_take(r, out, sizeof out, at_end)) > 0) {
        fuzz_require(n <= sizeof out && out[n - 1] == '\n');
        for (size_t i = 0; i < n; i++) {
            s->hash = (s->hash ^ (unsigned char)out[i]) * 1099511628211u;
            s->newlines += out[i] == '\n';
        }
        s->bytes += n;
    }
}

static void show(struct relay *r, struct sum *s)
{
    size_t n = relay_take_state(r, out, sizeof out);

    fuzz_require(n == 0 || out[n - 1] == '\n');
    fuzz_require(!relay_has_state(r)); /* There was room for all. */
    for (size_t i = 0; i < n; i++)
        s->newlines += out[i] == '\n';
}

/* `data`, `times` over, at most `piece` bytes a read. */
static void pass(struct relay *r, struct sum *s, const uint8_t *data,
                 size_t len, unsigned times, size_t piece, bool shows)
{
    for (unsigned k = 0; k < times; k++)
        for (size_t at = 0; at < len;) {
            size_t room, n = len - at < piece ? len - at : piece;
            char *to = relay_space(r, &room);

            fuzz_require(room > 0);
            n = n < room ? n : room;
            memcpy(to, data + at, n);
            relay_put(r, n);
            at += n;
            drain(r, s, false);
            if (shows && at % 3 == 0)
                show(r, s);
        }
    drain(r, s, true);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct sum a = {0, 0, 0}, b = {0, 0, 0}, c = {0, 0, 0};
    struct relay r;
    bool json;
    unsigned times;
    uint64_t lines;

    if (len < 3)
        return 0;
    json = data[0] & 1;
    times = 1 + data[1];
    while ((uint64_t)times * len > 4 * RELAY_LINE_MAX && times > 1)
        times /= 2;
    relay_init(&r, buf, HEAD);
    relay_set_head(&r, HEAD, json);
    pass(&r, &a, data + 3, len - 3, times, RELAY_LINE_MAX, false);
    lines = r.n_lines;
    fuzz_require(a.newlines == lines);
    if (!json)
        fuzz_require(a.bytes + r.n_hidden >= (uint64_t)(len - 3) * times);
    relay_init(&r, buf, HEAD);
    relay_set_head(&r, HEAD, json);
    pass(&r, &b, data + 3, len - 3, times, 1 + data[2] % 64u, false);
    fuzz_require(a.hash == b.hash && a.bytes == b.bytes);
    fuzz_require(r.n_lines == lines);
    relay_init(&r, buf, HEAD);
    relay_set_head(&r, HEAD, json);
    pass(&r, &c, data + 3, len - 3, times, 1 + data[2] % 64u, true);
    fuzz_require(c.newlines == r.n_lines && r.n_hidden <= r.n_bytes);
    return 0;
}
