/* frame: see frame.h. One walk over the fields serves both directions. */
#include "ddp/frame.h"

#include <stdbool.h>
#include <string.h>

struct walk {
    bool put, bad;
    uint8_t *out;      /* put: where the next byte goes. */
    const uint8_t *in; /* else: the next byte, */
    size_t left;       /* and how many there are. */
};

static void walk_bytes(struct walk *w, uint8_t *field, size_t n)
{
    if (w->put) {
        memcpy(w->out, field, n);
        w->out += n;
    } else if (w->left < n) {
        w->bad = true;
    } else {
        memcpy(field, w->in, n);
        w->in += n;
        w->left -= n;
    }
}

static void walk_u64(struct walk *w, uint64_t *field, unsigned n)
{
    uint8_t b[8];

    for (unsigned i = 0; i < n; i++)
        b[i] = (uint8_t)(*field >> 8 * (n - 1 - i));
    walk_bytes(w, b, n);
    *field = 0;
    for (unsigned i = 0; i < n; i++)
        *field = *field << 8 | b[i];
}

static void walk_u32(struct walk *w, uint32_t *field)
{
    uint64_t v = *field;

    walk_u64(w, &v, 4);
    *field = (uint32_t)v;
}

static void walk_u16(struct walk *w, uint16_t *field)
{
    uint64_t v = *field;

    walk_u64(w, &v, 2);
    *field = (uint16_t)v;
}

static void walk_text(struct walk *w, char *field)
{
    uint16_t len = w->put ? (uint16_t)strnlen(field, DDP_FRAME_TEXT_MAX) : 0;

    walk_u16(w, &len);
    if (len > DDP_FRAME_TEXT_MAX)
        w->bad = true;
    if (w->bad)
        return;
    walk_bytes(w, (uint8_t *)field, len);
    if (w->put || w->bad)
        return;
    field[len] = '\0';
    for (unsigned i = 0; i < len; i++)
        if ((unsigned char)field[i] < 0x20 || field[i] == 0x7f)
            field[i] = '?';
}

static void walk_hello(struct walk *w, struct ddp_frame *f)
{
    walk_u32(w, &f->rank);
    walk_u32(w, &f->world);
    walk_u32(w, &f->attempt);
    walk_u32(w, &f->master_port);
    walk_u32(w, &f->order);
    walk_bytes(w, f->addr.ip, sizeof f->addr.ip);
    walk_u16(w, &f->addr.port);
    walk_bytes(w, f->host, sizeof f->host);
    walk_text(w, f->text);
}

static void walk_call(struct walk *w, struct ddp_frame *f)
{
    walk_u64(w, &f->seq, 8);
    walk_u32(w, &f->what);
    walk_u32(w, &f->type);
    walk_u32(w, &f->op);
    walk_u32(w, &f->root);
    walk_u64(w, &f->count, 8);
}

static void walk_payload(struct walk *w, struct ddp_frame *f)
{
    switch (f->kind) {
    case DDP_HELLO:
        walk_hello(w, f);
        break;
    case DDP_REFUSE:
    case DDP_FAULT:
        walk_u32(w, &f->code);
        walk_u32(w, &f->retry);
        walk_u32(w, &f->rank);
        walk_u32(w, &f->peer);
        walk_text(w, f->text);
        break;
    case DDP_WAITING:
        walk_u32(w, &f->n);
        walk_u32(w, &f->peer);
        break;
    case DDP_TABLE:
        walk_bytes(w, f->token, sizeof f->token);
        walk_bytes(w, f->addr.ip, sizeof f->addr.ip);
        walk_u16(w, &f->addr.port);
        walk_u32(w, &f->via_root);
        walk_u32(w, &f->sockets);
        walk_u32(w, &f->shm_pid);
        walk_u32(w, &f->shm_fd);
        break;
    case DDP_RING:
        walk_bytes(w, f->token, sizeof f->token);
        walk_u32(w, &f->rank);
        walk_u32(w, &f->to);
        walk_u32(w, &f->channel);
        break;
    case DDP_CALL:
        walk_call(w, f);
        break;
    case DDP_PING:
        walk_u32(w, &f->peer);
        break;
    case DDP_READY:
    case DDP_GO:
        walk_u32(w, &f->shm);
        walk_u32(w, &f->pairs);
        break;
    case DDP_WELCOME:
    case DDP_BYE:
        break;
    default:
        w->bad = true;
    }
}

size_t ddp_frame_encode(const struct ddp_frame *f, uint8_t *buf)
{
    struct ddp_frame copy = *f; /* A walk may write to fields. */
    struct walk w = {.put = true, .out = buf + DDP_FRAME_HEAD};
    struct walk head = {.put = true, .out = buf};
    uint32_t magic = DDP_FRAME_MAGIC;
    uint8_t id[2] = {DDP_FRAME_VERSION, (uint8_t)f->kind};
    uint16_t len;

    copy.text[DDP_FRAME_TEXT_MAX] = '\0';
    walk_payload(&w, &copy);
    len = (uint16_t)(w.out - buf - DDP_FRAME_HEAD);
    walk_u32(&head, &magic);
    walk_bytes(&head, id, sizeof id);
    walk_u16(&head, &len);
    return DDP_FRAME_HEAD + (size_t)len;
}

int ddp_frame_decode(const uint8_t *buf, size_t len, struct ddp_frame *ret,
                     unsigned *ret_version)
{
    static const uint8_t magic[4] = {'L', 'D', 'D', 'P'};
    struct walk head = {.in = buf + 6, .left = 2};
    struct walk w = {.in = buf + DDP_FRAME_HEAD};
    uint16_t n = 0;

    *ret_version = 0;
    if (memcmp(buf, magic, len < 4 ? len : 4))
        return -1;
    if (len < DDP_FRAME_HEAD)
        return 0;
    *ret_version = buf[4];
    walk_u16(&head, &n);
    if (n > DDP_FRAME_MAX - DDP_FRAME_HEAD ||
        (buf[4] != DDP_FRAME_VERSION && buf[5] != DDP_REFUSE))
        return -1;
    if (len < DDP_FRAME_HEAD + (size_t)n)
        return 0;
    memset(ret, 0, sizeof *ret);
    ret->kind = buf[5];
    w.left = n;
    walk_payload(&w, ret);
    return w.bad || w.left ? -1 : DDP_FRAME_HEAD + (int)n;
}
