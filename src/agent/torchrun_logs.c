/* torchrun_logs: what becomes of the workers' lines, and which device a worker
 * sees, under torchrun's options; see torchrun.h. */
#include "agent/torchrun.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static unsigned choice_of(const struct std_choice *c, uint32_t local_rank)
{
    return local_rank < OPT_STD_RANKS ? c->of[local_rank] : c->rest;
}

void torchrun_stream(const struct options *o, uint32_t local_rank, bool is_err,
                     struct torchrun_stream *ret)
{
    const struct torchrun_options *t = &o->torchrun;
    unsigned bit = is_err ? 2 : 1;
    bool tee = choice_of(&t->tee, local_rank) & bit;
    bool redirect = choice_of(&t->redirects, local_rank) & bit;
    bool passes = options_has_rank(&t->local_ranks, local_rank);

    if (t->no_logs) {
        *ret = (struct torchrun_stream){.is_shown = true};
        return;
    }
    ret->is_shown = passes && (tee || !redirect);
    ret->has_prefix = tee;
    ret->has_file = tee || redirect;
    ret->is_filtered = tee && passes && t->filters[is_err];
}

void torchrun_prefix(const struct options *o, const char *role,
                     uint32_t local_rank, uint32_t rank, char *out, size_t cap)
{
    char numbers[2][12];
    const struct torchrun_name names[] = {{"role_name", role},
                                          {"local_rank", numbers[0]},
                                          {"rank", numbers[1]}};

    (void)snprintf(numbers[0], sizeof numbers[0], "%" PRIu32, local_rank);
    (void)snprintf(numbers[1], sizeof numbers[1], "%" PRIu32, rank);
    (void)torchrun_substitute(names, 3, o->torchrun.prefix, out, cap);
}

bool torchrun_has_files(const struct options *o)
{
    const struct torchrun_options *t = &o->torchrun;
    bool any = t->filters[0] || t->filters[1] || t->tee.rest ||
               t->redirects.rest;

    for (unsigned i = 0; i < OPT_STD_RANKS; i++)
        any = any || t->tee.of[i] || t->redirects.of[i];
    return any && !t->no_logs;
}

#define FILTER_MAX 4096 /* Bytes of a list, so of a word. */

/* The next word of a list with commas; two commas are one in a word. */
static size_t next_word(const char **list, char *word, size_t cap)
{
    const char *s = *list;
    size_t n = 0;

    while (*s && (*s != ',' || s[1] == ',')) {
        if (n < cap)
            word[n++] = *s;
        s += *s == ',' ? 2 : 1;
    }
    *list = *s ? s + 1 : NULL;
    return n;
}

bool torchrun_filter(const char *list, const char *line, size_t len)
{
    char word[FILTER_MAX];

    while (list) {
        size_t n = next_word(&list, word, sizeof word);

        if (memmem(line, len, word, n))
            return true;
    }
    return false;
}

bool torchrun_device(const char *visible, uint32_t local_rank, char *out,
                     size_t cap)
{
    struct text t;
    size_t len;

    text_init(&t, out, cap);
    if (!visible) {
        text_add(&t, "%u", local_rank);
        return true;
    }
    for (uint32_t i = 0; i < local_rank; i++) {
        visible = strchr(visible, ',');
        if (!visible)
            return false;
        visible++;
    }
    visible += strspn(visible, " \t");
    len = strcspn(visible, ",");
    while (len > 0 && (visible[len - 1] == ' ' || visible[len - 1] == '\t'))
        len--;
    text_add(&t, "%.*s", (int)len, visible);
    return true;
}

int torchrun_check_devices(const struct options *o, uint32_t nproc,
                           const char *visible, struct err *e)
{
    char device[128];

    if (!o->torchrun.virtual_local_rank || !visible ||
        torchrun_device(visible, nproc - 1, device, sizeof device))
        return 0;
    return err_set(e, ERR_USAGE, "--virtual-local-rank: CUDA_VISIBLE_DEVICES="
                   "%.80s has fewer entries than workers, %u; name as many, "
                   "or give a smaller --nproc-per-node", visible, nproc);
}
