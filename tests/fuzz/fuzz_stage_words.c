/* Fuzz target: what stagers read of each other: a row of a stage's marker, the
 * word of a lease, a line of the stager to agent. The first byte says which.
 * What is read is written the same way. */
#include "dataset/lease_word.h"
#include "dataset/marker_text.h"
#include "dataset/stager.h"
#include "fuzz/fuzz.h"

#include <string.h>

static void take_row(const uint8_t *data, size_t size)
{
    static char path[DATASET_PATH_MAX + 1], again[2 * sizeof path + 1];
    struct marker_row row;
    size_t n;

    if (!marker_parse((const char *)data, size, &row, path) ||
        memchr(data, '\0', size) || memchr(data, '\n', size))
        return; /* No line of text. */
    n = marker_escape(again, path) - 1;
    fuzz_require(n <= size && memcmp(again, data + size - n, n) == 0);
    fuzz_require(row.mtime.tv_nsec >= 0 && row.mtime.tv_nsec < 1000000000);
    fuzz_require(row.has_sha256 || !row.link);
}

static void take_word(const char *text)
{
    char again[LEASE_WORD + 1] = "";
    struct lease_word a, b;

    if (!lease_parse(text, &a))
        return;
    fuzz_require(a.at.done <= a.at.total && a.at.n_done <= a.at.n_files);
    fuzz_require(a.silent_ms <= LEASE_SILENT_MAX_MS);
    lease_format(&a, again);
    fuzz_require(lease_parse(again, &b));
    fuzz_require(strcmp(a.id, b.id) == 0 && strcmp(a.key, b.key) == 0);
    fuzz_require(a.beat == b.beat && a.at.total == b.at.total);
}

static void take_line(const char *line)
{
    static struct stager_line a, b;
    static char again[2 * STAGER_LINE_MAX];

    if (!stager_parse(line, &a))
        return;
    fuzz_require(a.percent <= 100 && a.now.done <= a.now.total);
    fuzz_require(stager_format(&a, again, sizeof again));
    again[strcspn(again, "\n")] = '\0';
    fuzz_require(stager_parse(again, &b) && a.kind == b.kind);
    fuzz_require(strcmp(a.set.dir, b.set.dir) == 0);
    fuzz_require(memcmp(a.set.digest, b.set.digest, 32) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text;

    if (size == 0)
        return 0;
    if (data[0] % 3 == 0) {
        take_row(data + 1, size - 1);
        return 0;
    }
    text = malloc(size);
    if (!text)
        abort();
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    if (data[0] % 3 == 2)
        text[strcspn(text, "\n")] = '\0';
    if (data[0] % 3 == 1)
        take_word(text);
    else
        take_line(text);
    free(text);
    return 0;
}
