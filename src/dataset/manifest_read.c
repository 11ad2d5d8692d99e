/* manifest_read: which form a text has; see manifest.h. */
#include "dataset/manifest.h"

#include "dataset/manifest_reader.h"

#include <stdlib.h>
#include <string.h>

static bool starts(const struct reader *r, const char *word)
{
    size_t n = strlen(word);

    return r->len - r->pos >= n && memcmp(r->text + r->pos, word, n) == 0;
}

/* What it is instead of a manifest, for some that are given by mistake. */
static int check_foreign(struct reader *r)
{
    if (starts(r, "\xff\xfe") || starts(r, "\xfe\xff"))
        return reader_fail(r, r->pos,
                           "it is UTF-16, as PowerShell writes it: save it as "
                           "UTF-8");
    if (starts(r, "<"))
        return reader_fail(r, r->pos,
                           "it is an HTML or XML page, no manifest");
    if (starts(r, "outs:") || starts(r, "schema:") || starts(r, "wdir:"))
        return reader_fail(r, r->pos,
                           "it is YAML, as a .dvc file: give the .dir object "
                           "that its md5 names, "
                           ".dvc/cache/files/md5/<2>/<30>.dir");
    return 0;
}

static enum manifest_form find_form(struct reader *r)
{
    if (reader_peek(r) == '{')
        return FORM_JSON;
    if (reader_peek(r) == '[')
        return FORM_DVC;
    if (starts(r, "version https://git-lfs"))
        return FORM_LFS;
    return FORM_SUMS;
}

static int read_form(struct reader *r)
{
    int rc = reader_refill(r);

    if (rc)
        return rc;
    if (starts(r, "\xef\xbb\xbf")) /* A byte order mark of UTF-8. */
        r->pos += 3;
    rc = check_foreign(r);
    if (rc)
        return rc;
    if (r->m->form == FORM_ANY)
        r->m->form = find_form(r);
    switch (r->m->form) {
    case FORM_JSON:
        return manifest_read_ours(r);
    case FORM_DVC:
        return manifest_read_dvc(r);
    case FORM_LFS:
        return manifest_read_lfs(r);
    case FORM_SUMS:
    case FORM_BAG:
    case FORM_TAGS:
    case FORM_ANY:
        break;
    }
    return manifest_read_lines(r);
}

int manifest_parse(struct manifest *ret, const struct manifest_input *in,
                   struct err *e)
{
    struct manifest m = {.form = in->form};
    struct reader r = {.file = in->file, .text = in->text, .len = in->len,
                       .line_n = 1, .m = &m, .e = e};
    int rc;

    if (in->read) {
        r.input = in;
        r.text = r.window = malloc(2 * READER_ITEM_MAX);
        r.len = 0;
        if (!r.window)
            return err_set(e, ERR_RESOURCE, "no memory left for the manifest");
    }
    rc = read_form(&r);
    free(r.window);
    if (rc == 0 && m.n_entries == 0)
        rc = err_set(e, ERR_DATA, "%s: it names no file", in->file);
    if (rc == 0)
        *ret = m;
    else
        manifest_free(&m);
    return rc;
}

int manifest_read(struct manifest *ret, const char *file, const char *text,
                  size_t len, struct err *e)
{
    struct manifest_input in = {.file = file, .form = FORM_ANY, .text = text,
                                .len = len};
    int rc = manifest_parse(ret, &in, e);

    if (rc)
        return rc;
    rc = manifest_finish(ret, file, e);
    if (rc)
        manifest_free(ret);
    return rc;
}
