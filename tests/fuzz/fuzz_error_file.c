/* fuzz_error_file: whatever a worker leaves as its error file, what is read of
 * it is valid UTF-8 that fits, and where the inner object begins lies in it. */
#include "fuzz/fuzz.h"

#include "base/text.h"
#include "supervise/error_file.h"

#include <string.h>

static void require_clean(char *s, size_t cap)
{
    char copy[4096];
    size_t n = strlen(s);

    fuzz_require(n < cap && cap <= sizeof copy);
    memcpy(copy, s, n + 1);
    fuzz_require(text_make_utf8(copy, n) == n);
    fuzz_require(memcmp(copy, s, n) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static struct error_file f;
    char out[1024];
    bool found = error_file_read((const char *)data, len, &f);

    require_clean(f.message, sizeof f.message);
    require_clean(f.stack, sizeof f.stack);
    fuzz_require(f.inner_at <= len);
    fuzz_require(f.inner_at == 0 || data[f.inner_at - 1] == '{');
    fuzz_require(!found || f.message[0]);
    for (size_t cap = 1; cap <= sizeof out; cap = cap * 3 + 1) {
        size_t n = error_file_text(&f, out, cap);

        fuzz_require(n < cap && strlen(out) == n);
        require_clean(out, sizeof out);
    }
    return 0;
}
