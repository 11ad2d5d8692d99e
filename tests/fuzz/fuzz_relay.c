/* fuzz_relay: how the bytes of a worker are cut into reads never changes the
 * lines; each piece that comes out is whole lines; text loses no byte but
 * those of states that others took the place of. */
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

/* `data`, `times` over, at most `piece` bytes a read. */
static void pass(struct relay *r, struct sum *s, const uint8_t *data,
                 size_t len, unsigned times, size_t piece)
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
        }
    drain(r, s, true);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct sum a = {0, 0, 0}, b = {0, 0, 0};
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
    pass(&r, &a, data + 3, len - 3, times, RELAY_LINE_MAX);
    lines = r.n_lines;
    fuzz_require(a.newlines == lines);
    if (!json)
        fuzz_require(a.bytes + r.n_hidden >= (uint64_t)(len - 3) * times);
    relay_init(&r, buf, HEAD);
    relay_set_head(&r, HEAD, json);
    pass(&r, &b, data + 3, len - 3, times, 1 + data[2] % 64u);
    fuzz_require(a.hash == b.hash && a.bytes == b.bytes);
    fuzz_require(r.n_lines == lines);
    return 0;
}
