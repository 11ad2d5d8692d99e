/* option_words: the types of option_types.h whose values are words of their
 * own: who counts the workers, policies, formats. */
#include "agent/option_types.h"

#include "agent/option_table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int opt_read_choice(const struct opt_value *v, struct err *e)
{
    const char *const *words = v->row->type->words;
    char list[128];
    struct text t;

    text_init(&t, list, sizeof list);
    for (int i = 0; words[i]; i++) {
        if (strcmp(v->text, words[i]) == 0)
            return i;
        text_add(&t, "%s%s", i ? ", " : "", words[i]);
    }
    (void)opt_fault(v, e, "use one of: %s", list);
    return -1;
}

static bool read_small(const char *s, unsigned long min, unsigned long max,
                       unsigned *ret)
{
    size_t len = strlen(s);
    unsigned long v;

    if (len == 0 || len > 9 || s[strspn(s, "0123456789")] != '\0')
        return false;
    v = strtoul(s, NULL, 10);
    *ret = (unsigned)v;
    return v >= min && v <= max;
}

static const char *const nproc_words[] = {"auto", "gpu", "cpu", NULL};
static const enum nproc_kind nproc_kinds[] = {NPROC_AUTO, NPROC_GPU,
                                              NPROC_CPU};

static int nproc_read(const struct opt_value *v, struct options *o,
                      struct err *e)
{
    for (int i = 0; nproc_words[i]; i++)
        if (strcmp(v->text, nproc_words[i]) == 0) {
            o->nproc_kind = nproc_kinds[i];
            return 0;
        }
    if (!read_small(v->text, 1, OPT_MAX_NPROC, &o->nproc))
        return opt_fault(v, e, "use a number from 1 to %d, auto, gpu or cpu",
                         OPT_MAX_NPROC);
    o->nproc_kind = NPROC_NUMBER;
    return 0;
}

static void nproc_print(const struct opt_row *row, const struct options *o,
                        struct text *t)
{
    (void)row;
    if (o->nproc_kind == NPROC_NUMBER)
        text_add(t, "%u", o->nproc);
    for (int i = 0; nproc_words[i]; i++)
        if (o->nproc_kind == nproc_kinds[i])
            text_add(t, "%s", nproc_words[i]);
}

static int nnodes_read(const struct opt_value *v, struct options *o,
                       struct err *e)
{
    const char *colon = strchr(v->text, ':');
    size_t len = colon ? (size_t)(colon - v->text) : 0;
    char low[12] = "";

    if (colon && len < sizeof low)
        memcpy(low, v->text, len);
    if (!read_small(colon ? colon + 1 : v->text, 1, OPT_MAX_NNODES,
                    &o->nnodes) ||
        (colon && !read_small(low, 1, o->nnodes, &o->min_nodes)))
        return opt_fault(v, e, "use a number of pods from 1 to %d, or MIN:MAX "
                         "with MIN at most MAX", OPT_MAX_NNODES);
    if (!colon)
        o->min_nodes = o->nnodes;
    return 0;
}

static void nnodes_print(const struct opt_row *row, const struct options *o,
                         struct text *t)
{
    (void)row;
    if (o->min_nodes < o->nnodes)
        text_add(t, "%u:", o->min_nodes);
    text_add(t, "%u", o->nnodes);
}

static int node_rank_read(const struct opt_value *v, struct options *o,
                          struct err *e)
{
    o->any_node_rank = strcmp(v->text, "auto") == 0;
    if (!o->any_node_rank &&
        !read_small(v->text, 0, OPT_MAX_NNODES - 1, &o->node_rank))
        return opt_fault(v, e, "use a number from 0 to --nnodes less 1, or "
                         "auto");
    return 0;
}

static void node_rank_print(const struct opt_row *row,
                            const struct options *o, struct text *t)
{
    (void)row;
    if (o->any_node_rank)
        text_add(t, "auto");
    else
        text_add(t, "%u", o->node_rank);
}

