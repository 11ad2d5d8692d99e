/* contract_expand: macros in text, and a worker's command. */
#include "agent/contract_parts.h"

#include "agent/torchrun.h"
#include "base/text.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define MACRO_LETTERS "abcdefghijklmnopqrstuvwxyz_"

/* Add the value of the macro `name`; false where it is none. */
static bool add_macro(struct text *t, const struct contract_in *in,
                      const char *name, size_t len)
{
    const struct {
        const char *name, *text;
        uint32_t number; /* Where `text` is NULL. */
    } macros[] = {
        {"rank", NULL, in->rank_base + in->local_rank},
        {"local_rank", NULL, in->local_rank},
        {"world_size", NULL, in->world_size},
        {"local_world_size", NULL, in->nproc},
        {"node_rank", NULL, in->node_rank},
        {"nnodes", NULL, in->nnodes},
        {"role", in->role, 0},
        {"master_addr", in->master_addr, 0},
        {"master_ip", in->master_ip ? in->master_ip : in->master_addr, 0},
        {"master_port", NULL, in->master_port},
        {"attempt", NULL, in->round},
        {"gpu", in->gpu < 0 ? "" : NULL, (uint32_t)in->gpu},
        {"process_index", NULL, in->rank_base + in->local_rank},
        {"process_num", NULL, in->world_size},
        {"dataset_dir", contract_dataset_dir(in), 0},
    };

    for (unsigned i = 0; i < sizeof macros / sizeof macros[0]; i++) {
        if (strlen(macros[i].name) != len ||
            memcmp(macros[i].name, name, len) != 0)
            continue;
        if (macros[i].text)
            text_add(t, "%s", macros[i].text);
        else
            text_add(t, "%u", macros[i].number);
        return true;
    }
    return false;
}

/* Of what may be a macro's name behind this brace; 0: it is none. */
static size_t macro_len(const char *brace)
{
    size_t len = strspn(brace + 1, MACRO_LETTERS);

    return brace[1 + len] == '}' ? len : 0;
}

bool contract_expand(const struct contract_in *in, const char *src, char *out,
                     size_t cap)
{
    struct text t;

    if (cap == 0)
        return false;
    text_init(&t, out, cap);
    while (*src && !t.cut) {
        size_t len = strcspn(src, "{"), name_len;

        text_add(&t, "%.*s", (int)len, src);
        src += len;
        if (*src == '\0')
            break;
        name_len = macro_len(src);
        if (name_len > 0 && add_macro(&t, in, src + 1, name_len)) {
            src += name_len + 2;
        } else {
            text_add(&t, "{");
            src++;
        }
    }
    return !t.cut;
}

/* The longest value that a macro may have in any round. */
static size_t longest_value(const struct contract_in *in)
{
    const char *const texts[] = {in->role, in->master_addr, in->master_ip,
                                 contract_dataset_dir(in)};
    size_t longest = PATH_MAX; /* Folders of data are not known yet. */

    for (unsigned i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (texts[i] && strlen(texts[i]) > longest)
            longest = strlen(texts[i]);
    return longest;
}

static bool has_macro(const char *s)
{
    for (; (s = strchr(s, '{')) != NULL; s++)
        if (macro_len(s) > 0)
            return true;
    return false;
}

void contract_command_room(const struct contract_in *in,
                           const struct contract_command *c,
                           size_t *ret_bytes, size_t *ret_entries)
{
    size_t longest = longest_value(in);

    *ret_bytes = c->local_rank ? strlen(c->local_rank) + 12 : 1;
    *ret_entries = 2;
    for (char *const *w = c->words; *w; w++, ++*ret_entries) {
        *ret_bytes += c->has_template ? strlen(*w) + 1 : 0;
        if (!c->expand || w == c->words || !has_macro(*w))
            continue;
        *ret_bytes += strlen(*w) + 1;
        for (const char *s = *w; (s = strchr(s, '{')) != NULL; s++)
            *ret_bytes += macro_len(s) > 0 ? longest : 0;
    }
}

/* Its arguments never become longer by it. */
static bool add_template(const struct contract_in *in, struct text *t,
                         char **word)
{
    char number[12], *at = t->at + t->len;
    const struct torchrun_name names[] = {{"local_rank", number}};

    (void)snprintf(number, sizeof number, "%u", in->local_rank);
    if (!torchrun_substitute(names, 1, *word, at, t->cap - t->len))
        return false;
    *word = at;
    t->len += strlen(at) + 1;
    return true;
}

/* The word as it is where it has no macro. False where there is no room. */
static bool add_word(const struct contract_in *in,
                     const struct contract_command *c, struct text *t,
                     char **word)
{
    char *at;

    if (c->has_template && strchr(*word, '$') && !add_template(in, t, word))
        return false;
    if (!c->expand || !has_macro(*word))
        return true;
    at = t->at + t->len;
    if (t->len >= t->cap ||
        !contract_expand(in, *word, at, t->cap - t->len))
        return false;
    *word = at;
    t->len += strlen(at) + 1;
    return true;
}

int contract_command(const struct contract_in *in,
                     const struct contract_command *c, char *buf, size_t cap,
                     char **argv, size_t max, struct err *e)
{
    struct text t;
    size_t n = 0;
    bool ok = max >= 2 && cap > 0;

    text_init(&t, buf, cap);
    for (char *const *w = c->words; ok && *w; w++, n++) {
        ok = n + 2 < max && t.len < cap;
        if (ok)
            argv[n] = *w;
        ok = ok && (n == 0 || add_word(in, c, &t, &argv[n]));
    }
    if (ok && c->local_rank) {
        int len = snprintf(buf + t.len, cap - t.len, "%s%u", c->local_rank,
                           in->local_rank);

        argv[n++] = buf + t.len;
        ok = len >= 0 && (size_t)len < cap - t.len;
    }
    if (!ok)
        return err_set(e, ERR_AGENT,
                       "the command of local rank %u does not fit in %zu "
                       "bytes and %zu words; this is a fault of agent",
                       in->local_rank, cap, max);
    argv[n] = NULL;
    return 0;
}
