/* barrier_policy: which failure is worth a restart, and why (not); how many
 * there may be; how long each is waited for. Internal to the barrier. */
#ifndef RENDEZVOUS_BARRIER_POLICY_H
#define RENDEZVOUS_BARRIER_POLICY_H

#include "rendezvous/barrier.h"

/* Note which failure ended a round, for --same-failure-limit; NULL: one that
 * breaks the row. The back-off is back at its least after a round that was long
 * enough, whatever has ended it. */
void bar_note_failure(struct barrier *b, uint64_t now_ms,
                      const struct failure *f);
/* Whether this failure must not be retried; then why, in words, in `why`.
 * `same`: how often in a row it was the same, early. */
bool bar_is_permanent(const struct barrier *b, const struct failure *cause,
                      uint32_t same, char *why, size_t cap);
/* Whether one more restart is within the budget; why not, where it is not
 * plain from the counts. */
bool bar_may_restart(const struct barrier *b, uint64_t now_ms, char *why,
                     size_t cap);
/* Count a restart, say which one it is in `why`; returns the back-off after
 * so many failures in a row. */
uint64_t bar_count_restart(struct barrier *b, uint64_t now_ms,
                           uint32_t in_a_row, char *why, size_t cap);

#endif
