/* torchrun_types: the kinds of values of torchrun's table that agent's own
 * table does not have. */
#include "agent/option_table.h"
#include "agent/torchrun.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_MAX 40 /* Of a number's text, NUL included. */
#define FIELD(o, row, type) ((type *)(void *)((char *)(o) + (row)->at))

/* Nothing is kept of values without an effect, and no view prints them. */
static void nothing_print(const struct opt_row *row, const struct options *o,
                          struct text *t)
{
    (void)row;
    (void)o;
    (void)t;
}

/* Of no account with --standalone, so it is looked at later. */
static const char *const backend_words[] = {"static", "c10d", NULL};

static int backend_read(const struct opt_value *v, struct options *o,
                        struct err *e)
{
    (void)e;
    o->torchrun.backend = v->text;
    return 0;
}

/* Numbers come from files with a newline at their end, and Python does not
 * mind. */
static int read_stripped(const struct opt_value *v, struct options *o,
                         struct err *e, const struct opt_type *type)
{
    char number[NUMBER_MAX];
    struct opt_value plain = *v;
    const char *s = v->text ? v->text : "";
    size_t len = strlen(s);

    torchrun_strip(&s, &len);
    if (v->text && len < sizeof number) {
        memcpy(number, s, len);
        number[len] = '\0';
        plain.text = number;
    }
    return type->read(&plain, o, e);
}

