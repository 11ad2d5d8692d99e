/* option_checks: the type of --preflight; see option_types.h. */
#include "agent/option_types.h"

#include "agent/option_table.h"
#include "preflight/names.h"

static int checks_read(const struct opt_value *v, struct options *o,
                       struct err *e)
{
    char shown[OPT_SHOWN_MAX], list[160];
    const char *bad;
    struct preflight_list l;
    unsigned len;
    struct text t;

    if (preflight_read_list(v->text, &l, &bad, &len)) {
        o->preflight = l.bits;
        o->preflight_busbw = l.busbw;
        o->preflight_given = true;
        return 0;
    }
    text_init(&t, list, sizeof list);
    for (int i = 0; i < PREFLIGHT_CHECKS; i++)
        text_add(&t, "%s, ", preflight_row((enum preflight_check)i)->word);
    return opt_fault(v, e, "'%s' is no check; there are %sor off alone",
                     opt_shown(shown, bad, len), list);
}

static void checks_print(const struct opt_row *row, const struct options *o,
                         struct text *t)
{
    const char *comma = "";

    (void)row;
    for (int i = 0; i < PREFLIGHT_CHECKS; i++)
        if (o->preflight >> i & 1) {
            text_add(t, "%s%s", comma,
                     preflight_row((enum preflight_check)i)->word);
            if (i == PREFLIGHT_ALLREDUCE && o->preflight_busbw)
                text_add(t, "=%u.%03u", o->preflight_busbw / 1000,
                         o->preflight_busbw % 1000);
            comma = ",";
        }
    if (o->preflight == 0)
        text_add(t, "off");
}

const struct opt_type opt_type_checks = {
    .name = "list of checks",
    .arg = "LIST|off",
    .read = checks_read,
    .print = checks_print,
};
