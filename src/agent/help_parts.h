/* help_parts: what help.c and help_man.c share. Internal to the help. */
#ifndef AGENT_HELP_PARTS_H
#define AGENT_HELP_PARTS_H

#include "agent/option_table.h"
#include "base/text.h"

#include <stdio.h>

void help_option(struct text *t, const struct opt_row *row);
void help_man(FILE *out);

#endif
