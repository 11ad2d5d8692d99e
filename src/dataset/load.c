/* load: see load.h.
 *
 * The happy path: find out from the names alone whether it is a BagIt; read
 * the text piece by piece; give the set its name, and the object of a Git LFS
 * pointer its path; finish. */
#include "dataset/load.h"

#include "base/mem.h"
#include "base/text.h"
#include "dataset/load_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The set's name where the folder's will not do, as that of "/". */
#define NAME_FALLBACK "data"

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    if (!slash)
        return strdup(".");
    return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

static bool has_file(const char *folder, const char *name)
{
    char path[PATH_MAX];
    struct stat st;
    struct text t;

    text_init(&t, path, sizeof path);
    text_add(&t, "%s/%s", folder, name);
    return !t.cut && stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* A bag's folder, or its bagit.txt, stands for its strongest manifest. */
static int find_bag(const char *path, char *ret, size_t cap, struct err *e)
{
    static const char *const names[] = {
        "manifest-sha512.txt", "manifest-sha256.txt", "manifest-sha1.txt",
        "manifest-md5.txt"};
    struct stat st;
    struct path_shown p;
    bool folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    autofree char *bag = folder ? strdup(path) : folder_of(path);
    struct text t;

    text_init(&t, ret, cap);
    text_add(&t, "%s", path);
    if (!bag)
        return err_set(e, ERR_RESOURCE, "no memory left for the manifest");
    if (t.cut)
        return err_set(e, ERR_NODATA, "manifest '%s' cannot be read: %s",
                       path_show(&p, NULL, path), strerror(ENAMETOOLONG));
    if (!folder && strcmp(base_name(path), "bagit.txt") != 0)
        return 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (!has_file(bag, "bagit.txt") || !has_file(bag, names[i]))
            continue;
        text_init(&t, ret, cap);
        text_add(&t, "%s/%s", bag, names[i]);
        return 0;
    }
    return 0;
}

static enum manifest_form form_of(const char *path, const char *folder)
{
    const char *name = base_name(path);
    const char *tail = strrchr(name, '.');
    bool tags = strncmp(name, "tag", 3) == 0;

    if (strncmp(name + (tags ? 3 : 0), "manifest-", 9) != 0 || !tail ||
        strcmp(tail, ".txt") != 0 || !has_file(folder, "bagit.txt"))
        return FORM_ANY;
    return tags ? FORM_TAGS : FORM_BAG;
}

static void name_set(struct manifest *m, const char *folder)
{
    autofree char *real = realpath(folder, NULL);
    const char *name = real ? base_name(real) : "";

    if (path_name_fault(name))
        name = NAME_FALLBACK;
    (void)text_copy(m->name, sizeof m->name, name);
}

