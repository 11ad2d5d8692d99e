/* Replay of a fuzz target's corpus, each input whole and cut at some places:
 * prints TAP. A fault ends the program. */
#include "fuzz/fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#define INPUT_MAX (1u << 20)

/* Of the exact size, so that a sanitizer sees a byte too many. */
static void give(const uint8_t *data, size_t n)
{
    uint8_t *copy = malloc(n > 0 ? n : 1);

    if (!copy)
        abort();
    memcpy(copy, data, n);
    (void)LLVMFuzzerTestOneInput(copy, n);
    free(copy);
}

static int replay(const char *folder, const char *name)
{
    static uint8_t data[INPUT_MAX];
    char path[4096];
    size_t n;
    FILE *f;

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    f = fopen(path, "re");
    if (!f)
        return -1;
    n = fread(data, 1, sizeof data, f);
    (void)fclose(f);
    give(data, n);
    for (size_t cut = 0; cut < n; cut += 1 + n / 64)
        give(data, cut);
    return 0;
}

int main(void)
{
    DIR *dir = opendir(FUZZ_CORPUS);
    struct dirent *d;
    unsigned n = 0;

    while (dir && (d = readdir(dir)))
        if (d->d_name[0] != '.' && replay(FUZZ_CORPUS, d->d_name) == 0)
            n++;
    if (dir)
        (void)closedir(dir);
    (void)printf("%sok 1 - %u inputs of %s are replayed\n1..1\n",
                 n > 0 ? "" : "not ", n, FUZZ_CORPUS);
    return n == 0;
}
