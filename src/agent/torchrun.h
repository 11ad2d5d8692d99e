/* torchrun: its command line, read into the same struct options that `run`
 * has; there is no second launcher. The options' meaning is that of
 * torch/distributed/run.py of PyTorch 2.13; docs/torchrun.md has what differs.
 *
 * Pure, but for torchrun_start(). */
#ifndef AGENT_TORCHRUN_H
#define AGENT_TORCHRUN_H

#include "agent/options.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct opt_table;

const struct opt_table *torchrun_table(void);

/* Replace $name and ${name} in `src`, and $$ by $; others are left alone. False
 * where `cap` is too small. */
struct torchrun_name {
    const char *name, *value;
};
bool torchrun_substitute(const struct torchrun_name *names, unsigned n,
                         const char *src, char *out, size_t cap);

/* A word that argparse takes for an option and not for a value: one that
 * begins with a dash, but for "-", negative numbers and what has a blank. */
bool torchrun_is_option(const char *word);

/* Leave blanks and line ends at both sides aside, as Python's int() does. */
void torchrun_strip(const char **s, size_t *len);

/* What stands before a worker's line, cut to fit. */
void torchrun_prefix(const struct options *o, const char *role,
                     uint32_t local_rank, uint32_t rank, char *out,
                     size_t cap);

/* What becomes of one stream of a worker. */
struct torchrun_stream {
    bool is_shown, has_prefix, has_file, is_filtered;
};
void torchrun_stream(const struct options *o, uint32_t local_rank, bool is_err,
                     struct torchrun_stream *ret);

/* Whether any stream of `nproc` workers goes to a file. */
bool torchrun_has_files(const struct options *o);

/* Whether a line (without its newline) is one for filtered_stdout.log or
 * filtered_stderr.log: it has one of the list's words. */
bool torchrun_filter(const char *list, const char *line, size_t len);

/* The entry of `visible` (CUDA_VISIBLE_DEVICES, NULL: not set) for a worker
 * with --virtual-local-rank, in `out`. False where there is none. */
bool torchrun_device(const char *visible, uint32_t local_rank, char *out,
                     size_t cap);

/* With --virtual-local-rank there must be an entry for each worker. */
int torchrun_check_devices(const struct options *o, uint32_t nproc,
                           const char *visible, struct err *e);

/* torchrun_start.c, no pure part: the interpreter is looked for and put in
 * front of the script, the id of a job of its own is made, and the folder of
 * its logs. `o->args` then points at memory that is never freed. Fails with
 * ERR_NOTFOUND (no Python), ERR_RESOURCE. */
int torchrun_start(struct options *o, const char *argv0, char *const *envp,
                   struct err *e);

#endif
