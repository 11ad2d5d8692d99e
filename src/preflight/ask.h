/* ask: another program of this project runs, and its output is taken. For use
 * in a check's own process. */
#ifndef PREFLIGHT_ASK_H
#define PREFLIGHT_ASK_H

#include "preflight/check.h"

#include <sys/types.h>

#define ASK_MAX (1u << 20) /* Bytes of output that are kept. */

/* Run `argv` (argv[0]: its path); its stdout goes to `buf`, with a NUL.
 * `envp` NULL: this process's. Returns its exit code or 128 + signal, or
 * -errno. */
int ask_run(char *const *argv, char *const *envp, char *buf, size_t cap);

/* Where the program of this check is; says so where it is nowhere. */
bool ask_find(const struct preflight_sink *s, char *path, size_t cap);

#endif
