/* help: see help.h. The text view and the views for programs; the manual page
 * is in help_man.c. */
#include "agent/help.h"

#include "agent/help_parts.h"
#include "agent/option_table.h"

#include <string.h>

/* "-o, --output FILE" of a row. */
void help_option(struct text *t, const struct opt_row *row)
{
    const char *arg = opt_arg(row);

    if (row->letter)
        text_add(t, "-%c, ", row->letter);
    text_add(t, "--%s", row->name);
    if (arg && row->type->is_optional)
        text_add(t, "[=%s]", arg);
    else if (arg)
        text_add(t, " %s", arg);
}

static void print_rows(FILE *out, unsigned of, enum opt_group group)
{
    unsigned n;
    const struct opt_row *rows = opt_rows(&n);
    bool titled = false;

    for (unsigned i = 0; i < n; i++) {
        const char *initial = rows[i].initial ? rows[i].initial : rows[i].none;
        char left[64];
        struct text t;

        if (rows[i].later || rows[i].group != group ||
            !(rows[i].commands & of))
            continue;
        if (!titled)
            fprintf(out, "\n%s:\n", opt_group_title(group));
        titled = true;
        text_init(&t, left, sizeof left);
        help_option(&t, &rows[i]);
        fprintf(out, "  %-27s %s", left, rows[i].help);
        if (initial && *initial)
            fprintf(out, " [%s]", initial);
        fprintf(out, "\n");
    }
}

static void print_text(FILE *out, const struct opt_command *of)
{
    unsigned n;
    const struct opt_command *c = opt_commands(&n);

    if (of->command != CMD_RUN) {
        fprintf(out, "usage: agent %s %s\n%s\n", of->word, of->usage, of->help);
    } else {
        fprintf(out, "usage: agent [run] %s\n"
                     "An init and supervisor for the pods of a distributed "
                     "training.\n\nCommands:\n", of->usage);
        for (unsigned i = 0; i < n; i++)
            if (c[i].kind != OPT_LATER)
                fprintf(out, "  %-10s %s\n", c[i].word, c[i].help);
    }
    for (int g = 0; g < OPT_GROUPS; g++)
        print_rows(out, of->bit, (enum opt_group)g);
    if (of->command == CMD_RUN)
        fprintf(out, "\nEach option of run is also a variable: AGENT_GRACE=10s "
                     "is --grace 10s.\nDurations: 500ms, 10s, 5m, 2h. See "
                     "agent(1), agent COMMAND --help.\n");
}

static void print_env(FILE *out)
{
    unsigned n;
    const struct opt_row *rows = opt_rows(&n);
    char name[OPT_NAME_MAX + 8];

    for (unsigned i = 0; i < n; i++)
        if (!rows[i].later && !rows[i].no_variable)
            fprintf(out, "%s=%s\n", opt_variable(name, rows[i].name),
                    rows[i].initial ? rows[i].initial : "");
}

static void print_json_string(FILE *out, const char *s)
{
    (void)fputc('"', out);
    for (; s && *s; s++) {
        if (*s == '"' || *s == '\\')
            fprintf(out, "\\%c", *s);
        else if ((unsigned char)*s < 0x20)
            fprintf(out, "\\u%04x", (unsigned)*s);
        else
            (void)fputc(*s, out);
    }
    (void)fputc('"', out);
}

static void json_member(FILE *out, const char *name, const char *value)
{
    fprintf(out, "\"%s\": ", name);
    if (value)
        print_json_string(out, value);
    else
        fprintf(out, "null");
}

static void print_json(FILE *out)
{
    unsigned n;
    const struct opt_row *rows = opt_rows(&n);
    char name[OPT_NAME_MAX + 8];

    fprintf(out, "[");
    for (unsigned i = 0; i < n; i++) {
        const struct opt_row *r = &rows[i];

        fprintf(out, "%s\n {", i ? "," : "");
        json_member(out, "name", r->name);
        fprintf(out, ", ");
        json_member(out, "env",
                    r->no_variable ? NULL : opt_variable(name, r->name));
        fprintf(out, ", ");
        json_member(out, "default", r->initial);
        fprintf(out, ", ");
        json_member(out, "type", r->type->name);
        fprintf(out, ", ");
        json_member(out, "argument", opt_arg(r));
        fprintf(out, ", ");
        json_member(out, "group", opt_group_title(r->group));
        fprintf(out, ", ");
        json_member(out, "help", r->help);
        fprintf(out, ", \"built\": %s}", r->later ? "false" : "true");
    }
    fprintf(out, "\n]\n");
}

