/* show: see show.h. */
#include "preflight/show.h"

#include "base/jsonw.h"
#include "base/text.h"

#include <string.h>

static void add_block(struct text *t, const char *name, const char *s)
{
    if (*s)
        text_add(t, "                    %s: %s\n", name, s);
}

void show_finding(struct text *t, const struct preflight_finding *f)
{
    text_add(t, "%-9s %-9s %s\n",
             preflight_level_word((enum preflight_level)f->level),
             preflight_row((enum preflight_check)f->check)->word, f->what);
    add_block(t, "why", f->why);
    add_block(t, "fix", f->fix);
    for (const char *s = f->yaml; *s;) {
        size_t len = strcspn(s, "\n");

        text_add(t, "                      | %.*s\n", (int)len, s);
        s += len + (s[len] == '\n');
    }
}

static unsigned count(const struct preflight_finding *all, unsigned n,
                      enum preflight_level level)
{
    unsigned found = 0;

    for (unsigned i = 0; i < n; i++)
        found += all[i].level == (uint8_t)level;
    return found;
}

void show_end(struct text *t, enum preflight_level worst,
              const struct preflight_finding *all, unsigned n)
{
    unsigned warnings = count(all, n, PREFLIGHT_WARN);

    text_add(t, "preflight: %s (%d): %u fatal, %u retryable, %u warning%s\n",
             preflight_level_word(worst), preflight_exit_code(worst),
             count(all, n, PREFLIGHT_FATAL), count(all, n, PREFLIGHT_RETRY),
             warnings, text_plural(warnings));
}

static void json_check(struct jsonw *j, unsigned check,
                       const struct show_check *c,
                       const struct preflight_finding *all, unsigned n)
{
    jsonw_open(j, NULL, '{');
    jsonw_string(j, "check", preflight_row((enum preflight_check)check)->word);
    jsonw_string(j, "result", preflight_level_word(c->worst));
    jsonw_seconds(j, "seconds", c->ms);
    jsonw_open(j, "findings", '[');
    for (unsigned i = 0; i < n; i++) {
        const struct preflight_finding *f = &all[i];

        if (f->check != check)
            continue;
        jsonw_open(j, NULL, '{');
        jsonw_string(j, "level", preflight_level_word(
                                     (enum preflight_level)f->level));
        jsonw_string(j, "what", f->what);
        if (f->level != PREFLIGHT_PASS) {
            jsonw_string(j, "why", f->why);
            jsonw_string(j, "fix", f->fix);
        }
        if (f->yaml[0])
            jsonw_string(j, "yaml", f->yaml);
        jsonw_close(j, '}');
    }
    jsonw_close(j, ']');
    jsonw_close(j, '}');
}

void show_json(struct text *t, const char *host, enum preflight_level worst,
               const struct show_check checks[PREFLIGHT_CHECKS],
               const struct preflight_finding *all, unsigned n)
{
    struct jsonw j;

    jsonw_begin(&j, t);
    jsonw_int(&j, "preflight", SHOW_JSON_FORMAT);
    jsonw_string(&j, "host", host);
    jsonw_string(&j, "result", preflight_level_word(worst));
    jsonw_int(&j, "code", preflight_exit_code(worst));
    jsonw_open(&j, "checks", '[');
    for (unsigned i = 0; i < PREFLIGHT_CHECKS; i++)
        if (checks[i].is_over)
            json_check(&j, i, &checks[i], all, n);
    jsonw_close(&j, ']');
    jsonw_close(&j, '}');
    text_add(t, "\n");
}

void show_line(struct text *t, const struct preflight_finding *f)
{
    text_add(t, "preflight: %s: %s",
             preflight_row((enum preflight_check)f->check)->word, f->what);
    if (f->why[0])
        text_add(t, "; %s; fix: %s", f->why, f->fix);
}
