/* help: the readings of the options table: help text, mdoc, completions, the
 * list of variables, JSON. Pure: writes to a stream that the caller gives. */
#ifndef AGENT_HELP_H
#define AGENT_HELP_H

#include "base/err.h"

#include <stdio.h>

/* Write `view` ("text", "man", "bash", "zsh", "env", "json") to `out`. */
int help_write(FILE *out, const char *view, struct err *e);

#endif
