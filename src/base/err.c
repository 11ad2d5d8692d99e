/* err: see err.h. */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct err_row rows[] = {
#define X(name, status, word, retry, meaning)                                  \
    {status, #name, word, retry, meaning},
    ERR_TABLE(X)
#undef X
};

int err_set(struct err *e, int code, const char *fmt, ...)
{
    va_list ap;

    e->code = code;
    va_start(ap, fmt);
    (void)vsnprintf(e->text, sizeof e->text, fmt, ap);
    va_end(ap);
    return -code;
}

int err_wrap(struct err *e, const char *fmt, ...)
{
    char was[ERR_TEXT_MAX];
    int len;
    va_list ap;

    memcpy(was, e->text, sizeof was);
    va_start(ap, fmt);
    len = vsnprintf(e->text, sizeof e->text, fmt, ap);
    va_end(ap);
    if (len >= 0 && (size_t)len < sizeof e->text - 1)
        (void)snprintf(e->text + len, sizeof e->text - (size_t)len, ": %s",
                       was);
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
