/* structure_tar: the blocks of a tar file; see structure.h. Pure. */
#include "dataset/structure.h"

#include <inttypes.h>
#include <string.h>

static bool all_zero(const uint8_t *block)
{
    for (size_t i = 0; i < STRUCTURE_BLOCK; i++)
        if (block[i] != 0)
            return false;
    return true;
}

/* Octal digits, or with the first bit set a number of base 256. */
static bool read_number(const uint8_t *at, size_t n, uint64_t *ret)
{
    uint64_t value = 0;
    size_t i = 0;

    if (at[0] & 0x80) {
        for (i = 1; i < n; i++) {
            if (value >> 54)
                return false;
            value = value << 8 | at[i];
        }
        *ret = value;
        return !(at[0] & 0x7f);
    }
    while (i < n && at[i] == ' ')
        i++;
    for (; i < n && at[i] >= '0' && at[i] <= '7'; i++)
        value = value << 3 | (uint64_t)(at[i] - '0');
    *ret = value;
    return i == n || at[i] == ' ' || at[i] == '\0';
}

static bool good_checksum(const uint8_t *h)
{
    uint64_t want;
    uint64_t sum = 0;
    int64_t as_signed = 0; /* As some old programs counted. */

    if (!read_number(h + 148, 8, &want))
        return false;
    for (size_t i = 0; i < STRUCTURE_BLOCK; i++) {
        uint8_t c = i >= 148 && i < 156 ? ' ' : h[i];

        sum += c;
        as_signed += (int8_t)c;
    }
    return sum == want || (uint64_t)as_signed == want;
}

/* Links, devices and folders have no data, whatever their size says. */
static bool has_data(uint8_t type)
{
    return type < '1' || type > '6';
}

bool structure_tar_block(struct structure_tar *t, const uint8_t *block,
                         struct structure *ret)
{
    uint64_t at = t->n, size;

    t->n += STRUCTURE_BLOCK;
    t->skip = 0;
    if (t->ended || t->lost)
        return true;
    if (t->extension) {
        t->extension = block[504] != 0;
        t->skip = t->extension ? 0 : (t->data + 511) / 512 * 512;
        t->n += t->skip;
        return true;
    }
    if (all_zero(block)) {
        t->ended = ++t->n_zeros == 2;
        return true;
    }
    t->n_zeros = 0;
    if (!good_checksum(block) || !read_number(block + 124, 12, &size))
        return structure_fail(ret, t->any ? "its tar header at byte %" PRIu64
                                            " is damaged"
                                          : "it is no tar: no header at byte "
                                            "%" PRIu64,
                              at);
    t->any = true;
    memcpy(t->name, block, 100);
    /* Some old programs give a hard link the size of the file. */
    t->lost = block[156] == '1' && size > 0;
    t->data = has_data(block[156]) ? size : 0;
    t->extension = block[156] == 'S' && block[482] != 0;
    t->skip = t->extension ? 0 : (t->data + 511) / 512 * 512;
    t->n += t->skip;
    return true;
}

bool structure_tar_end(const struct structure_tar *t, uint64_t size,
                       struct structure *ret)
{
    if (t->ended || t->lost)
        return true;
    if (t->n > size && t->any)
        return structure_fail(ret, "the tar ends within '%s', at byte %" PRIu64
                                   ": it is cut",
                              t->name, size);
    return structure_fail(ret, "the tar ends without its two blocks of zeros: "
                               "it is cut");
}
