/* set: texts into the answer; see probe.h. */
#include "probe/probe.h"

#include "base/text.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>

void probe_set_text(json_t *o, const char *key, const char *text)
{
    char valid[PATH_MAX];

    (void)text_copy(valid, sizeof valid, text ? text : "?");
    (void)text_make_utf8(valid, sizeof valid - 1);
    (void)json_object_set_new(o, key, json_string(valid));
}

void probe_missing(json_t *part, bool fault, const char *fmt, ...)
{
    char text[PROBE_TEXT];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    (void)json_object_set_new(part, "found", json_false());
    (void)json_object_set_new(part, "fault", json_boolean(fault));
    probe_set_text(part, "why", text);
}
