/* bucket: see bucket.h. */
#include "ddp/bucket.h"
#include "ddp/reduce.h"

#include <string.h>

#define MIB 1048576.0

const char *ddp_bucket_sizes(double first_mib, double mib,
                             struct ddp_bucket_sizes *ret)
{
    if (!(mib >= 0 && mib <= DDP_BUCKET_MIB_MAX))
        return "bucket_mib is not from 0 to 65536";
    if (!(first_mib >= 0 && first_mib <= DDP_BUCKET_MIB_MAX))
        return "first_bucket_mib is not from 0 to 65536";
    if (mib == 0)
        mib = DDP_BUCKET_MIB;
    if (first_mib == 0)
        first_mib = mib < DDP_FIRST_BUCKET_MIB ? mib : DDP_FIRST_BUCKET_MIB;
    ret->bytes = (size_t)(mib * MIB);
    ret->first_bytes = (size_t)(first_mib * MIB);
    return NULL;
}

static size_t bytes_of(const struct ddp_param *p)
{
    return p->count * ddp_type_width((int)p->type);
}

/* Whether p ends where the one after it begins. */
static bool touches(const struct ddp_param *p)
{
    return (const uint8_t *)p->grad + bytes_of(p) == (const uint8_t *)p[1].grad;
}

size_t ddp_bucket_plan(const struct ddp_param *params, size_t n,
                       const struct ddp_bucket_sizes *sizes,
                       struct ddp_bucket *ret)
{
    size_t n_buckets = 0, bytes = 0, limit = sizes->first_bytes;

    for (size_t i = n; i-- > 0;) {
        const struct ddp_param *p = &params[i];
        struct ddp_bucket *b = n_buckets ? &ret[n_buckets - 1] : NULL;

        if (!b || bytes >= limit || b->type != p->type) {
            limit = b ? sizes->bytes : sizes->first_bytes;
            b = &ret[n_buckets++];
            *b = (struct ddp_bucket){.type = p->type, .in_place = true};
            bytes = 0;
        } else if (!touches(p)) {
            b->in_place = false;
        }
        b->first = i;
        b->n++;
        b->count += p->count;
        bytes += bytes_of(p);
    }
    return n_buckets;
}

static void mix(uint64_t *h, uint64_t v)
{
    for (unsigned i = 0; i < 8; i++, v >>= 8)
        *h = (*h ^ (v & 0xff)) * UINT64_C(0x100000001b3);
}

uint64_t ddp_bucket_hash(const struct ddp_param *params, size_t n,
                         const struct ddp_bucket_sizes *sizes, int wire,
                         int sum)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);

    mix(&h, n);
    mix(&h, sizes->first_bytes);
    mix(&h, sizes->bytes);
    mix(&h, (uint64_t)wire);
    mix(&h, (uint64_t)sum);
    for (size_t i = 0; i < n; i++) {
        mix(&h, params[i].count);
        mix(&h, (uint64_t)params[i].type);
    }
    return h;
}