#define STRIPPED(id)                                                           \
    static int id##_read(const struct opt_value *v, struct options *o,         \
                         struct err *e)                                        \
    {                                                                          \
        return read_stripped(v, o, e, &opt_type_##id);                         \
    }
static const char *const nproc_words[] = {"auto", "gpu", "cpu", NULL};
/* Python's bool(int()), and the words that agent's own have. */
static int int_flag_read(const struct opt_value *v, struct options *o,
                           struct err *e)
{
    uint64_t n;

    if (v->text && v->is_variable &&
        opt_read_uint(v->text, strlen(v->text), 0, UINT32_MAX, &n)) {
        *FIELD(o, v->row, bool) = n > 0;
        return 0;
    }
    return opt_type_flag.read(v, o, e);
}

static const struct opt_type opt_type_flag_of_int = {.read = int_flag_read};
STRIPPED(flag_of_int)
STRIPPED(number)
STRIPPED(port)
STRIPPED(nproc)
STRIPPED(nnodes)

static int plain_seconds_read(const struct opt_value *v, struct options *o,
                              struct err *e)
{
    char *end;
    double s = strtod(v->text, &end);

    (void)o;
    if (*end || end == v->text || !(s >= 0))
        return opt_fault(v, e, "use a number of seconds");
    return 0;
}

static const struct opt_type opt_type_seconds = {.read = plain_seconds_read};
STRIPPED(seconds)

static const char *const method_words[] = {"spawn", "fork", "forkserver",
                                           NULL};

static int method_read(const struct opt_value *v, struct options *o,
                       struct err *e)
{
    (void)o;
    return opt_read_choice(v, e) < 0 ? -ERR_USAGE : 0;
}

static bool is_digit(char c, char max)
{
    return c >= '0' && c <= max;
}

static int std_read(const struct opt_value *v, struct options *o,
                    struct err *e)
{
    struct std_choice choice = {.rest = 0};
    const char *s = v->text;

    if (is_digit(s[0], '3') && s[1] == '\0') {
        memset(&choice, s[0] - '0', sizeof choice);
        *FIELD(o, v->row, struct std_choice) = choice;
        return 0;
    }
    for (;; s += 4) {
        if (!is_digit(s[0], '9') || s[1] != ':' || !is_digit(s[2], '3') ||
            (s[3] && s[3] != ','))
            return opt_fault(v, e, "use 0, 1, 2 or 3 for all, or such a "
                             "number by local rank, of one digit: 0:3,1:1");
        choice.of[s[0] - '0'] = (uint8_t)(s[2] - '0');
        if (!s[3])
            break;
    }
    *FIELD(o, v->row, struct std_choice) = choice;
    return 0;
}

static int local_ranks_read(const struct opt_value *v, struct options *o,
                            struct err *e)
{
    struct rank_list list = {.n = 0};
    const char *s = v->text;

    while (*s) {
        size_t len = strcspn(s, ","), n = len;
        const char *number = s;
        uint64_t rank = 0;

        torchrun_strip(&number, &n);
        if (!opt_read_uint(number, n, 0, OPT_MAX_NPROC - 1, &rank) ||
            (s[len] && !s[len + 1]))
            return opt_fault(v, e, "use local ranks with commas between them: "
                             "0,1,2");
        if (list.n == OPT_RANGES_MAX)
            return opt_fault(v, e, "at most %d of them", OPT_RANGES_MAX);
        list.first[list.n] = list.last[list.n] = (uint32_t)rank;
        list.n++;
        s += len + (s[len] == ',');
    }
    o->torchrun.local_ranks = list;
    return 0;
}

static int filter_read(const struct opt_value *v, struct options *o,
                       struct err *e)
{
    if (strlen(v->text) > v->row->max)
        return opt_fault(v, e, "at most %u bytes", (unsigned)v->row->max);
    /* Given, "" is in every line. */
    *FIELD(o, v->row, const char *) = v->text == v->row->initial ? NULL
                                                                 : v->text;
    return 0;
}

/* The four that stop any job are not here: workers get TERM for them. */
static bool can_stop(int signo)
{
    return signo == SIGUSR1 || signo == SIGUSR2 || signo == SIGALRM ||
           signo == SIGWINCH;
}

static int signals_read(const struct opt_value *v, struct options *o,
                        struct err *e)
{
    const char *s = v->text;
    uint64_t stop_with = 0;

    if (strlen(s) > v->row->max)
        return opt_fault(v, e, "at most %u bytes", (unsigned)v->row->max);
    for (;;) {
        size_t len = strcspn(s, ","), skip = strspn(s, " ");
        size_t end = len;
        int signo;

        while (end > skip && s[end - 1] == ' ')
            end--;
        signo = end - skip > 3 && memcmp(s + skip, "SIG", 3) == 0
                    ? opt_read_signal(s + skip, end - skip)
                    : 0;
        if (signo == 0)
            return opt_fault(v, e, "use names of signals with commas between "
                             "them: SIGTERM,SIGUSR1");
        if (signo == SIGKILL || signo == SIGSTOP)
            return opt_fault(v, e, "nobody can handle SIGKILL or SIGSTOP");
        if (can_stop(signo))
            stop_with |= (uint64_t)1 << signo;
        if (!s[len])
            break;
        s += len + 1;
    }
    o->torchrun.stop_with = stop_with;
    *FIELD(o, v->row, const char *) = v->text;
    return 0;
}

/* Looked at, and its blanks and line ends left out, in torchrun.c. */
static int text_read(const struct opt_value *v, struct options *o,
                     struct err *e)
{
    if (strlen(v->text) > v->row->max)
        return opt_fault(v, e, "at most %u bytes", (unsigned)v->row->max);
    *FIELD(o, v->row, const char *) = v->text;
    return 0;
}

/* "" is none, as for `--log-dir "$DIR"`. */
static int dir_read(const struct opt_value *v, struct options *o,
                    struct err *e)
{
    if (v->text[0])
        return opt_type_path.read(v, o, e);
    *FIELD(o, v->row, const char *) = NULL;
    return 0;
}

static const char *const handler_words[] = {"null", "console",
                                            "dynamic_rendezvous", NULL};

static int handler_read(const struct opt_value *v, struct options *o,
                        struct err *e)
{
    (void)o;
    return opt_read_choice(v, e) < 0 ? -ERR_USAGE : 0;
}

/* "default" is what torchrun does without it. */
static int plugin_read(const struct opt_value *v, struct options *o,
                       struct err *e)
{
    (void)o;
    if (strcmp(v->text, "default") == 0)
        return 0;
    return opt_fault(v, e, "this names a plug-in in Python, and no Python "
                     "runs in agent; see --log-dir, --tee, --redirects");
}

static const char *const binding_words[] = {"node", "socket", "exclusive",
                                            "core-complex", NULL};

static int binding_read(const struct opt_value *v, struct options *o,
                        struct err *e)
{
    static const enum cpu_bind modes[] = {CPU_BIND_NODE, CPU_BIND_SOCKET,
                                          CPU_BIND_CORES, CPU_BIND_COMPLEX};
    int i = opt_read_choice(v, e);

    if (i < 0)
        return -ERR_USAGE;
    o->torchrun.numa_binding = modes[i];
    return 0;
}

#define TYPE(id, name, arg, words, read)                                       \
    const struct opt_type torchrun_type_##id = {name, arg, words, false,       \
                                                read, nothing_print}
TYPE(backend, "word", "static|c10d", backend_words, backend_read);
TYPE(flag, "flag", NULL, NULL, flag_of_int_read);
TYPE(text, "word", "WORD", NULL, text_read);
TYPE(dir, "path", "PATH", NULL, dir_read);
TYPE(handler, "word", "NAME", handler_words, handler_read);
TYPE(number, "number", "N", NULL, number_read);
TYPE(port, "port", "PORT", NULL, port_read);
TYPE(nproc, "workers", "N|auto|gpu|cpu", nproc_words, nproc_read);
TYPE(nnodes, "number", "N|MIN:MAX", NULL, nnodes_read);
TYPE(seconds, "seconds", "SECONDS", NULL, seconds_read);
TYPE(method, "word", "METHOD", method_words, method_read);
TYPE(std, "streams", "STREAMS", NULL, std_read);
TYPE(local_ranks, "list of ranks", "LIST", NULL, local_ranks_read);
TYPE(filter, "list of words", "WORD,...", NULL, filter_read);
TYPE(signals, "list of signals", "SIG,...", NULL, signals_read);
TYPE(plugin, "name", "NAME", NULL, plugin_read);
TYPE(binding, "word", "MODE", binding_words, binding_read);
