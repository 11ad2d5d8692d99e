/* box: see box.h. */
#include "supervise/box.h"

#include <stdbool.h>
#include <string.h>

#define RULE_MIN 10 /* Characters of a line of "=". */

/* Where the line after the one at `s` begins, or the end. */
static const char *next_line(const char *s, const char *end)
{
    const char *newline = memchr(s, '\n', (size_t)(end - s));

    return newline ? newline + 1 : end;
}

static size_t line_len(const char *s, const char *end)
{
    const char *newline = memchr(s, '\n', (size_t)(end - s));

    return (size_t)((newline ? newline : end) - s);
}

static bool has(const char *s, size_t n, const char *words)
{
    return memmem(s, n, words, strlen(words)) != NULL;
}

static bool is_rule(const char *s, size_t n)
{
    return n >= RULE_MIN && strspn(s, "=") >= n;
}

/* "=====", and below it "train.py FAILED". */
static bool is_box(const char *s, const char *end)
{
    static const char failed[] = " FAILED";
    const char *title = next_line(s, end);
    size_t n = line_len(title, end);

    return is_rule(s, line_len(s, end)) && n >= sizeof failed - 1 &&
           memcmp(title + n - (sizeof failed - 1), failed,
                  sizeof failed - 1) == 0;
}

/* Behind the rule that closes the box; the end, where there is none. */
static const char *after_box(const char *s, const char *end)
{
    for (s = next_line(s, end); s < end; s = next_line(s, end))
        if (is_rule(s, line_len(s, end)))
            return next_line(s, end);
    return end;
}

/* What a launcher says of its workers, in one line. */
static bool is_launcher(const char *s, size_t n)
{
    return has(s, n, "failed (exitcode: ") ||
           (has(s, n, "closing signal SIG") && has(s, n, "process ")) ||
           has(s, n, "errors.ChildFailedError");
}

static bool is_traceback(const char *s, size_t n)
{
    return has(s, n, "Traceback (most recent call last):");
}

/* The end of a traceback of ChildFailedError that begins at `s`, or NULL where
 * it is one of another exception. */
static const char *after_traceback(const char *s, const char *end)
{
    for (s = next_line(s, end); s < end; s = next_line(s, end)) {
        size_t n = line_len(s, end);

        if (has(s, n, "errors.ChildFailedError"))
            return next_line(s, end);
        if (n > 0 && s[0] != ' ' && s[0] != '\t')
            return NULL; /* It has ended, or another one begins. */
    }
    return NULL;
}

size_t box_strip(char *s, size_t n)
{
    const char *from = s, *end = s + n, *next;
    size_t to = 0;

    while (from < end) {
        size_t len = line_len(from, end);

        next = is_box(from, end)         ? after_box(from, end)
               : is_traceback(from, len) ? after_traceback(from, end)
               : is_launcher(from, len)  ? next_line(from, end)
                                         : NULL;
        if (!next) {
            next = next_line(from, end);
            memmove(s + to, from, (size_t)(next - from));
            to += (size_t)(next - from);
        }
        from = next;
    }
    s[to] = '\0';
    return to;
}
