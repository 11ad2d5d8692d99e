/* path: see path.h. */
#include "dataset/path.h"

#include "base/text.h"

#include <string.h>

static const char *component_fault(const char *at, size_t len)
{
    if (len == 0)
        return "it has an empty component";
    if (len == 1 && at[0] == '.')
        return "it has a '.' component";
    if (len == 2 && at[0] == '.' && at[1] == '.')
        return "it has a '..' component";
    if (len > DATASET_COMPONENT_MAX)
        return "it has a component of more than 255 bytes";
    return NULL;
}

static bool begins_with(const char *path, const char *component)
{
    size_t len = strlen(component);

    return strncmp(path, component, len) == 0 &&
           (path[len] == '\0' || path[len] == '/');
}

const char *path_fault(const char *path)
{
    size_t depth = 0;

    if (path[0] == '\0')
        return "it is empty";
    if (path[0] == '/')
        return "it is absolute";
    if (strlen(path) > DATASET_PATH_MAX)
        return "it has more than 4000 bytes";
    for (const char *at = path;; depth++) {
        size_t len = strcspn(at, "/");
        const char *why = component_fault(at, len);

        if (why)
            return why;
        if (at[len] == '\0')
            break;
        at += len + 1;
    }
    if (depth >= DATASET_DEPTH_MAX)
        return "it has more than 128 components";
    if (begins_with(path, DATASET_MARKER) ||
        begins_with(path, DATASET_MARKER_TMP))
        return "the name is kept for the marker of a stage";
    return NULL;
}

const char *path_name_fault(const char *name)
{
    if (name[0] == '\0')
        return "it is empty";
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return "it is no name of a folder";
    if (strlen(name) > DATASET_NAME_MAX)
        return "it has more than 200 bytes";
    for (const char *at = name; *at; at++) {
        if (*at == '/')
            return "it has a slash";
        if ((unsigned char)*at < 0x20 || *at == 0x7f)
            return "it has a control character";
    }
    return NULL;
}

static int rank_of(char c)
{
    if (c == '\0')
        return 0;
    return c == '/' ? 1 : (unsigned char)c + 1;
}

int path_compare(const char *a, const char *b)
{
    while (*a == *b && *a != '\0') {
        a++;
        b++;
    }
    return rank_of(*a) - rank_of(*b);
}

const char *path_show(struct path_shown *shown, const char *root,
                      const char *path)
{
    size_t n_root = root ? strlen(root) : 0;
    size_t n_path = strlen(path);
    bool slash = n_root > 0 && root[n_root - 1] != '/';
    size_t total = n_root + slash + n_path;
    size_t max = sizeof shown->at - 1;
    size_t skip = total > max ? total - max + 3 : 0;
    char *to = shown->at;

    if (skip > 0) {
        memcpy(to, "...", 3);
        to += 3;
    }
    for (size_t i = skip; i < total; i++) {
        char c;

        if (i < n_root)
            c = root[i];
        else if (slash && i == n_root)
            c = '/';
        else
            c = path[i - n_root - slash];
        *to++ = c == '\n' || c == '\t' ? '?' : c;
    }
    *to = '\0';
    (void)text_make_utf8(shown->at, max);
    return shown->at;
}