static int restarts_read(const struct opt_value *v, struct options *o,
                         struct err *e)
{
    const char *slash = strchr(v->text, '/');
    size_t len = slash ? (size_t)(slash - v->text) : 0;
    char n[12] = "";

    if (slash && len < sizeof n)
        memcpy(n, v->text, len);
    o->restart_period_ms = 0;
    if (slash && (!opt_read_duration(slash + 1, &o->restart_period_ms) ||
                  o->restart_period_ms == 0))
        return opt_fault(v, e, "use N/PERIOD: 5/1h is five in an hour");
    if (!read_small(slash ? n : v->text, 0, slash ? 1000 : 1000000,
                    &o->max_restarts))
        return opt_fault(v, e, "use a number from 0 to %d%s",
                         slash ? 1000 : 1000000,
                         slash ? "" : ", or N/PERIOD: 5/1h");
    return 0;
}

static void restarts_print(const struct opt_row *row, const struct options *o,
                           struct text *t)
{
    (void)row;
    text_add(t, "%u", o->max_restarts);
    if (o->restart_period_ms)
        text_add(t, "/%" PRIu64 "ms", o->restart_period_ms);
}

static const char *const policy_words[] = {
#define X(name, word, codes) word,
    RESTART_POLICIES(X)
#undef X
    NULL};

static int policy_read(const struct opt_value *v, struct options *o,
                       struct err *e)
{
    int i = opt_read_choice(v, e);

    if (i < 0)
        return -ERR_USAGE;
    o->restart_policy = (enum restart_policy)i;
    return 0;
}

static void policy_print(const struct opt_row *row, const struct options *o,
                         struct text *t)
{
    (void)row;
    text_add(t, "%s", policy_words[o->restart_policy]);
}

static const char *const scope_words[] = {"job", "worker", NULL};

static int scope_read(const struct opt_value *v, struct options *o,
                      struct err *e)
{
    int i = opt_read_choice(v, e);

    if (i < 0)
        return -ERR_USAGE;
    o->restart_scope = (enum restart_scope)i;
    return 0;
}

static void scope_print(const struct opt_row *row, const struct options *o,
                        struct text *t)
{
    (void)row;
    text_add(t, "%s", scope_words[o->restart_scope]);
}

static int codes_read(const struct opt_value *v, struct options *o,
                      struct err *e)
{
    const char *s = v->text;
    bool codes[256] = {false};
    char word[8];

    for (;;) {
        size_t len = strcspn(s, ",");
        unsigned code = 0;

        if (len < sizeof word)
            memcpy(word, s, len);
        word[len < sizeof word ? len : 0] = '\0';
        if (!read_small(word, 1, 255, &code))
            return opt_fault(v, e, "use exit codes from 1 to 255: 2,77");
        codes[code] = true;
        if (s[len] == '\0')
            break;
        s += len + 1;
    }
    memcpy(o->no_restart_on, codes, sizeof codes);
    return 0;
}

static void codes_print(const struct opt_row *row, const struct options *o,
                        struct text *t)
{
    const char *comma = "";

    (void)row;
    for (unsigned i = 0; i < 256; i++)
        if (o->no_restart_on[i]) {
            text_add(t, "%s%u", comma, i);
            comma = ",";
        }
}

/* One CLASS=CODE of `len` bytes. */
static bool read_mapping(const char *s, size_t len, struct exit_map *map)
{
    const char *eq = memchr(s, '=', len);
    size_t word_len = eq ? (size_t)(eq - s) : 0;
    uint64_t code;
    const char *word;

    if (!eq || !opt_read_uint(eq + 1, len - word_len - 1, 0, 255, &code))
        return false;
    for (unsigned i = 0; (word = exit_class_word(i)) != NULL; i++)
        if (strlen(word) == word_len && memcmp(word, s, word_len) == 0) {
            map->code_plus_1[i] = (uint16_t)(code + 1);
            return true;
        }
    return false;
}

