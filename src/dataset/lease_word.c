/* lease_word: see lease_word.h. */
#include "dataset/lease_word.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void lease_format(const struct lease_word *w, char out[LEASE_WORD])
{
    char text[LEASE_WORD];
    int n = snprintf(text, sizeof text,
                     "agent-lease 1 %s %s %" PRIu64 " %" PRIu64 " %" PRIu64
                     " %" PRIu64 " %" PRIu64 " %" PRIu64 " .%s",
                     w->id, w->key, w->beat, w->silent_ms, w->at.done,
                     w->at.total, w->at.n_done, w->at.n_files,
                     w->at.syncing ? " s" : "");

    memset(out, ' ', LEASE_WORD);
    memcpy(out, text, n < LEASE_WORD - 1 ? (size_t)n : LEASE_WORD - 1);
    out[LEASE_WORD - 1] = '\n';
}

bool lease_parse(const char *text, struct lease_word *ret)
{
    struct stage_progress *p = &ret->at;
    char end, more = 0; /* Older ones end at the dot. */
    int n;

    memset(ret, 0, sizeof *ret);
    if (strlen(text) != LEASE_WORD)
        return false;
    n = sscanf(text,
               "agent-lease 1 %16s %63s %" SCNu64 " %" SCNu64 " %" SCNu64
               " %" SCNu64 " %" SCNu64 " %" SCNu64 " %c %c",
               ret->id, ret->key, &ret->beat, &ret->silent_ms, &p->done,
               &p->total, &p->n_done, &p->n_files, &end, &more);
    p->syncing = n == 10 && more == 's';
    return n >= 9 && end == '.' && p->done <= p->total &&
           p->n_done <= p->n_files && ret->silent_ms <= LEASE_SILENT_MAX_MS;
}
