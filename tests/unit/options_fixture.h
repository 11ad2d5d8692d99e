/* options_fixture: a command line and an environment, read. */
#ifndef TESTS_OPTIONS_FIXTURE_H
#define TESTS_OPTIONS_FIXTURE_H

#include "agent/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct options o;
static struct err e;

/* Words split at blanks; `env` likewise, or NULL. Returns options_read(). */
static int read_line(const char *line, const char *env)
{
    static char words[4096], vars[4096];
    char *argv[64], *envp[64], *save;
    int n = 0, m = 0;

    (void)snprintf(words, sizeof words, "%s", line);
    for (char *w = strtok_r(words, " ", &save); w;
         w = strtok_r(NULL, " ", &save))
        argv[n++] = w;
    argv[n] = NULL;
    (void)snprintf(vars, sizeof vars, "%s", env ? env : "");
    for (char *w = strtok_r(vars, " ", &save); w;
         w = strtok_r(NULL, " ", &save))
        envp[m++] = w;
    envp[m] = NULL;
    memset(&e, 0, sizeof e);
    return options_read(&o, n, argv, envp, &e);
}

static void good(const char *line, const char *env)
{
    if (read_line(line, env) != 0)
        fail_msg("%s [%s]: %s", line, env ? env : "", e.text);
}

#endif
