/* options: see options.h. Command line first, then the variables of what it
 * left open, then the defaults, then the checks that take two values. */
#include "agent/options.h"

#include "agent/contract.h"
#include "agent/options_parts.h"

#include <stdio.h>
#include <string.h>

static bool is_torchrun(const struct reader *r)
{
    return r->command->command == CMD_TORCHRUN;
}

/* "nproc 2", as a list in a manifest may have it. */
static bool is_two_words(const struct reader *r, const char *name, size_t len)
{
    const char *blank = memchr(name, ' ', len);

    return blank && opt_find_in(r->table, name, (size_t)(blank - name));
}

/* Who tells which options there are: " verify" of "agent verify --help". */
static const char *own_help(const struct reader *r, char buf[24])
{
    bool is_run = r->command->command == CMD_RUN;

    (void)snprintf(buf, 24, "%s%s", is_run ? "" : " ",
                   is_run ? "" : r->command->word);
    return buf;
}

/* Of agent's own options the one that torchrun has not, or NULL. */
static const struct opt_row *own_alone(const struct reader *r, const char *name,
                                       size_t len)
{
    const struct opt_row *row = is_torchrun(r) ? opt_find(name, len) : NULL;

    return row && row->commands & OPT_RUN && !row->no_variable ? row : NULL;
}

/* Of torchrun's options the one, by its whole name, that `run` has not. */
static bool is_torchruns_alone(const struct reader *r, const char *word,
                               size_t len)
{
    const struct opt_table *t = torchrun_table();
    const struct opt_row *row;

    if (r->command->command != CMD_RUN)
        return false;
    if (word[1] != '-')
        return len == 2 && opt_find_letter(t, word[1]);
    row = opt_find_in(t, word + 2, len - 2);
    return row && strlen(row->name) == len - 2;
}

/* `name` is the word without its dashes. */
static int unknown(struct reader *r, const char *word, size_t len,
                   const char *name)
{
    char shown[OPT_SHOWN_MAX];
    char of[24], variable[OPT_NAME_MAX + 8];
    size_t n = len - (size_t)(name - word);
    const char *near = opt_nearest(r->table, name, n, r->command->bit);
    const struct opt_row *own = own_alone(r, name, n);

    (void)opt_shown(shown, word, len);
    if (is_two_words(r, name, n))
        return err_set(r->e, ERR_USAGE, "%s: this is one word: make the option "
                       "and its value two, or write = for the blank", shown);
    if (own)
        return err_set(r->e, ERR_USAGE, "%s: an option of agent's own, and "
                       "none of torchrun's: give %s in the environment", shown,
                       opt_variable(variable, own->name));
    if (is_torchruns_alone(r, word, len))
        return err_set(r->e, ERR_USAGE, "%s: an option of torchrun's, and none "
                       "of agent's own: use agent torchrun, or see agent "
                       "--help", shown);
    if (!near || n < 2)
        return err_set(r->e, ERR_USAGE, "%s: no such option; see agent%s "
                       "--help", shown, own_help(r, of));
    return err_set(r->e, ERR_USAGE, "%s: no such option; did you mean --%s?",
                   shown, near);
}

/* The word after an option is its value, unless it looks like an option: then
 * the value was most likely forgotten. */
static int next_word(struct reader *r, struct opt_value *v, int *i)
{
    char shown[OPT_SHOWN_MAX];
    const char *arg = opt_arg(v->row);
    const char *word = *i < r->argc ? r->argv[*i] : NULL;

    if (!word)
        return opt_fault(v, r->e, "it needs a value: %s", arg);
    if (word[0] == '-' &&
        (word[1] == '-' || (is_torchrun(r) && torchrun_is_option(word))))
        return opt_fault(v, r->e, "it needs a value, %s, and %s follows (a "
                         "value that begins with %s is given as --%s=VALUE)",
                         arg, opt_shown(shown, word, strlen(word)),
                         word[1] == '-' ? "--" : "-", v->row->name);
    v->text = word;
    ++*i;
    return 0;
}

static int take(struct reader *r, const struct opt_row *row,
                const struct opt_value *v)
{
    char of[24];

    if (!(row->commands & r->command->bit))
        return opt_fault(v, r->e, "not an option of 'agent %s'; see agent%s "
                         "--help", r->command->word, own_help(r, of));
    *option_from(r, row) = BY_WORD;
    if (strcmp(row->name, "help") == 0)
        r->help = true;
    if (strcmp(row->name, "version") == 0) {
        if (v->text)
            return opt_fault(v, r->e, "it takes no value");
        r->version = true;
        return 0;
    }
    return row->type->read(v, r->o, r->e);
}

