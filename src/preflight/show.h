/* show: findings for people and as JSON. Pure. */
#ifndef PREFLIGHT_SHOW_H
#define PREFLIGHT_SHOW_H

#include "base/text.h"
#include "preflight/preflight.h"

#define SHOW_JSON_FORMAT 1

struct show_check { /* What is known of one check. */
    bool is_over;
    enum preflight_level worst;
    uint64_t ms;
};

/* Lines of one finding, indented, the newline included. */
void show_finding(struct text *t, const struct preflight_finding *f);

/* "preflight: fatal (30): 1 fatal, 2 warnings" of `n` findings. */
void show_end(struct text *t, enum preflight_level worst,
              const struct preflight_finding *all, unsigned n);

void show_json(struct text *t, const char *host, enum preflight_level worst,
               const struct show_check checks[PREFLIGHT_CHECKS],
               const struct preflight_finding *all, unsigned n);

/* One line for a log: what, why, how to mend it. */
void show_line(struct text *t, const struct preflight_finding *f);

#endif
