/* urls: where each file of a manifest may be fetched from: the "urls" of our
 * own JSON, in their order, then each --mirror with the file's path. */
#ifndef FETCH_URLS_H
#define FETCH_URLS_H

#include "base/err.h"
#include "dataset/manifest.h"
#include "fetch/item.h"

#include <stddef.h>

#define URLS_MIRRORS_MAX 16
#define URLS_HOSTS_MAX 1024 /* More share the last one's health. */

struct urls {
    struct item *items;      /* One for each entry of the manifest. */
    struct item_host *hosts;
    unsigned n_hosts;
    struct item_url *all;    /* What the items point into. */
    size_t n_all;
    char **texts;            /* What `all` points to. */
    size_t n_texts;
};

/* Read the manifest file a second time for its "urls". A file without any URL
 * is ERR_DATA, and so is a URL with no scheme or one that is not fetched.
 * End with urls_free(). */
int urls_read(struct urls *ret, const struct manifest *m, const char *path,
              const char *const *mirrors, unsigned n_mirrors, struct err *e);
void urls_free(struct urls *u);

/* A listed path behind a base URL, with what a URL cannot have as %XX; to be
 * freed. NULL: no memory. */
char *urls_join(const char *base, const char *path);

#endif
