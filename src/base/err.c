/* err: see err.h. */
#include "base/err.h"

#include "base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>

static const struct err_row rows[] = {
#define X(name, status, word, retry, meaning)                                  \
    {status, #name, word, retry, meaning},
    ERR_TABLE(X)
#undef X
};

/* Formatted aside, since an argument may be the text that was there. */
__attribute__((format(printf, 3, 0)))
static void set_text(struct err *e, const char *after, const char *fmt,
                     va_list ap)
{
    char text[ERR_TEXT_MAX];
    struct text t;

    text_init(&t, text, sizeof text);
    text_vadd(&t, fmt, ap);
    text_add(&t, "%s%s", *after ? ": " : "", after);
    /* Values that users gave are in it. */
    (void)text_make_line(text, sizeof text - 1);
    (void)text_copy(e->text, sizeof e->text, text);
}

int err_set(struct err *e, int code, const char *fmt, ...)
{
    va_list ap;

    e->code = code;
    va_start(ap, fmt);
    set_text(e, "", fmt, ap);
    va_end(ap);
    return -code;
}

int err_wrap(struct err *e, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    set_text(e, e->text, fmt, ap);
    va_end(ap);
    return -e->code;
}

const struct err_row *err_rows(unsigned *ret_n)
{
    *ret_n = sizeof rows / sizeof rows[0];
    return rows;
}

const struct err_row *err_row(int status)
{
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].status == status)
            return &rows[i];
    return NULL;
}

bool err_wants_other_path(int error)
{
    return error == EACCES || error == EPERM || error == EROFS ||
           error == ENOTDIR || error == EISDIR || error == ELOOP ||
           error == ENAMETOOLONG;
}
