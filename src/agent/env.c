/* env: see env.h. */
#include "agent/env.h"

#include "agent/option_table.h"
#include "agent/plan.h"
#include "base/log.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

#define VALUE_MAX 512

/* The value as its option takes it; workers are counted. */
static void print_value(const struct options *o, enum topo_key key,
                        struct text *t)
{
    const char *name = topology_option(key);
    const struct opt_row *row = opt_find(name, strlen(name));
    static struct plan plan; /* Large; used for its counting alone. */
    struct err e;

    plan.o = o;
    if (key == TOPO_NPROC && plan_count_workers(&plan, &e) == 0)
        text_add(t, "%u", plan.nproc);
    else
        row->type->print(row, o, t);
}

static void print_source(const struct options *o, enum topo_key key,
                         struct text *t)
{
    const char *name = topology_option(key);
    const struct opt_row *row = opt_find(name, strlen(name));
    char variable[OPT_NAME_MAX + 8];

    switch (o->origins[key]) {
    case BY_WORD:
        text_add(t, "--%s", name);
        break;
    case BY_VARIABLE:
        text_add(t, "%s", opt_variable(variable, name));
        break;
    case BY_ALIAS_VARIABLE:
        text_add(t, "%s", opt_variable(variable, row->alias));
        break;
    case BY_PLATFORM:
        text_add(t, "%s", o->topology.at[key].source);
        break;
    case BY_DEFAULT:
        text_add(t, "default");
        break;
    }
}

/* As a JSON string, or bare where it is a plain number. */
static void json_value(const char *s)
{
    size_t len = strlen(s);

    if (len > 0 && len < 16 && s[strspn(s, "0123456789")] == '\0' &&
        (len == 1 || *s != '0')) {
        (void)printf("%s", s);
        return;
    }
    (void)putchar('"');
    for (; *s; s++)
        if (*s == '"' || *s == '\\')
            (void)printf("\\%c", *s);
        else if ((unsigned char)*s < 0x20)
            (void)printf("\\u%04x", (unsigned)(unsigned char)*s);
        else
            (void)putchar(*s);
    (void)putchar('"');
}

static void json_string(const char *s)
{
    char buf[VALUE_MAX];

    (void)text_copy(buf, sizeof buf, s);
    (void)text_make_utf8(buf, sizeof buf - 1);
    if (buf[0] && buf[strspn(buf, "0123456789")] == '\0')
        (void)printf("\"%s\"", buf);
    else
        json_value(buf);
}

static void print_json(const struct options *o)
{
    const struct topology *t = &o->topology;

    (void)printf("{\"platform\": {\"value\": ");
    json_string(t->dialect ? t->dialect : "none");
    (void)printf(", \"source\": \"environment\"}");
    for (int k = 0; k < TOPO_KEYS; k++) {
        const char *name = topology_option((enum topo_key)k);
        char value[VALUE_MAX], source[VALUE_MAX];
        struct text v, s;

        text_init(&v, value, sizeof value);
        text_init(&s, source, sizeof source);
        print_value(o, (enum topo_key)k, &v);
        print_source(o, (enum topo_key)k, &s);
        (void)printf(",\n \"");
        for (; *name; name++)
            (void)putchar(*name == '-' ? '_' : *name);
        (void)printf("\": {\"value\": ");
        if (k == TOPO_MASTER_ADDR || k == TOPO_JOB_ID)
            json_string(value);
        else
            json_value(value);
        (void)printf(", \"source\": ");
        json_string(source);
        (void)putchar('}');
    }
    (void)printf(",\n \"ignored\": {\"value\": [");
    for (unsigned i = 0; i < t->n_ignored; i++) {
        (void)printf("%s{\"name\": ", i ? ", " : "");
        json_string(t->ignored[i].name);
        (void)printf(", \"value\": ");
        json_string(t->ignored[i].text);
        (void)printf(", \"why\": ");
        json_string(t->ignored[i].why);
        (void)putchar('}');
    }
    (void)printf("], \"source\": \"environment\"}}\n");
}

static void print_table(const struct options *o)
{
    const struct topology *t = &o->topology;
    char shown[OPT_SHOWN_MAX];

    for (int k = 0; k < TOPO_KEYS; k++) {
        char value[VALUE_MAX], source[VALUE_MAX];
        struct text v, s;

        text_init(&v, value, sizeof value);
        text_init(&s, source, sizeof source);
        print_value(o, (enum topo_key)k, &v);
        print_source(o, (enum topo_key)k, &s);
        (void)printf("%-13s %-24s %s\n", topology_option((enum topo_key)k),
                     value, source);
    }
    for (unsigned i = 0; i < t->n_ignored; i++)
        (void)printf("ignored: %s=%s (%s)\n", t->ignored[i].name,
                     opt_shown(shown, t->ignored[i].text,
                               strlen(t->ignored[i].text)),
                     t->ignored[i].why);
}

int env_command(const struct options *o)
{
    if (o->json)
        print_json(o);
    else
        print_table(o);
    return log_end_stdout();
}
