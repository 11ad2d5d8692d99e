/* pump: see pump.h. */
#include "dataset/pump.h"

#include "dataset/gunzip.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

struct state {
    struct pump *p;
    struct pump_buffers *b;
    struct gunzip *g; /* NULL: nothing is unpacked, or no longer. */
    struct digest packed, unpacked;
};

static bool write_all(int fd, const uint8_t *data, size_t len, int *ret_error)
{
    while (len > 0) {
        ssize_t n = write(fd, data, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            *ret_error = n < 0 ? errno : EIO;
            return false;
        }
        data += n;
        len -= (size_t)n;
    }
    return true;
}

/* Unpack `len` bytes that were read. A fault of the data ends unpacking, but
 * not the pass. */
static enum pump_end unpack(struct state *s, size_t len)
{
    struct pump *p = s->p;
    size_t n;

    gunzip_add(s->g, s->b->in, len);
    while ((n = gunzip_next(s->g, s->b->out, sizeof s->b->out)) > 0) {
        p->n_unpacked += n;
        if (p->n_unpacked > p->unpacked_max) {
            p->unpacked_over = true;
            break;
        }
        digest_add(&s->unpacked, s->b->out, n);
        if (p->unpacked_to >= 0 &&
            !write_all(p->unpacked_to, s->b->out, n, &p->error))
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

static enum pump_end take(struct state *s, size_t len)
{
    struct pump *p = s->p;

    p->n += len;
    meter_add(p->meter, len);
    digest_add(&s->packed, s->b->in, len);
    if (p->packed_to >= 0 &&
        !write_all(p->packed_to, s->b->in, len, &p->error))
        return PUMP_WRITE;
    return s->g ? unpack(s, len) : PUMP_DONE;
}

static enum pump_end read_all(struct state *s)
{
    struct pump *p = s->p;

    while (p->n <= p->size) {
        ssize_t n = read(p->from, s->b->in, sizeof s->b->in);
        enum pump_end end;

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            p->error = errno;
            p->stale = errno == ESTALE;
            return PUMP_READ;
        }
        if (n == 0)
            break;
        end = take(s, (size_t)n);
        if (end != PUMP_DONE)
            return end;
        if (pool_stopped(p->turn))
            return PUMP_STOPPED;
    }
    return PUMP_DONE;
}

enum pump_end pump_run(struct pump *p)
{
    struct state s = {.p = p, .b = p->turn->scratch};
    enum pump_end end;

    p->n = p->n_unpacked = 0;
    p->unpack_fault = NULL;
    p->unpacked_over = false;
    if (p->unpack) {
        s.g = gunzip_new();
        if (!s.g)
            return PUMP_MEMORY;
    }
    digest_start(&s.packed, p->kind);
    digest_start(&s.unpacked, DIGEST_SHA256);
    (void)posix_fadvise(p->from, 0, 0, POSIX_FADV_SEQUENTIAL);
    end = read_all(&s);
    if (s.g)
        p->unpack_fault = gunzip_fault(s.g, true);
    gunzip_free(s.g);
    digest_end(&s.packed, p->hash);
    digest_end(&s.unpacked, p->unpacked_sha256);
    return end;
}
