/* Fuzz target: text -> manifest, in every form. The first byte says which. */
#include "dataset/manifest.h"
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

struct pieces {
    const uint8_t *at;
    size_t left;
};

static long next_piece(void *ctx, char *buf, size_t cap, struct err *e)
{
    struct pieces *p = ctx;
    size_t n = p->left < 7 ? p->left : 7;

    (void)e;
    n = n < cap ? n : cap;
    if (n > 0)
        memcpy(buf, p->at, n);
    p->at += n;
    p->left -= n;
    return (long)n;
}

/* What was read is written as sums, and they say the same. */
static void check_sums(struct manifest *m)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    struct manifest again;
    struct err e;

    if (!f)
        return;
    if (manifest_write_sums(f, m, &e) == 0 && fflush(f) == 0) {
        fuzz_require(manifest_read(&again, "sums", text, len, &e) == 0);
        fuzz_require(again.n_entries == m->n_entries);
        for (size_t i = 0; i < m->n_entries; i++)
            fuzz_require(strcmp(again.entries[i].path, m->entries[i].path) ==
                         0);
        manifest_free(&again);
    }
    (void)fclose(f);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum manifest_form forms[] = {FORM_ANY, FORM_BAG, FORM_TAGS};
    struct pieces p = {data + 1, size - 1};
    struct manifest_input in = {.file = "m", .read = next_piece, .ctx = &p};
    struct manifest m;
    struct err e = {.code = 0};

    if (size == 0)
        return 0;
    in.form = forms[data[0] % 3];
    if (manifest_parse(&m, &in, &e)) {
        fuzz_require(e.code == ERR_DATA && e.text[0] != '\0');
        return 0;
    }
    for (size_t i = 0; m.form != FORM_LFS && i < m.n_entries; i++)
        fuzz_require(!path_fault(m.entries[i].path) &&
                     !path_fault(m.entries[i].out_path));
    if (m.form != FORM_LFS && manifest_finish(&m, "m", &e) == 0)
        check_sums(&m);
    manifest_free(&m);
    return 0;
}
