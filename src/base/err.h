/* err: the one error type, and the one table of exit statuses.
 *
 * A function that can fail takes a `struct err *e` last, returns 0 on success
 * and a negative class (-ERR_DATA and so on) on failure. The first to know of
 * a fault writes the text; callers may wrap it with what they were doing. On
 * success `e` is left alone. Nothing in it needs to be freed. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include <stdbool.h>

#define ERR_TEXT_MAX 512

/* X(name, exit status, class word, worth a retry, meaning). The exit status is
 * a promise to podFailurePolicy rules: never change one. */
#define ERR_TABLE(X)                                                           \
    X(USAGE, 64, "usage", false, "a bad option or a bad topology")             \
    X(DATA, 65, "data", false,                                                 \
      "a checksum, size or structure is wrong, or a manifest is malformed")    \
    X(NODATA, 66, "nodata", false, "a file or the source is missing")          \
    X(PREFLIGHT, 69, "preflight", false, "a preflight check is fatal")         \
    X(AUTH, 77, "auth", false, "wrong token or wrong job id")                  \
    X(MISMATCH, 78, "mismatch", false,                                         \
      "pods disagree: world size, a rank claimed twice, data set digest or "   \
      "protocol version")                                                      \
    X(AGENT, 125, "agent", false, "an internal failure of agent itself")       \
    X(NOEXEC, 126, "exec", false, "the command was found but cannot be run")   \
    X(NOTFOUND, 127, "exec", false,                                            \
      "the command, a script's interpreter or a loader was not found")         \
    X(BARRIER, 200, "barrier", true,                                           \
      "not all pods arrived in time, or a pair cannot reach each other")       \
    X(PEER, 201, "peer", true, "a pod was lost and did not come back")         \
    X(RESOURCE, 202, "resource", true,                                         \
      "port taken, disk full, I/O error, fork failed, or a process that "      \
      "cannot be killed")                                                      \
    X(HANG, 203, "hang", true, "the workers hang")                             \
    X(PREFLIGHT_RETRY, 204, "preflight-retry", true,                           \
      "a preflight check failed that may pass later")

enum err_class {
#define X(name, status, word, retry, meaning) ERR_##name = status,
    ERR_TABLE(X)
#undef X
};

struct err_row {
    int status;          /* Exit status, as in `enum err_class`. */
    const char *name;    /* Enumerator without the prefix. */
    const char *word;    /* Class word as in messages and --exit-map. */
    bool retry;          /* Whether a scheduler should try again. */
    const char *meaning; /* For the manual page. */
};

struct err {
    int code; /* enum err_class; 0 while nothing failed. */
    char text[ERR_TEXT_MAX];
};

/* Set class and text (cut at ERR_TEXT_MAX). Returns -code, for `return`. */
int err_set(struct err *e, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Put "what: " before the text. Returns -e->code. */
int err_wrap(struct err *e, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* The table, `*ret_n` rows, in order of status. */
const struct err_row *err_rows(unsigned *ret_n);

/* Row of an exit status, or NULL where it is not one of agent's own. */
const struct err_row *err_row(int status);

/* Whether an errno of a write to a path means that only another path, or
 * other rights, can mend it; not a later try. ENOENT is not among them: it
 * depends on who makes the folders. */
bool err_wants_other_path(int error);

#endif
