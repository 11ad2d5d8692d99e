/* pump_sink: see pump_sink.h. */
#include "dataset/pump_sink.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

bool pump_write(int fd, const uint8_t *data, size_t len, int *ret_error)
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

static void consume(struct pump_sink *s, const struct pump_block *b,
                    int *error)
{
    digest_add(b->unpacked ? &s->unpacked : &s->packed, b->at, b->len);
    if (b->unpacked && s->p->unpacked_to >= 0 && *error == 0)
        (void)pump_write(s->p->unpacked_to, b->at, b->len, error);
}

static void *thread_main(void *arg)
{
    struct pump_sink *s = arg;
    int error = 0;

    (void)pthread_mutex_lock(&s->lock);
    for (;;) {
        struct pump_block b;

        while (s->n_queued == 0 && !s->ended)
            (void)pthread_cond_wait(&s->change, &s->lock);
        if (s->n_queued == 0)
            break;
        b = s->queue[s->first];
        s->first = (s->first + 1) % PUMP_BUFFERS;
        s->n_queued--;
        (void)pthread_mutex_unlock(&s->lock);
        consume(s, &b, &error);
        (void)pthread_mutex_lock(&s->lock);
        s->error = error;
        s->free[s->n_free++] = b.at;
        (void)pthread_cond_signal(&s->change);
    }
    (void)pthread_mutex_unlock(&s->lock);
    return NULL;
}

void pump_sink_start(struct pump_sink *s, struct pump *p, bool threaded)
{
    struct pump_buffers *b = p->turn->scratch;

    memset(s, 0, sizeof *s);
    s->p = p;
    digest_start(&s->packed, p->kind);
    digest_start(&s->unpacked, DIGEST_SHA256);
    for (unsigned i = PUMP_BUFFERS - 1; i > 0; i--)
        s->free[s->n_free++] = b->more[i - 1];
    s->free[s->n_free++] = b->in; /* The first to be used. */
    if (!threaded)
        return;
    (void)pthread_mutex_init(&s->lock, NULL);
    (void)pthread_cond_init(&s->change, NULL);
    s->threaded = pthread_create(&s->thread, NULL, thread_main, s) == 0;
    if (s->threaded)
        return;
    (void)pthread_cond_destroy(&s->change);
    (void)pthread_mutex_destroy(&s->lock);
}

uint8_t *pump_sink_buffer(struct pump_sink *s)
{
    uint8_t *at;

    if (!s->threaded)
        return s->free[--s->n_free];
    (void)pthread_mutex_lock(&s->lock);
    while (s->n_free == 0)
        (void)pthread_cond_wait(&s->change, &s->lock);
    at = s->free[--s->n_free];
    (void)pthread_mutex_unlock(&s->lock);
    return at;
}

void pump_sink_give_back(struct pump_sink *s, uint8_t *at)
{
    if (s->threaded)
        (void)pthread_mutex_lock(&s->lock);
    s->free[s->n_free++] = at;
    if (s->threaded)
        (void)pthread_mutex_unlock(&s->lock);
}

bool pump_sink_put(struct pump_sink *s, uint8_t *at, size_t len,
                   bool unpacked)
{
    struct pump_block b = {at, len, unpacked};
    bool good;

    if (!s->threaded) {
        consume(s, &b, &s->error);
        s->free[s->n_free++] = at;
        return s->error == 0;
    }
    (void)pthread_mutex_lock(&s->lock);
    /* There are as many places as buffers. */
    s->queue[(s->first + s->n_queued++) % PUMP_BUFFERS] = b;
    good = s->error == 0;
    (void)pthread_cond_signal(&s->change);
    (void)pthread_mutex_unlock(&s->lock);
    return good;
}

bool pump_sink_end(struct pump_sink *s)
{
    if (s->threaded) {
        (void)pthread_mutex_lock(&s->lock);
        s->ended = true;
        (void)pthread_cond_signal(&s->change);
        (void)pthread_mutex_unlock(&s->lock);
        (void)pthread_join(s->thread, NULL);
        (void)pthread_cond_destroy(&s->change);
        (void)pthread_mutex_destroy(&s->lock);
    }
    digest_end(&s->packed, s->p->hash);
    digest_end(&s->unpacked, s->p->unpacked_sha256);
    return s->error == 0;
}