static int exit_map_read(const struct opt_value *v, struct options *o,
                         struct err *e)
{
    struct exit_map map = {{0}};
    char words[256];
    const char *word;
    struct text t;

    for (const char *s = v->text;; s++) {
        size_t len = strcspn(s, ",");

        if (!read_mapping(s, len, &map))
            break;
        s += len;
        if (*s == '\0') {
            o->exit_map = map;
            return 0;
        }
    }
    text_init(&t, words, sizeof words);
    for (unsigned i = 0; (word = exit_class_word(i)) != NULL; i++)
        text_add(&t, "%s%s", i ? ", " : "", word);
    return opt_fault(v, e, "use CLASS=CODE,... with codes from 0 to 255 and "
                     "these classes: %s", words);
}

static void exit_map_print(const struct opt_row *row, const struct options *o,
                           struct text *t)
{
    const char *comma = "", *word;

    (void)row;
    for (unsigned i = 0; (word = exit_class_word(i)) != NULL; i++)
        if (o->exit_map.code_plus_1[i]) {
            text_add(t, "%s%s=%d", comma, word,
                     exit_map_code(&o->exit_map, i, 0));
            comma = ",";
        }
}

static const char *const format_words[] = {"json", "sha256sum", NULL};

static int format_read(const struct opt_value *v, struct options *o,
                       struct err *e)
{
    int i = opt_read_choice(v, e);

    if (i < 0)
        return -ERR_USAGE;
    o->format = (enum manifest_format)i;
    return 0;
}

static void format_print(const struct opt_row *row, const struct options *o,
                         struct text *t)
{
    (void)row;
    text_add(t, "%s", format_words[o->format]);
}

static const char *const mesh_words[] = {"ring", "full", "off", NULL};

static int mesh_read(const struct opt_value *v, struct options *o,
                     struct err *e)
{
    int i = opt_read_choice(v, e);

    if (i < 0)
        return -ERR_USAGE;
    o->mesh = (enum mesh_choice)i;
    o->mesh_given = true;
    return 0;
}

static void mesh_print(const struct opt_row *row, const struct options *o,
                       struct text *t)
{
    (void)row;
    text_add(t, "%s", mesh_words[o->mesh]);
}

static const char *const view_words[] = {"text", "man", "bash", "zsh", "env",
                                         "json", NULL};

static int view_read(const struct opt_value *v, struct options *o,
                     struct err *e)
{
    int i = v->text ? opt_read_choice(v, e) : 0;

    if (i < 0)
        return -ERR_USAGE;
    o->help_view = view_words[i];
    return 0;
}

static void view_print(const struct opt_row *row, const struct options *o,
                       struct text *t)
{
    (void)row;
    if (o->help_view)
        text_add(t, "%s", o->help_view);
}

#define TYPE(id, name, arg, words, optional, read, print)                      \
    const struct opt_type opt_type_##id = {name, arg, words, optional, read,   \
                                           print}
TYPE(nproc, "workers", "N|auto|gpu|cpu", nproc_words, false, nproc_read,
     nproc_print);
TYPE(nnodes, "number", "N|MIN:MAX", NULL, false, nnodes_read, nnodes_print);
TYPE(node_rank, "number", "R|auto", NULL, false, node_rank_read,
     node_rank_print);
TYPE(restarts, "number", "N[/PERIOD]", NULL, false, restarts_read,
     restarts_print);
TYPE(policy, "word", "POLICY", policy_words, false, policy_read, policy_print);
TYPE(codes, "list of exit codes", "CODES", NULL, false, codes_read,
     codes_print);
TYPE(scope, "word", "job|worker", scope_words, false, scope_read, scope_print);
TYPE(exit_map, "list of exit codes", "CLASS=CODE,...", NULL, false,
     exit_map_read, exit_map_print);
TYPE(format, "word", "FORMAT", format_words, false, format_read, format_print);
TYPE(mesh, "word", "ring|full|off", mesh_words, false, mesh_read, mesh_print);
TYPE(view, "word", "VIEW", view_words, true, view_read, view_print);