/* "--name", "--name=value", "--name value"; *i moves past what was taken. */
static int long_option(struct reader *r, int *i)
{
    const char *word = r->argv[*i], *eq = strchr(word, '=');
    size_t len = eq ? (size_t)(eq - word) : strlen(word);
    const struct opt_row *row = opt_find_in(r->table, word + 2, len - 2);
    struct opt_value v = {.row = row, .spelled = word, .spelled_len = len};

    ++*i;
    if (!row)
        return unknown(r, word, len, word + 2);
    if (eq)
        v.text = eq + 1;
    else if (row->type->arg && !row->type->is_optional &&
             (row->commands & r->command->bit) && next_word(r, &v, i) != 0)
        return -ERR_USAGE;
    return take(r, row, &v);
}

/* "-q", "-qv", "-o FILE", "-oFILE". */
static int short_options(struct reader *r, int *i)
{
    const char *word = r->argv[*i];
    char name[3] = "-?";
    int e;

    ++*i;
    for (const char *s = word + 1; *s; s++) {
        const struct opt_row *row = opt_find_letter(r->table, *s);
        struct opt_value v = {.row = row, .spelled = name, .spelled_len = 2};
        bool has_value = row && row->type->arg && !row->type->is_optional;

        name[1] = *s;
        if (!row)
            return unknown(r, word, strcspn(word, "="), word + 1);
        if (has_value && s[1]) /* "-t=3" is torchrun's alone. */
            v.text = s + 1 + (is_torchrun(r) && s[1] == '=');
        else if (has_value && (row->commands & r->command->bit) &&
                 next_word(r, &v, i) != 0)
            return -ERR_USAGE;
        e = take(r, row, &v);
        if (e != 0 || has_value)
            return e;
    }
    return 0;
}

/* Options and words. `run` ends at its command; the tools take options after
 * their words, too, and have their words put in front. */
static int read_words(struct reader *r, int i)
{
    bool mixed = r->command->command != CMD_RUN && !is_torchrun(r);
    bool only_words = false;
    int first = i, n = 0, e = 0;

    while (e == 0 && i < r->argc) {
        char *word = r->argv[i];

        if (only_words || word[0] != '-' || word[1] == '\0') {
            if (!mixed)
                break;
            r->argv[first + n++] = word;
            i++;
        } else if (strcmp(word, "--") == 0) {
            i++;
            if (!mixed)
                break;
            only_words = true;
        } else if (word[1] == '-') {
            e = long_option(r, &i);
        } else {
            e = short_options(r, &i);
        }
    }
    r->o->args = r->argv + (mixed ? first : i);
    r->o->n_args = mixed ? n : r->argc - i;
    if (mixed)
        r->argv[first + n] = NULL;
    return e;
}

static int read_defaults(struct reader *r, const struct opt_table *t)
{
    for (unsigned i = 0; i < t->n; i++) {
        const struct opt_row *row = &t->rows[i];
        struct opt_value v = {.row = row, .text = row->initial,
                              .spelled = row->name};
        int e;

        if (!v.text)
            continue; /* And its name is not looked at: a start is short. */
        v.spelled_len = strlen(row->name);
        e = row->type->read(&v, r->o, r->e);
        if (e != 0)
            return e;
    }
    r->o->master_port_given = r->o->mesh_given = r->o->role_given = false;
    r->o->preflight_given = false;
    return 0;
}

static int check_run(struct reader *r)
{
    struct options *o = r->o;

    if (!o->any_node_rank && o->node_rank >= o->nnodes)
        return err_set(r->e, ERR_USAGE,
                       "%s %u must be less than %s %u%s",
                       options_said_by(o, TOPO_NODE_RANK), o->node_rank,
                       options_said_by(o, TOPO_NNODES), o->nnodes,
                       o->nnodes == 1 && o->origins[TOPO_NNODES] == BY_DEFAULT
                           ? ", the default: say how many pods there are" : "");
    if (o->nnodes > 1 && o->barrier_port == o->master_port)
        return err_set(r->e, ERR_USAGE, "port %u is both --master-port and "
                       "--barrier-port; give another --barrier-port, the same "
                       "on all pods", o->master_port);
    if (o->http_port && (o->http_port == o->master_port ||
                         (o->nnodes > 1 && (o->http_port == o->barrier_port ||
                                            o->http_port == o->mesh_port))))
        return err_set(r->e, ERR_USAGE, "--http %u: this port is that of %s; "
                       "give another one", o->http_port,
                       o->http_port == o->master_port    ? "--master-port"
                       : o->http_port == o->barrier_port ? "--barrier-port"
                                                         : "--mesh-port");
    if (o->servers > 0 && !(o->contracts & CONTRACT_MXNET))
        return err_set(r->e, ERR_USAGE, "--servers %u: servers are of "
                       "--contract mxnet", o->servers);
    if (o->n_args == 0 && o->command == CMD_RUN)
        return err_set(r->e, ERR_USAGE,
                       is_torchrun(r)
                           ? "no script to run; use: torchrun [options] script "
                             "[args...] (agent torchrun --help)"
                           : "no command to run; use: agent [options] [--] "
                             "command [args...] (agent --help)");
    return 0;
}