static void print_options_of(FILE *out, unsigned of)
{
    unsigned n;
    const struct opt_row *rows = opt_rows(&n);

    for (unsigned i = 0; i < n; i++)
        if (!rows[i].later && (rows[i].commands & of))
            fprintf(out, " --%s", rows[i].name);
}

/* After an option with words of its own, those; after a path option, files;
 * after a dash, the command's options. */
static void print_bash(FILE *out)
{
    unsigned n, n_rows;
    const struct opt_command *c = opt_commands(&n);
    const struct opt_row *rows = opt_rows(&n_rows);

    fprintf(out, "# bash completion for agent: made by agent --help=bash\n"
                 "_agent()\n{\n"
                 "    local cur=${COMP_WORDS[COMP_CWORD]} words=\n"
                 "    case ${COMP_WORDS[COMP_CWORD-1]} in\n");
    for (unsigned i = 0; i < n_rows; i++) {
        const char *const *w = rows[i].type->words;

        if (rows[i].later || !w || rows[i].type->is_optional)
            continue;
        fprintf(out, "    --%s) words='", rows[i].name);
        for (; *w; w++)
            fprintf(out, "%s ", *w);
        fprintf(out, "' ;;\n");
    }
    fprintf(out, "    esac\n    if [ -z \"$words\" ]; then\n"
                 "        case $COMP_CWORD:${COMP_WORDS[1]} in\n");
    for (unsigned i = 0; i < n; i++)
        if (c[i].kind == OPT_OWN && c[i].command != CMD_RUN) {
            fprintf(out, "        *:%s) words='", c[i].word);
            print_options_of(out, c[i].bit);
            fprintf(out, "' ;;\n");
        }
    fprintf(out, "        1:-*|*) words='");
    print_options_of(out, OPT_RUN);
    fprintf(out, "'\n            [ $COMP_CWORD -ne 1 ] || words=\"$words");
    for (unsigned i = 0; i < n; i++)
        if (c[i].kind != OPT_LATER)
            fprintf(out, " %s", c[i].word);
    fprintf(out, "\" ;;\n        esac\n    fi\n"
                 "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
                 "}\ncomplete -o default -F _agent agent\n");
}

static void print_zsh(FILE *out)
{
    unsigned n;
    const struct opt_row *rows = opt_rows(&n);

    fprintf(out, "#compdef agent\n"
                 "# zsh completion for agent: made by agent --help=zsh\n"
                 "_arguments -S \\\n");
    for (unsigned i = 0; i < n; i++) {
        const struct opt_row *r = &rows[i];
        const char *const *w = r->type->words;

        if (r->later)
            continue;
        fprintf(out, "  '--%s%s[", r->name, r->type->is_optional ? "=-"
                     : opt_arg(r) ? "=" : "");
        for (const char *s = r->help; *s; s++) {
            if (strchr("[]:\\", *s))
                (void)fputc('\\', out);
            (void)fputc(*s, out);
        }
        fprintf(out, "]");
        if (opt_arg(r) && w) {
            fprintf(out, ":%s:(", r->name);
            for (; *w; w++)
                fprintf(out, "%s ", *w);
            fprintf(out, ")");
        } else if (opt_arg(r)) {
            fprintf(out, ":%s:%s", r->name,
                    strstr(r->type->name, "path") ? "_files" : " ");
        }
        fprintf(out, "' \\\n");
    }
    fprintf(out, "  '*:: :_normal'\n");
}

int help_write(FILE *out, const char *view, struct err *e)
{
    const struct opt_command *c = opt_find_command(view);

    if (c && c->kind == OPT_OWN)
        print_text(out, c);
    else if (strcmp(view, "text") == 0)
        print_text(out, opt_find_command("run"));
    else if (strcmp(view, "man") == 0)
        help_man(out);
    else if (strcmp(view, "bash") == 0)
        print_bash(out);
    else if (strcmp(view, "zsh") == 0)
        print_zsh(out);
    else if (strcmp(view, "env") == 0)
        print_env(out);
    else if (strcmp(view, "json") == 0)
        print_json(out);
    else
        return err_set(e, ERR_USAGE, "--help=%.40s: no such view", view);
    if (fflush(out) != 0 || ferror(out))
        return err_set(e, ERR_RESOURCE, "the help cannot be written");
    return 0;
}
