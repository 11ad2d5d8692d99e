/* aside: work that may hang, done by a thread of its own. Whoever began it
 * looks whether it is over, and may leave it behind. */
#ifndef DDP_ASIDE_H
#define DDP_ASIDE_H

#include <stdbool.h>

struct ddp_aside;

/* Begin work(arg) in a thread that takes no signals. The last of the two that
 * is through with it calls end(arg). NULL: there is no thread or no memory,
 * and nothing was called. */
struct ddp_aside *ddp_aside_begin(void (*work)(void *arg),
                                  void (*end)(void *arg), void *arg);

/* Whether work() has returned; then what it wrote to arg can be read. */
bool ddp_aside_is_over(struct ddp_aside *a);

/* Through with it: arg is not to be touched any more. */
void ddp_aside_leave(struct ddp_aside *a);

#endif
