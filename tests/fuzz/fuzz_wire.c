/* fuzz_wire: whatever is read as a frame is the same when written again, and
 * where more bytes are asked for, a whole frame would still fit. */
#include "fuzz/fuzz.h"

#include "rendezvous/wire.h"

#include <string.h>

#define VERSION_AT 4 /* In the head: docs/wire.md. */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static struct wire_msg m;
    uint8_t again[WIRE_FRAME_MAX];
    const char *why = NULL;
    unsigned version = 0;
    int n = wire_decode(data, len, &m, &why, &version);

    if (n < 0) {
        fuzz_require(why != NULL);
    } else if (n == 0) {
        fuzz_require(len < WIRE_FRAME_MAX);
    } else {
        fuzz_require((size_t)n <= len);
        /* REFUSE of another version is read; it would be written as this
         * one's. */
        if (data[VERSION_AT] == WIRE_VERSION) {
            fuzz_require(wire_encode(&m, again) == (size_t)n);
            fuzz_require(memcmp(again, data, (size_t)n) == 0);
        }
    }
    return 0;
}
