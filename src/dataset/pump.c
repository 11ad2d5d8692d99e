/* pump: see pump.h. */
#include "dataset/pump.h"

#include "dataset/gunzip.h"
#include "dataset/pump_sink.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define THREADED_MIN (4u << 20) /* Bytes; to unpack, an eighth. */
#define AHEAD (8u << 20)        /* Asked for before it is read. */

struct state {
    struct pump *p;
    struct gunzip *g; /* NULL: nothing is unpacked, or no longer. */
    struct pump_sink sink;
};

/* Unpack `len` bytes that were read. A fault of the data ends unpacking, but
 * not the pass. */
static enum pump_end unpack(struct state *s, const uint8_t *in, size_t len)
{
    struct pump *p = s->p;

    gunzip_add(s->g, in, len);
    for (;;) {
        uint8_t *out = pump_sink_buffer(&s->sink);
        size_t n = gunzip_next(s->g, out, PUMP_BUFFER);

        p->unpacked_over = n > p->unpacked_max - p->n_unpacked;
        if (n == 0 || p->unpacked_over) {
            pump_sink_give_back(&s->sink, out);
            break;
        }
        p->n_unpacked += n;
        if (!pump_sink_put(&s->sink, out, n, true))
            return PUMP_WRITE_UNPACKED;
        if (pool_stopped(p->turn))
            return PUMP_STOPPED;
    }
    if (gunzip_no_memory(s->g))
        return PUMP_MEMORY;
    p->unpack_fault = gunzip_fault(s->g, false);
    if (p->unpack_fault || p->unpacked_over) {
        gunzip_free(s->g);
        s->g = NULL;
    }
    return PUMP_DONE;
}

static enum pump_end take(struct state *s, uint8_t *in, size_t len)
{
    struct pump *p = s->p;
    enum pump_end end = PUMP_DONE;

    p->n += len;
    meter_add(p->meter, len);
    if (p->packed_to >= 0 && !pump_write(p->packed_to, in, len, &p->error))
        end = PUMP_WRITE;
    else if (s->g)
        end = unpack(s, in, len);
    if (end != PUMP_DONE)
        pump_sink_give_back(&s->sink, in);
    else if (!pump_sink_put(&s->sink, in, len, false))
        end = PUMP_WRITE_UNPACKED;
    if (end == PUMP_DONE && pool_stopped(p->turn))
        end = PUMP_STOPPED;
    return end;
}

/* On cold storage several reads are in flight this way. */
static void ask_ahead(const struct pump *p)
{
    if (p->size > AHEAD && p->n % (AHEAD / 2) < PUMP_BUFFER)
        (void)posix_fadvise(p->from, (off_t)p->n, AHEAD,
                            POSIX_FADV_WILLNEED);
}

static enum pump_end read_all(struct state *s)
{
    struct pump *p = s->p;

    while (p->n <= p->size) {
        uint8_t *in = pump_sink_buffer(&s->sink);
        enum pump_end end;
        ssize_t n;

        ask_ahead(p);
        do
            n = read(p->from, in, PUMP_BUFFER);
        while (n < 0 && errno == EINTR);
        if (n <= 0) {
            pump_sink_give_back(&s->sink, in);
            p->error = n < 0 ? errno : 0;
            p->stale = n < 0 && errno == ESTALE;
            return n < 0 ? PUMP_READ : PUMP_DONE;
        }
        end = take(s, in, (size_t)n);
        if (end != PUMP_DONE)
            return end;
        /* Less than asked for, and no more expected: that was the end. */
        if (p->n == p->size && n < (ssize_t)PUMP_BUFFER)
            break;
    }
    return PUMP_DONE;
}

static bool is_large(const struct pump *p)
{
    return p->size >= (p->unpack ? THREADED_MIN / 8 : THREADED_MIN);
}

enum pump_end pump_run(struct pump *p)
{
    struct state s = {.p = p};
    enum pump_end end;

    p->n = p->n_unpacked = 0;
    p->unpack_fault = NULL;
    p->unpacked_over = p->stale = false;
    if (p->unpack) {
        s.g = gunzip_new();
        if (!s.g)
            return PUMP_MEMORY;
    }
    if (p->size > PUMP_BUFFER)
        (void)posix_fadvise(p->from, 0, 0, POSIX_FADV_SEQUENTIAL);
    pump_sink_start(&s.sink, p, is_large(p) && pool_has_idle_cpu(p->turn));
    end = read_all(&s);
    if (s.g)
        p->unpack_fault = gunzip_fault(s.g, true);
    gunzip_free(s.g);
    if (!pump_sink_end(&s.sink)) {
        p->error = s.sink.error;
        return PUMP_WRITE_UNPACKED;
    }
    return end;
}
