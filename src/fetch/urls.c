/* urls: see urls.h. */
#include "fetch/urls.h"

#include "base/mem.h"
#include "fetch/answer.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct maker {
    struct urls *u;
    const struct manifest *m;
    const char *file;
    json_t **lists; /* For each entry its "urls"; borrowed, or NULL. */
    struct err *e;
};

static int no_memory(struct err *e)
{
    return err_set(e, ERR_RESOURCE, "no memory left for the URLs");
}

static int compare_entry(const void *key, const void *entry)
{
    return path_compare(key, ((const struct manifest_entry *)entry)->path);
}

/* The reader of manifests has checked all of it. Of an entry that is listed
 * twice alike, the one with URLs counts. */
static void find_lists(struct maker *k, json_t *root)
{
    size_t i;
    json_t *file;

    json_array_foreach(json_object_get(root, "files"), i, file) {
        const char *path = json_string_value(json_object_get(file, "path"));
        json_t *urls = json_object_get(file, "urls");
        const struct manifest_entry *at = path && json_array_size(urls) > 0
            ? bsearch(path, k->m->entries, k->m->n_entries,
                      sizeof *k->m->entries, compare_entry)
            : NULL;

        if (at)
            k->lists[at - k->m->entries] = urls;
    }
}

char *urls_join(const char *base, const char *path)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/";
    static const char hex[] = "0123456789ABCDEF";
    size_t n = strlen(base), len = n + 3 * strlen(path) + 2;
    char *ret = malloc(len), *s = ret;

    if (!ret)
        return NULL;
    memcpy(s, base, n);
    s += n;
    if (n > 0 && s[-1] != '/')
        *s++ = '/';
    for (; *path; path++) {
        unsigned char c = (unsigned char)*path;

        if (strchr(plain, c)) {
            *s++ = (char)c;
        } else {
            *s++ = '%';
            *s++ = hex[c >> 4];
            *s++ = hex[c & 15];
        }
    }
    *s = '\0';
    return ret;
}

static const char *url_fault(const char *url)
{
    static const char *const schemes[] = {"https", "http", "file", "ftp",
                                          "ftps"};
    const char *rest = strstr(url, "://");

    if (!rest)
        return "it has no scheme, such as https://";
    for (const char *s = url; *s; s++)
        if ((unsigned char)*s <= ' ' || *s == 0x7f)
            return "it has a blank or a control character: write it as %XX";
    for (unsigned i = 0; i < sizeof schemes / sizeof schemes[0]; i++)
        if (strlen(schemes[i]) == (size_t)(rest - url) &&
            strncasecmp(url, schemes[i], strlen(schemes[i])) == 0)
            return rest[3] ? NULL : "nothing follows its scheme";
    return "its scheme is none of https, http, file, ftp, ftps";
}

/* Index of the URL's host; a new one is added. */
static int host_of(struct urls *u, const char *url, uint32_t *ret)
{
    const char *rest = strstr(url, "://") + 3;
    size_t len = (size_t)(rest - url) + strcspn(rest, "/?#");
    struct item_host *h;

    for (*ret = 0; *ret < u->n_hosts; ++*ret)
        if (strncmp(u->hosts[*ret].name, url, len) == 0 &&
            strchr("/?#", u->hosts[*ret].name[len]))
            return 0;
    if (u->n_hosts == URLS_HOSTS_MAX) {
        *ret = URLS_HOSTS_MAX - 1;
        return 0;
    }
    h = realloc(u->hosts, (u->n_hosts + 1) * sizeof *h);
    if (!h)
        return -1;
    u->hosts = h;
    h[u->n_hosts++] = (struct item_host){.name = url}; /* Up to its path. */
    return 0;
}

/* Takes `text`. */
static int add_url(struct maker *k, struct item *it, char *text, uint32_t line)
{
    struct urls *u = k->u;
    struct item_url *url = &u->all[u->n_all];
    char shown[ANSWER_URL_MAX];
    const char *why;

    if (!text)
        return no_memory(k->e);
    u->texts[u->n_texts++] = text;
    why = url_fault(text);
    if (why)
        return err_set(k->e, ERR_DATA, "%s:%u: the URL '%s' is refused: %s",
                       k->file, line, answer_show_url(shown, text), why);
    *url = (struct item_url){.url = text};
    if (host_of(u, text, &url->host) != 0)
        return no_memory(k->e);
    u->n_all++;
    it->n_urls++;
    return 0;
}

static int make_item(struct maker *k, size_t i, const char *const *mirrors,
                     unsigned n_mirrors)
{
    const struct manifest_entry *entry = &k->m->entries[i];
    struct item *it = &k->u->items[i];
    struct path_shown p;
    json_t *url;
    size_t j;
    int rc = 0;

    it->urls = &k->u->all[k->u->n_all];
    json_array_foreach(k->lists[i], j, url)
        if (rc == 0 && json_is_string(url))
            rc = add_url(k, it, strdup(json_string_value(url)), entry->line);
    for (unsigned n = 0; rc == 0 && n < n_mirrors; n++)
        rc = add_url(k, it, urls_join(mirrors[n], entry->path), entry->line);
    if (rc == 0 && it->n_urls == 0)
        return err_set(k->e, ERR_DATA, "%s:%u: '%s' has no URL: give it some "
                       "\"urls\" in the manifest, or use --mirror URL",
                       k->file, entry->line,
                       path_show(&p, NULL, entry->path));
    return rc;
}

static int make_all(struct maker *k, const char *const *mirrors,
                    unsigned n_mirrors)
{
    size_t n = k->m->n_entries, n_urls = n * n_mirrors;
    int rc = 0;

    for (size_t i = 0; i < n; i++)
        n_urls += json_array_size(k->lists[i]);
    k->u->items = calloc(n + 1, sizeof *k->u->items);
    k->u->all = calloc(n_urls + 1, sizeof *k->u->all);
    k->u->texts = calloc(n_urls + 1, sizeof *k->u->texts);
    if (!k->u->items || !k->u->all || !k->u->texts)
        return no_memory(k->e);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = make_item(k, i, mirrors, n_mirrors);
    return rc;
}

/* NULL where it is no JSON: a list of sums, say, has no URLs. Any byte order
 * mark was let pass by the reader of manifests. */
static json_t *load(const char *path)
{
    static const char bom[] = "\xef\xbb\xbf";
    autofclose FILE *f = fopen(path, "re");
    char first[3];

    if (!f)
        return NULL;
    if (fread(first, 1, sizeof first, f) != sizeof first ||
        memcmp(first, bom, sizeof first) != 0)
        rewind(f);
    return json_loadf(f, 0, NULL);
}

int urls_read(struct urls *ret, const struct manifest *m, const char *path,
              const char *const *mirrors, unsigned n_mirrors, struct err *e)
{
    struct urls u = {.items = NULL};
    autofree json_t **lists = calloc(m->n_entries + 1, sizeof *lists);
    struct maker k = {.u = &u, .m = m, .file = path, .lists = lists, .e = e};
    json_t *root = load(path);
    int rc;

    if (!lists) {
        json_decref(root);
        return no_memory(e);
    }
    find_lists(&k, root);
    rc = make_all(&k, mirrors, n_mirrors);
    json_decref(root);
    if (rc)
        urls_free(&u);
    else
        *ret = u;
    return rc;
}

void urls_free(struct urls *u)
{
    for (size_t i = 0; i < u->n_texts; i++)
        free(u->texts[i]);
    free(u->texts);
    free(u->all);
    free(u->items);
    free(u->hosts);
    memset(u, 0, sizeof *u);
}
