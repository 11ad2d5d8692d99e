/* digits_save: see digits_save.h. The head, the parameters, and the FNV-1a of
 * both; in the byte order of the machine, as it never leaves it. */
#include "digits_save.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct head {
    char magic[8];
    uint64_t seed, n_params;
    uint32_t pixels, epoch;
};

static const char magic[8] = {'d', 'i', 'g', 'i', 't', 's', '1', '\n'};

static int write_all(FILE *f, const struct head *h, const struct model *m)
{
    uint64_t sum = digits_fnv(DIGITS_FNV, h, sizeof *h);

    sum = digits_fnv(sum, m->param, m->n * sizeof *m->param);
    return fwrite(h, sizeof *h, 1, f) == 1 &&
                   fwrite(m->param, sizeof *m->param, m->n, f) == m->n &&
                   fwrite(&sum, sizeof sum, 1, f) == 1 && fflush(f) == 0 &&
                   fsync(fileno(f)) == 0
               ? 0
               : -1;
}

/* Make the rename itself last: fsync the folder. */
static void sync_folder(const char *path)
{
    char dir[512];
    const char *slash = strrchr(path, '/');
    int len = slash ? (int)(slash - path) : 1, fd;

    (void)snprintf(dir, sizeof dir, "%.*s", len ? len : 1, slash ? path : ".");
    fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    (void)fsync(fd); /* Not all file systems can: the file itself is safe. */
    (void)close(fd);
}

int checkpoint_save(const char *path, const struct model *m, uint64_t seed,
                    uint32_t epoch, char why[DIGITS_WHY])
{
    struct head h = {.seed = seed, .n_params = m->n, .pixels = m->pixels,
                     .epoch = epoch};
    char tmp[512];
    FILE *f = NULL;
    bool is_written;

    memcpy(h.magic, magic, sizeof magic);
    errno = ENAMETOOLONG;
    if (snprintf(tmp, sizeof tmp, "%s.tmp", path) < (int)sizeof tmp)
        f = fopen(tmp, "wbe");
    if (f) {
        is_written = write_all(f, &h, m) == 0;
        if (fclose(f) == 0 && is_written && rename(tmp, path) == 0) {
            sync_folder(path);
            return 0;
        }
    }
    (void)snprintf(why, DIGITS_WHY, "checkpoint %s: %s", path,
                   strerror(errno));
    return -1;
}

static const char *read_all(FILE *f, struct model *m, uint64_t seed,
                            uint32_t *ret_epoch)
{
    struct head h;
    uint64_t sum, stored;

    if (fread(&h, sizeof h, 1, f) != 1 || memcmp(h.magic, magic, sizeof magic))
        return "is no checkpoint of this program";
    if (h.seed != seed || h.n_params != m->n || h.pixels != m->pixels)
        return "belongs to a training with another seed or other images";
    if (fread(m->param, sizeof *m->param, m->n, f) != m->n ||
        fread(&stored, sizeof stored, 1, f) != 1)
        return "is cut short";
    sum = digits_fnv(DIGITS_FNV, &h, sizeof h);
    if (digits_fnv(sum, m->param, m->n * sizeof *m->param) != stored)
        return "is damaged: its checksum does not fit";
    *ret_epoch = h.epoch;
    return NULL;
}

int checkpoint_load(const char *path, struct model *m, uint64_t seed,
                    uint32_t *ret_epoch, char why[DIGITS_WHY])
{
    FILE *f = fopen(path, "rbe");
    const char *fault;

    *ret_epoch = 0;
    if (!f && errno == ENOENT)
        return 0;
    fault = f ? read_all(f, m, seed, ret_epoch) : strerror(errno);
    if (f)
        (void)fclose(f);
    if (fault)
        (void)snprintf(why, DIGITS_WHY, "checkpoint %s: %s", path, fault);
    return fault ? -1 : 0;
}
