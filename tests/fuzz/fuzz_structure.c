/* Fuzz target: the checks of a file's structure. The first byte says which. */
#include "dataset/structure.h"
#include "fuzz/fuzz.h"

#include <string.h>

static void take_tar(const uint8_t *data, size_t size, struct structure *ret)
{
    struct structure_tar t = {.n = 0};

    while (!t.ended && t.n < size && size - t.n >= STRUCTURE_BLOCK) {
        uint64_t before = t.n;

        if (!structure_tar_block(&t, data + t.n, ret))
            return;
        fuzz_require(t.n > before); /* Else it would never end. */
    }
    (void)structure_tar_end(&t, size, ret);
}

static void take_head(const char *path, const uint8_t *data, size_t size,
                      struct structure *ret)
{
    struct structure_view v = {.path = path, .size = size};

    v.n_head = size < sizeof v.head ? size : sizeof v.head;
    memcpy(v.head, data, v.n_head);
    if (structure_page(&v, ret) && structure_idx(&v, ret))
        (void)structure_tokens(&v, ret);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct structure s = {.kind = NULL};

    if (size == 0)
        return 0;
    switch (data[0] % 4) {
    case 0:
        take_tar(data + 1, size - 1, &s);
        break;
    case 1:
        (void)structure_safetensors((const char *)data + 1, size - 1,
                                    8 + size - 1, &s);
        break;
    case 2:
        take_head("x-idx3-ubyte", data + 1, size - 1, &s);
        break;
    default:
        take_head("x.bin", data + 1, size - 1, &s);
        break;
    }
    fuzz_require(memchr(s.fault, '\0', sizeof s.fault) != NULL);
    return 0;
}
