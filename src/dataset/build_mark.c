/* build_mark: see build_mark.h. */
#include "dataset/build_mark.h"

#include "dataset/marker.h"
#include "dataset/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int no_memory(struct err *e)
{
    return err_set(e, ERR_RESOURCE, "no memory left to stage");
}

/* The target of one link may be another: only now all are there. One that
 * leads to nothing, or in a circle, does no harm. */
static int check_link(const struct space *part, const char *path,
                      struct err *e)
{
    int fd = tree_open_beneath(part->fd, path, O_PATH);
    struct path_shown p;

    if (fd >= 0)
        (void)close(fd);
    if (fd >= 0 || errno == ENOENT || errno == ENOTDIR || errno == ELOOP)
        return 0;
    return err_set(e, ERR_DATA, "link '%s' of an archive is refused: %s",
                   path_show(&p, NULL, path),
                   errno == EXDEV ? "it leaves the folder" : strerror(errno));
}

static int add_members(struct marker *marker, const struct space *part,
                       const struct unpack_members *list, struct err *e)
{
    for (size_t i = 0; i < list->n; i++) {
        const struct unpack_member *member = &list->at[i];
        struct marker_row *row = marker_add(marker, MARKER_NO_OUTPUT,
                                            member->path, NULL);
        int rc = member->link ? check_link(part, member->path, e) : 0;

        if (!row)
            return no_memory(e);
        if (rc)
            return rc;
        row->link = member->link;
        row->has_sha256 = true;
        memcpy(row->sha256, member->sha256, sizeof row->sha256);
    }
    return 0;
}

static int by_path(const void *a, const void *b)
{
    return path_compare(((const struct marker_row *)a)->path,
                        ((const struct marker_row *)b)->path);
}

static int collect(struct marker *marker, const struct manifest *m,
                   const struct space *part, uint8_t (*unpacked)[32],
                   struct unpack_members *members, struct err *e)
{
    int rc = 0;

    for (size_t i = 0; i < m->n_outputs; i++) {
        const struct manifest_output *out = &m->outputs[i];
        struct marker_row *row = marker_add(marker, i, out->path, NULL);

        if (!row)
            return no_memory(e);
        row->has_sha256 = out->unpacked;
        if (out->unpacked)
            memcpy(row->sha256, unpacked[out->entry], 32);
    }
    for (size_t i = 0; members && rc == 0 && i < m->n_entries; i++)
        rc = add_members(marker, part, &members[i], e);
    if (members && marker->n > 0)
        qsort(marker->rows, marker->n, sizeof *marker->rows, by_path);
    return rc;
}

static int look_at_all(struct marker *marker, const struct space *part,
                       struct err *e)
{
    for (size_t i = 0; i < marker->n; i++) {
        struct marker_row *row = &marker->rows[i];
        struct stat st;

        if (fstatat(part->fd, row->path, &st, AT_SYMLINK_NOFOLLOW) < 0)
            return space_fault(part, "look at", row->path, errno, e);
        marker_row_set(row, &st);
    }
    return 0;
}

int build_mark(const struct manifest *m, const struct space *part,
               uint8_t (*unpacked)[32], struct unpack_members *members,
               struct err *e)
{
    struct marker marker = {.n = 0};
    int rc = collect(&marker, m, part, unpacked, members, e);

    if (rc == 0)
        rc = look_at_all(&marker, part, e);
    if (rc == 0) {
        rc = marker_write(part->fd, m, &marker);
        if (rc)
            rc = space_fault(part, "write", DATASET_MARKER, -rc, e);
    }
    marker_free(&marker);
    return rc;
}
