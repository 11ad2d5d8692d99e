/* option_contract: the types of option_types.h for what workers are given:
 * --contract, --pass-local-rank, --gpu-bind. */
#include "agent/contract.h"
#include "agent/option_table.h"

#include <string.h>

static const char *const contract_words[] = {
#define X(id, word) word,
    CONTRACT_TABLE(X)
#undef X
    "all", NULL
};

static int contract_read(const struct opt_value *v, struct options *o,
                         struct err *e)
{
    unsigned dialects = 0;
    const char *s = v->text;

    for (;; s++) {
        size_t len = strcspn(s, ",");
        unsigned i = 0;

        while (contract_words[i] && (strlen(contract_words[i]) != len ||
                                     memcmp(contract_words[i], s, len) != 0))
            i++;
        if (!contract_words[i])
            return opt_fault(v, e, "use some of torch, mxnet, jax, "
                             "tensorflow, mpi, horovod with commas, or all");
        dialects |= i == CONTRACTS ? (1u << CONTRACTS) - 1 : 1u << i;
        s += len;
        if (*s == '\0')
            break;
    }
    o->contracts = dialects;
    return 0;
}

static void contract_print(const struct opt_row *row, const struct options *o,
                           struct text *t)
{
    (void)row;
    for (unsigned i = 0; i < CONTRACTS; i++)
        if (o->contracts & 1u << i)
            text_add(t, "%s%s", t->len ? "," : "", contract_words[i]);
}

static const char *const local_rank_words[] = {"dash", "underscore", NULL};
static const char *const local_rank_texts[] = {"--local-rank=",
                                               "--local_rank="};

static int local_rank_read(const struct opt_value *v, struct options *o,
                           struct err *e)
{
    int i = 0;

    if (v->text && v->is_variable && strcmp(v->text, "0") == 0) {
        o->pass_local_rank = NULL;
        return 0;
    }
    if (v->text && !(v->is_variable && strcmp(v->text, "1") == 0))
        i = opt_read_choice(v, e);
    if (i < 0)
        return -ERR_USAGE;
    o->pass_local_rank = local_rank_texts[i];
    return 0;
}

static void local_rank_print(const struct opt_row *row,
                             const struct options *o, struct text *t)
{
    (void)row;
    for (int i = 0; local_rank_words[i]; i++)
        if (o->pass_local_rank == local_rank_texts[i])
            text_add(t, "%s", local_rank_words[i]);
}

static const char *const gpu_bind_words[] = {"none", "single", NULL};

static int gpu_bind_read(const struct opt_value *v, struct options *o,
                         struct err *e)
{
    int i = opt_read_choice(v, e);

    if (i < 0)
        return -ERR_USAGE;
    o->bind_gpus = i == 1;
    return 0;
}

static void gpu_bind_print(const struct opt_row *row, const struct options *o,
                           struct text *t)
{
    (void)row;
    text_add(t, "%s", gpu_bind_words[o->bind_gpus]);
}

static const char *const cpu_bind_words[] = {"none", "numa", "cores", NULL};
static const enum cpu_bind cpu_binds[] = {CPU_BIND_NONE, CPU_BIND_NODE,
                                          CPU_BIND_CORES};

static int cpu_bind_read(const struct opt_value *v, struct options *o,
                         struct err *e)
{
    int i = opt_read_choice(v, e);

    if (i < 0)
        return -ERR_USAGE;
    o->cpu_bind = cpu_binds[i];
    return 0;
}

static void cpu_bind_print(const struct opt_row *row, const struct options *o,
                           struct text *t)
{
    (void)row;
    for (int i = 0; cpu_bind_words[i]; i++)
        if (o->cpu_bind == cpu_binds[i])
            text_add(t, "%s", cpu_bind_words[i]);
}

static const char *const ifname_words[] = {"none", "barrier", NULL};

static int ifname_read(const struct opt_value *v, struct options *o,
                       struct err *e)
{
    int i = opt_read_choice(v, e);

    if (i < 0)
        return -ERR_USAGE;
    o->nccl_ifname = i == 1;
    return 0;
}

static void ifname_print(const struct opt_row *row, const struct options *o,
                         struct text *t)
{
    (void)row;
    text_add(t, "%s", ifname_words[o->nccl_ifname]);
}

#define TYPE(id, name, arg, words, optional, read, print)                      \
    const struct opt_type opt_type_##id = {name, arg, words, optional, read,   \
                                           print}
TYPE(contract, "list of words", "LIST", contract_words, false, contract_read,
     contract_print);
TYPE(gpu_bind, "word", "none|single", gpu_bind_words, false, gpu_bind_read,
     gpu_bind_print);
TYPE(cpu_bind, "word", "none|numa|cores", cpu_bind_words, false, cpu_bind_read,
     cpu_bind_print);
TYPE(nccl_ifname, "word", "none|barrier", ifname_words, false, ifname_read,
     ifname_print);
TYPE(local_rank, "word", "dash|underscore", local_rank_words, true,
     local_rank_read, local_rank_print);
