/* archive_static: what the static program's libarchive asks for and never
 * needs. Linked into build/agent alone, and before the libraries.
 *
 * Its zip reader knows bzip2 and encrypted entries, for which it would bring
 * libbz2 and nettle along, 100 KB of code that reads foreign bytes. An entry
 * with bzip2 fails to be read; encrypted ones are refused before. libzstd would
 * bring the formats of its versions 0.5 to 0.7, of 2015 and 2016, another 90
 * KB: such a stream fails to be opened. */
#include "dataset/unpack.h"

#include <langinfo.h>
#include <stddef.h>

#define REFUSE(name)                                                           \
    int name(void);                                                            \
    int name(void)                                                             \
    {                                                                          \
        return -1;                                                             \
    }

REFUSE(BZ2_bzDecompressInit)
REFUSE(BZ2_bzDecompress)
REFUSE(BZ2_bzDecompressEnd)
REFUSE(nettle_aes128_encrypt)
REFUSE(nettle_aes128_set_encrypt_key)
REFUSE(nettle_aes192_encrypt)
REFUSE(nettle_aes192_set_encrypt_key)
REFUSE(nettle_aes256_encrypt)
REFUSE(nettle_aes256_set_encrypt_key)
REFUSE(nettle_hmac_sha1_digest)
REFUSE(nettle_hmac_sha1_set_key)
REFUSE(nettle_hmac_sha1_update)
REFUSE(nettle_pbkdf2_hmac_sha1)

#define OLD_ERROR(name)                                                        \
    size_t name(void);                                                         \
    size_t name(void)                                                          \
    {                                                                          \
        return (size_t)-1;                                                     \
    }
#define OLD_NONE(name)                                                         \
    void *name(void);                                                          \
    void *name(void)                                                           \
    {                                                                          \
        return NULL;                                                           \
    }
#define OLD_ZSTD(v)                                                            \
    OLD_NONE(ZBUFFv0##v##_createDCtx)                                          \
    OLD_ERROR(ZBUFFv0##v##_decompressContinue)                                 \
    OLD_ERROR(ZBUFFv0##v##_decompressInitDictionary)                           \
    OLD_ERROR(ZBUFFv0##v##_freeDCtx)                                           \
    OLD_NONE(ZSTDv0##v##_createDCtx)                                           \
    OLD_ERROR(ZSTDv0##v##_decompress_usingDict)                                \
    OLD_ERROR(ZSTDv0##v##_findFrameSizeInfoLegacy)                             \
    OLD_ERROR(ZSTDv0##v##_freeDCtx)                                            \
    OLD_ERROR(ZSTDv0##v##_getFrameParams)

OLD_ZSTD(5)
OLD_ZSTD(6)
OLD_ZSTD(7)

/* Names in archives are UTF-8 or taken as they are, in any locale; an image
 * need have no file of a locale. Nothing else asks for it. */
char *nl_langinfo(nl_item item)
{
    static char utf8[] = "UTF-8", none[] = "";

    return item == CODESET ? utf8 : none;
}

/* liblzma looks at the CPU before main(), by CPUID instructions, which a
 * virtual machine takes over: 60 us, 4 % of a start, and most starts unpack
 * nothing. So late.ld takes its constructors out of the list of those that libc
 * calls. Without late.ld (`make order=`) there are no such names. */
extern void (*const unpack_late[])(void) __attribute__((weak));
extern void (*const unpack_late_end[])(void) __attribute__((weak));

void unpack_look_at_cpu(void)
{
    for (void (*const *f)(void) = unpack_late; f != unpack_late_end; f++)
        (*f)();
}
