/* box: torch's own report of a failure. A launcher inside a worker ends with a
 * traceback that leads to ChildFailedError, and a box that repeats in other
 * words what its workers said before; that is never the cause. Pure. */
#ifndef SUPERVISE_BOX_H
#define SUPERVISE_BOX_H

#include <stddef.h>

/* Leave such lines out of s[0..n), ended by a NUL. Returns the new length. */
size_t box_strip(char *s, size_t n);

#endif
