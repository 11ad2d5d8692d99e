/* tool: the other programs of this project: beside this one, else in PATH. */
#ifndef BASE_TOOL_H
#define BASE_TOOL_H

#include <stdbool.h>
#include <stddef.h>

/* Where `name` is; false where it is nowhere. */
bool tool_find(const char *name, char *path, size_t cap);

#endif
