/* Fuzz target: command lines and environments, agent's own and torchrun's. A
 * word a line; after an empty line a variable a line. */
#include "agent/options.h"
#include "agent/torchrun.h"
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#define WORDS_MAX 64

/* The next lines, to the first that is empty, as words. */
static int take(char **at, char **words)
{
    int n = 0;

    while (*at && n < WORDS_MAX) {
        char *end = strchr(*at, '\n'), *word = *at;

        if (end)
            *end = '\0';
        *at = end ? end + 1 : NULL;
        if (!*word)
            break;
        words[n++] = word;
    }
    words[n] = NULL;
    return n;
}

static void check(const struct options *o)
{
    struct torchrun_stream s;

    fuzz_require(o->n_args > 0 && o->args[0] && !o->args[o->n_args]);
    fuzz_require(o->min_nodes >= 1 && o->min_nodes <= o->nnodes);
    fuzz_require(o->any_node_rank || o->node_rank < o->nnodes);
    fuzz_require(o->master_addr && o->job_id && o->role && o->log_prefix);
    fuzz_require(o->master_port <= 65535 && o->barrier_port >= 1 &&
                 o->barrier_port <= 65535);
    if (!o->torchrun.is_on)
        return;
    fuzz_require(o->master_port >= 1 && !o->restart_period_ms);
    for (uint32_t i = 0; i < 24; i++) {
        torchrun_stream(o, i / 2, i % 2, &s);
        fuzz_require(!s.has_file || torchrun_has_files(o));
        fuzz_require(!s.is_filtered || o->torchrun.filters[i % 2]);
    }
    for (int i = 0; i < 2; i++)
        if (o->torchrun.filters[i])
            (void)torchrun_filter(o->torchrun.filters[i], o->args[0],
                                  strlen(o->args[0]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct options o;
    char *text = malloc(size + 1), *at = text;
    char *argv[WORDS_MAX + 1], *envp[WORDS_MAX + 1];
    struct err e = {.code = 0};
    int argc;

    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    argc = take(&at, argv);
    (void)take(&at, envp);
    if (argc > 0 && options_read(&o, argc, argv, envp, &e) == 0) {
        if (o.command == CMD_RUN)
            check(&o);
    } else if (argc > 0) {
        fuzz_require(e.code == ERR_USAGE && e.text[0]);
    }
    free(text);
    return 0;
}
