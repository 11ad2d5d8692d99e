/* unpack_members: a list of paths that are found again; see unpack.h. Pure. */
#include "dataset/unpack.h"

#include <stdlib.h>
#include <string.h>

void unpack_members_free(struct unpack_members *m)
{
    for (size_t i = 0; i < m->n; i++)
        free(m->at[i].path);
    free(m->at);
    free(m->slots);
    *m = (struct unpack_members){.n = 0};
}

uint32_t *unpack_members_slot(const struct unpack_members *m,
                              const char *path)
{
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a. */
    size_t i;

    if (m->cap == 0)
        return NULL;
    for (const char *at = path; *at; at++)
        hash = (hash ^ (unsigned char)*at) * UINT64_C(1099511628211);
    i = (size_t)(hash ^ hash >> 29) & (2 * m->cap - 1);
    while (m->slots[i] && strcmp(m->at[m->slots[i] - 1].path, path) != 0)
        i = (i + 1) & (2 * m->cap - 1);
    return &m->slots[i];
}

static bool grow(struct unpack_members *m)
{
    size_t cap = m->cap ? 2 * m->cap : 16;
    uint32_t *slots = calloc(2 * cap, sizeof *slots);
    void *more = slots ? reallocarray(m->at, cap, sizeof *m->at) : NULL;

    if (!more) {
        free(slots);
        return false;
    }
    free(m->slots);
    m->at = more;
    m->slots = slots;
    m->cap = cap;
    for (size_t i = 0; i < m->n; i++)
        *unpack_members_slot(m, m->at[i].path) = (uint32_t)i + 1;
    return true;
}

struct unpack_member *unpack_members_add(struct unpack_members *m,
                                         const char *path, bool link)
{
    struct unpack_member *at;

    if (m->n == m->cap && !grow(m))
        return NULL;
    at = &m->at[m->n];
    *at = (struct unpack_member){.path = strdup(path), .link = link};
    if (!at->path)
        return NULL;
    *unpack_members_slot(m, path) = (uint32_t)++m->n;
    return at;
}