/* True where `name` in the source is the pointer itself. */
static bool is_itself(const char *pointer, const char *source,
                      const char *name)
{
    char path[PATH_MAX];
    struct stat a, b;
    struct text t;

    text_init(&t, path, sizeof path);
    text_add(&t, "%s/%s", source, name);
    return !t.cut && stat(pointer, &a) == 0 && stat(path, &b) == 0 &&
           a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* The object of a pointer: its name without an end that says "pointer"; the
 * same name in another folder; beside the pointer, the object's own name, or
 * the pointer's without its last end. */
static int name_object(struct manifest *m, const char *pointer,
                       const char *source, struct err *e)
{
    static const char *const ends[] = {".lfs", ".pointer", ".ptr"};
    char name[NAME_MAX + 1], oid[DIGEST_HEX_MAX];
    struct path_shown p;
    const char *why;
    char *tail;
    bool itself;

    if (!text_copy(name, sizeof name, base_name(pointer)))
        name[0] = '\0';
    tail = strrchr(name, '.');
    itself = is_itself(pointer, source, name);
    for (size_t i = 0; tail && i < sizeof ends / sizeof ends[0]; i++) {
        if (tail != name && strcmp(tail, ends[i]) == 0) {
            *tail = '\0';
            itself = false;
            break;
        }
    }
    digest_hex(m->entries[0].hash, 32, oid);
    if (itself && has_file(source, oid)) {
        memcpy(name, oid, strlen(oid) + 1);
    } else if (itself && tail && tail != name) {
        *tail = '\0';
        if (!has_file(source, name))
            *tail = '.';
    }
    why = path_fault(name);
    if (why)
        return err_set(e, ERR_DATA, "the object's name '%s' is refused: %s",
                       path_show(&p, NULL, name), why);
    free(m->entries[0].path);
    m->entries[0].path = m->entries[0].out_path = strdup(name);
    return m->entries[0].path
               ? 0
               : err_set(e, ERR_RESOURCE, "no memory left for the manifest");
}

/* `path` with each '%' as "%25". NULL without memory. */
static char *percent_escaped(const char *path)
{
    char *ret = malloc(3 * strlen(path) + 1), *to = ret;

    for (; ret && *path; path++) {
        *to++ = *path;
        if (*path == '%') {
            *to++ = '2';
            *to++ = '5';
        }
    }
    if (ret)
        *to = '\0';
    return ret;
}

/* RFC 8493 writes '%' as %25, and bagit-python, which most bags are made by,
 * as it is. What a bag has under that name only is meant so. */
static int settle_percents(struct manifest *m, const char *bag, struct err *e)
{
    for (size_t i = 0; i < m->n_entries; i++) {
        struct manifest_entry *entry = &m->entries[i];
        char *other;

        if (!strchr(entry->path, '%') || has_file(bag, entry->path))
            continue;
        other = percent_escaped(entry->path);
        if (!other)
            return err_set(e, ERR_RESOURCE, "no memory left for the manifest");
        if (path_fault(other) || !has_file(bag, other)) {
            free(other);
            continue;
        }
        free(entry->path);
        entry->path = entry->out_path = other;
    }
    return 0;
}

/* b2sum's hashes are as long as those of sha512. */
static int refuse_blake(const struct manifest *m, const char *path,
                        struct err *e)
{
    const char *name = base_name(path);
    struct path_shown p;

    if (m->entries[0].hash_kind != DIGEST_SHA512 ||
        !(strcasestr(name, "b2sum") || strcasestr(name, "blake2")))
        return 0;
    return err_set(e, ERR_DATA,
                   "manifest '%s' has BLAKE2 hashes, as its name says, which "
                   "are not read: use sha256, sha512, sha1 or md5",
                   path_show(&p, NULL, path));
}

/* What the text itself does not say; then finish. */
static int complete(struct manifest *m, const char *path, const char *folder,
                    const char *source, struct err *e)
{
    struct path_shown p;
    int rc = 0;

    if (m->form != FORM_JSON)
        name_set(m, folder);
    if (m->form == FORM_LFS)
        rc = name_object(m, path, source, e);
    else if (m->form == FORM_BAG || m->form == FORM_TAGS)
        rc = settle_percents(m, folder, e);
    else if (m->form == FORM_SUMS)
        rc = refuse_blake(m, path, e);
    if (rc == 0)
        rc = manifest_finish(m, path_show(&p, NULL, path), e);
    return rc;
}

int load_manifest(struct manifest *ret, const char *path, const char *source,
                  char **ret_source, struct err *e)
{
    char found[PATH_MAX];
    autofree char *folder = NULL, *from = NULL;
    int rc = find_bag(path, found, sizeof found, e);

    if (rc)
        return rc;
    folder = folder_of(found);
    if (folder)
        from = strdup(source ? source : folder);
    if (!from)
        return err_set(e, ERR_RESOURCE, "no memory left for the manifest");
    rc = load_file(ret, found, form_of(found, folder), e);
    if (rc)
        return rc;
    rc = complete(ret, found, folder, from, e);
    if (rc)
        manifest_free(ret);
    else
        *ret_source = steal(&from);
    return rc;
}