static int check(struct reader *r)
{
    const struct options *o = r->o;
    const struct opt_command *c = r->command;

    if (o->n_sources > o->n_datasets)
        return err_set(r->e, ERR_USAGE, "%u --source but %u --dataset: the "
                       "n-th source belongs to the n-th data set",
                       o->n_sources, o->n_datasets);
    if (o->command == CMD_RUN ||
        ((c->command == CMD_ENV || c->command == CMD_PREFLIGHT) &&
         o->n_args == 0)) {
        /* A variable may be the image's, for when there is a data set. */
        if (o->n_datasets == 0 &&
            *option_from(r, opt_find("stage", 5)) == BY_WORD)
            return err_set(r->e, ERR_USAGE, "--stage %.200s without --dataset: "
                           "there is nothing to stage", o->stage);
        if (o->n_datasets == 0 &&
            *option_from(r, opt_find("reverify", 8)) == BY_WORD)
            return err_set(r->e, ERR_USAGE, "--reverify without --dataset: "
                           "there is nothing to verify");
        if (!o->offline &&
            *option_from(r, opt_find("offline-allow", 13)) == BY_WORD)
            return err_set(r->e, ERR_USAGE, "--offline-allow without "
                           "--offline: every host is reached");
        if (!o->log_dir &&
            *option_from(r, opt_find("log-max", 7)) == BY_WORD)
            return err_set(r->e, ERR_USAGE, "--log-max without --log-dir: "
                           "there are no files");
        return check_run(r);
    }
    if (o->n_args < c->min_words || o->n_args > c->max_words)
        return err_set(r->e, ERR_USAGE, "%s: use: agent %s %s",
                       o->n_args < c->min_words ? "too few words"
                                                : "too many words",
                       c->word, c->usage);
    if (c->command == CMD_STAGE && (o->n_datasets != 1 || !o->stage))
        return err_set(r->e, ERR_USAGE, "%s; use: agent %s %s",
                       o->n_datasets > 1    ? "one --dataset at a time"
                       : o->n_datasets == 0 ? "--dataset is missing"
                                            : "--stage is missing",
                       c->word, c->usage);
    return 0;
}

/* Which command, and where its words begin. */
static int find_command(struct reader *r, int *ret_first)
{
    const char *name = r->argc > 0 ? strrchr(r->argv[0], '/') : NULL;
    const struct opt_command *c = NULL;

    name = name ? name + 1 : r->argc > 0 ? r->argv[0] : "agent";
    r->command = opt_find_command("run");
    *ret_first = 1;
    if (strcmp(name, "torchrun") == 0) {
        r->command = opt_find_command(name);
        return 0;
    }
    if (r->argc > 1)
        c = opt_find_command(r->argv[1]);
    if (!c)
        return 0;
    if (c->kind == OPT_LATER)
        return err_set(r->e, ERR_USAGE, "agent %s: not in this version (agent "
                       AGENT_VERSION "); a program of that name is run by: "
                       "agent -- %s", c->word, c->word);
    r->command = c;
    *ret_first = 2;
    return 0;
}

static int read_all(struct reader *r, int first, char *const *envp)
{
    int e = read_words(r, first);

    if (e != 0)
        return e;
    if (r->help || r->version) {
        r->o->command = r->help ? CMD_HELP : CMD_VERSION;
        if (r->help && r->command->command != CMD_RUN &&
            strcmp(r->o->help_view, "text") == 0)
            r->o->help_view = r->command->command == CMD_ENV
                                  ? "agent env"
                                  : r->command->word;
        return 0;
    }
    if (is_torchrun(r))
        e = torchrun_read(r, envp);
    if (e == 0)
        e = options_read_variables(r, opt_table_of(opt_find_command("run")),
                                   envp);
    if (e == 0 && r->command->bit & OPT_RUN)
        e = options_read_topology(r->o, r->from, envp, r->place, r->e);
    return e ? e : check(r);
}

int options_read(struct options *ret, int argc, char **argv, char *const *envp,
                 struct err *e)
{
    memset(ret, 0, sizeof *ret);
    return options_read_at(ret, argc, argv, envp, NULL, e);
}

int options_read_at(struct options *ret, int argc, char **argv,
                    char *const *envp,
                    const struct topo_place *(*place)(void *ctx),
                    struct err *e)
{
    struct reader r = {.o = ret, .place = place, .argc = argc, .argv = argv,
                       .e = e};
    int first, f;

    f = read_defaults(&r, opt_table_of(opt_find_command("run")));
    if (f == 0)
        f = find_command(&r, &first);
    if (f != 0)
        return f;
    r.table = opt_table_of(r.command);
    ret->command = r.command->command;
    if (is_torchrun(&r)) {
        ret->command = CMD_RUN;
        ret->torchrun.is_on = true;
        f = read_defaults(&r, r.table);
    }
    if (f != 0)
        return f;
    if (r.command->kind == OPT_PASSED) {
        ret->args = argv + first;
        ret->n_args = argc - first;
        return 0;
    }
    return read_all(&r, first, envp);
}
