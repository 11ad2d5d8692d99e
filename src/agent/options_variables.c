/* options_variables: the variables of options; see options_parts.h. */
#include "agent/options_parts.h"

#include <string.h>

/* `name` has no row: is it a slip? */
static int check_slip(struct reader *r, const char *entry, size_t len)
{
    char shown[OPT_SHOWN_MAX], is[OPT_NAME_MAX + 8];
    const char *near;

    if (len == 11 && memcmp(entry, "AGENT_TOKEN", 11) == 0)
        return 0; /* No option has it; see token.h. */
    near = opt_one_edit(entry + 6, len - 6, OPT_RUN);
    if (!near)
        return 0;
    return err_set(r->e, ERR_USAGE, "%s: no such variable; did you mean %s?",
                   opt_shown(shown, entry, len), opt_variable(is, near));
}

/* One NAME=value of the environment that begins with the prefix of `t`. */
static int read_variable(struct reader *r, const struct opt_table *t,
                         const char *entry)
{
    const char *eq = strchr(entry, '=');
    size_t len = eq ? (size_t)(eq - entry) : 0, skip = strlen(t->prefix);
    bool is_own = t == opt_table_of(opt_find_command("run")), alias = false;
    /* AGENT_* of `run` are read under torchrun's options, too. */
    unsigned of = is_own && r->o->torchrun.is_on ? OPT_RUN : r->command->bit;
    struct opt_value v = {.spelled = entry, .spelled_len = len,
                          .is_variable = true};
    enum opt_origin from, *at;

    if (!eq || len <= skip)
        return 0;
    v.row = opt_find_variable(t, entry + skip, len - skip, &alias);
    /* PyTorchJob sets PET_STANDALONE to nothing, for yes. */
    v.text = eq[1] == '\0' && v.row &&
                     v.row == opt_find_in(torchrun_table(), "standalone", 10)
                 ? "1" : eq + 1;
    if (v.text[0] == '\0')
        return 0;
    if (!v.row)
        return is_own ? check_slip(r, entry, len) : 0;
    from = alias ? BY_ALIAS_VARIABLE : BY_VARIABLE;
    at = option_from(r, v.row);
    if (!(v.row->commands & of) || *at >= from)
        return 0;
    *at = from;
    return v.row->type->read(&v, r->o, r->e);
}

int options_read_variables(struct reader *r, const struct opt_table *t,
                           char *const *envp)
{
    int e = 0;

    for (; e == 0 && *envp; envp++)
        if (strncmp(*envp, t->prefix, strlen(t->prefix)) == 0)
            e = read_variable(r, t, *envp);
    return e;
}

bool options_is_variable(const char *name, size_t len)
{
    bool alias;

    if (len <= 6 || memcmp(name, "AGENT_", 6) != 0)
        return false;
    if (len == 11 && memcmp(name, "AGENT_TOKEN", 11) == 0)
        return true;
    return opt_find_variable(opt_table_of(opt_find_command("run")),
                             name + 6, len - 6, &alias) != NULL;
}
