/* help: the readings of the options table: help text, mdoc, completions, the
 * list of variables, JSON. Pure: writes to a stream that the caller gives. */
#ifndef AGENT_HELP_H
#define AGENT_HELP_H

#include "base/err.h"

#include <stdio.h>

/* Write `view` to `out`: "text", "man", "bash", "zsh", "env", "json", or the
 * name of one command: "stage", "verify", "manifest", "agent env" (since "env"
 * lists the variables). Fails with ERR_USAGE for another view and with
 * ERR_RESOURCE where `out` takes no more. */
int help_write(FILE *out, const char *view, struct err *e);

#endif
