/* help_parts: what help.c, help_man.c and help_complete.c share. Internal to
 * the help. */
#ifndef AGENT_HELP_PARTS_H
#define AGENT_HELP_PARTS_H

#include "agent/option_table.h"
#include "base/text.h"

#include <stdio.h>

/* "-o, --output FILE" of a row. */
void help_option(struct text *t, const struct opt_row *row);
void help_man(FILE *out);
void help_bash(FILE *out);
void help_zsh(FILE *out);

#endif
