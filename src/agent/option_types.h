/* option_types: one row for each kind of value that an option takes: what the
 * argument is called, how it is read and how it is printed again.
 *
 * Pure. Reading a value is the only place where it is checked. */
#ifndef AGENT_OPTION_TYPES_H
#define AGENT_OPTION_TYPES_H

#include "base/err.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct opt_row;
struct options;

struct opt_value {
    const struct opt_row *row;
    const char *text;      /* NULL: a flag that was given. Borrowed. */
    const char *spelled;   /* As the user wrote the name: "--x", "AGENT_X"; */
    size_t spelled_len;    /* without what follows it. */
    bool is_variable;
};

struct opt_type {
    const char *name;         /* For the JSON view: "duration". */
    const char *arg;          /* What the value is called; NULL: takes none. */
    const char *const *words; /* Some or all values, ended by NULL, or NULL. */
    bool is_optional;         /* The value may be left out. */
    /* Check v->text and store it. Fails with ERR_USAGE. */
    int (*read)(const struct opt_value *v, struct options *o, struct err *e);
    /* Add the stored value as read() takes it; nothing where there is none. */
    void (*print)(const struct opt_row *row, const struct options *o,
                  struct text *t);
};

extern const struct opt_type opt_type_flag, opt_type_count, opt_type_number,
    opt_type_duration, opt_type_port, opt_type_word, opt_type_host,
    opt_type_hosts, opt_type_template, opt_type_path, opt_type_paths,
    opt_type_component,
    opt_type_nproc, opt_type_nnodes, opt_type_node_rank, opt_type_restarts,
    opt_type_policy, opt_type_backoff, opt_type_codes,
    opt_type_exit_map, opt_type_scope, opt_type_script, opt_type_log_format,
    opt_type_overflow, opt_type_ranks, opt_type_log_max,
    opt_type_format, opt_type_listen, opt_type_mesh, opt_type_view,
    opt_type_contract, opt_type_local_rank, opt_type_gpu_bind,
    opt_type_cpu_bind, opt_type_nccl_ifname, opt_type_checks,
    opt_type_signal;
/* torchrun_types.c: of torchrun's table alone. */
extern const struct opt_type torchrun_type_flag, torchrun_type_text,
    torchrun_type_dir, torchrun_type_handler, torchrun_type_number,
    torchrun_type_port, torchrun_type_nproc, torchrun_type_nnodes,
    torchrun_type_backend, torchrun_type_seconds, torchrun_type_method,
    torchrun_type_std, torchrun_type_local_ranks, torchrun_type_filter,
    torchrun_type_signals, torchrun_type_plugin, torchrun_type_binding;

/* Fail: "--grace=12x: " (or "AGENT_GRACE=12x: ") and the text. */
int opt_fault(const struct opt_value *v, struct err *e, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Which of the row type's words it is; -1 and a fault where it is none. */
int opt_read_choice(const struct opt_value *v, struct err *e);

/* A whole number in [min, max]; false where it is none. */
bool opt_read_uint(const char *s, size_t len, uint64_t min, uint64_t max,
                   uint64_t *ret);

/* The number of a signal, "USR1" or "SIGUSR1"; 0 where there is none. */
int opt_read_signal(const char *s, size_t len);

/* A duration as of opt_type_duration. */
bool opt_read_duration(const char *s, uint64_t *ret_ms);

/* Copy `src` for a message: cut, and without what a terminal would obey. */
#define OPT_SHOWN_MAX 80
const char *opt_shown(char buf[OPT_SHOWN_MAX], const char *src, size_t len);

#endif
