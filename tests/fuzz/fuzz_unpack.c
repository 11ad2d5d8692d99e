/* Fuzz target: bytes of an archive. The first byte says which kind. Nothing is
 * written. */
#include "dataset/unpack.h"
#include "fuzz/fuzz.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct pieces {
    const uint8_t *at;
    size_t left;
};

static long next_piece(void *ctx, const void **ret)
{
    struct pieces *p = ctx;
    size_t n = p->left < 1000 ? p->left : 1000;

    *ret = p->at;
    p->at += n;
    p->left -= n;
    return (long)n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum manifest_unpack formats[] = {UNPACK_TAR, UNPACK_TAR_GZ,
                                                   UNPACK_TAR_ZST,
                                                   UNPACK_TAR_XZ, UNPACK_ZIP};
    struct pieces p = {data + 1, size - 1};
    struct unpack u = {.beside = "a/b.tar", .to = -1, .max = 1u << 20,
                       .read = next_piece, .ctx = &p, .fd = -1};
    enum unpack_end end;

    if (size == 0)
        return 0;
    u.format = formats[data[0] % 5];
    if (u.format == UNPACK_ZIP) { /* Its directory is at the end. */
        u.read = NULL;
        u.fd = memfd_create("zip", MFD_CLOEXEC);
        fuzz_require(u.fd >= 0 && write(u.fd, data + 1, size - 1) ==
                                      (ssize_t)(size - 1) &&
                     lseek(u.fd, 0, SEEK_SET) == 0);
    }
    end = unpack_run(&u);
    if (u.fd >= 0)
        (void)close(u.fd);
    fuzz_require(u.n_bytes <= u.max);
    fuzz_require((end == UNPACK_DATA) == (u.why[0] != '\0'));
    for (size_t i = 0; i < u.members.n; i++) {
        const char *path = u.members.at[i].path;

        fuzz_require(!path_fault(path) && strncmp(path, "a/", 2) == 0);
        fuzz_require(*unpack_members_slot(&u.members, path) == i + 1);
    }
    unpack_members_free(&u.members);
    return 0;
}
