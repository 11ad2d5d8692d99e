/* help: see help.h. The text view and the views for programs; the manual page
 * is in help_man.c, completions are in help_complete.c. */
#include "agent/help.h"

#include "agent/help_parts.h"
#include "agent/option_table.h"
#include "base/std_fds.h"

#include <string.h>

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

#define HELP_COLUMN 30
#define HELP_WIDTH 80

/* Length of the first word, its leading blank included. What is in brackets
 * stays in one piece. */
static size_t piece_len(const char *s)
{
    size_t n = 0;
    int depth = 0;

    do {
        depth += (s[n] == '[') - (s[n] == ']');
        n++;
    } while (s[n] && (s[n] != ' ' || depth > 0));
    return n;
}

/* `words` in lines of HELP_WIDTH, where the cursor is at `column`; further
 * lines begin at `indent`. */
static void print_wrapped(FILE *out, size_t column, int indent,
                          const char *words)
{
    while (*words) {
        size_t len = piece_len(words);

        if (column + len > HELP_WIDTH) {
            fprintf(out, "\n%*s", indent, "");
            column = (size_t)indent;
            if (*words == ' ')
                words++, len--;
        }
        fprintf(out, "%.*s", (int)len, words);
        column += len;
        words += len;
    }
    fprintf(out, "\n");
}

static void print_rows(FILE *out, const struct opt_command *c,
                       enum opt_group group)
{
    const struct opt_table *table = opt_table_of(c);
    const struct opt_row *rows = table->rows;
    unsigned of = c->bit;
    bool titled = false;

    for (unsigned i = 0; i < table->n; i++) {
        const char *initial = rows[i].initial ? rows[i].initial : rows[i].none;
        char left[64], right[256];
        struct text t;

        if (rows[i].group != group || !(rows[i].commands & of))
            continue;
        if (!titled)
            fprintf(out, "\n%s:\n", opt_group_title(group));
        titled = true;
        text_init(&t, left, sizeof left);
        help_option(&t, &rows[i]);
        if (t.len > HELP_COLUMN - 3)
            fprintf(out, "  %s\n%*s", left, HELP_COLUMN, "");
        else
            fprintf(out, "  %-*s ", HELP_COLUMN - 3, left);
        text_init(&t, right, sizeof right);
        text_add(&t, "%s", rows[i].help);
        if (initial && *initial)
            text_add(&t, " [%s]", initial);
        print_wrapped(out, HELP_COLUMN, HELP_COLUMN, right);
    }
}

static void print_text(FILE *out, const struct opt_command *of)
{
    unsigned n;
    const struct opt_command *c = opt_commands(&n);

    if (of->command != CMD_RUN) {
        size_t column = strlen("usage: agent  ") + strlen(of->word);

        fprintf(out, "usage: agent %s ", of->word);
        print_wrapped(out, column, (int)column, of->usage);
        fprintf(out, "%s\n", of->help);
    } else {
        fprintf(out, "usage: agent [run] %s\n"
                     "An init and supervisor for the pods of a distributed "
                     "training.\n\nCommands:\n", of->usage);
        for (unsigned i = 0; i < n; i++)
            if (c[i].kind != OPT_LATER)
                fprintf(out, "  %-10s %s\n", c[i].word, c[i].help);
    }
    for (int g = 0; g < OPT_GROUPS; g++)
        print_rows(out, of, (enum opt_group)g);
    if (of->command == CMD_TORCHRUN)
        fprintf(out, "\nMost are also variables: PET_NNODES=2 is --nnodes 2. "
                     "Variables of agent's own\noptions, AGENT_DATASET say, "
                     "count where torchrun has no such option. See\n"
                     "agent(1).\n");
    if (of->command == CMD_RUN)
        fprintf(out, "\nEach option of run is also a variable: AGENT_GRACE=10s "
                     "is --grace 10s.\nDurations: 500ms, 10s, 5m, 2h. More on "
                     "each, and exit codes: agent(1),\nor agent --help=man | "
                     "man -l -. Commands: agent COMMAND --help.\n");
}

static void print_env(FILE *out)
{
    unsigned n;
    const struct opt_row *rows = opt_rows(&n);
    char name[OPT_NAME_MAX + 8];

    for (unsigned i = 0; i < n; i++)
        if (!rows[i].no_variable)
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
        fprintf(out, "}");
    }
    fprintf(out, "\n]\n");
}

int help_write(FILE *out, const char *view, struct err *e)
{
    const struct opt_command *c =
        strcmp(view, "env") == 0 ? NULL
        : opt_find_command(strncmp(view, "agent ", 6) == 0 ? view + 6 : view);
    const char *why;

    if (c && c->kind == OPT_OWN)
        print_text(out, c);
    else if (strcmp(view, "text") == 0)
        print_text(out, opt_find_command("run"));
    else if (strcmp(view, "man") == 0)
        help_man(out);
    else if (strcmp(view, "bash") == 0)
        help_bash(out);
    else if (strcmp(view, "zsh") == 0)
        help_zsh(out);
    else if (strcmp(view, "env") == 0)
        print_env(out);
    else if (strcmp(view, "json") == 0)
        print_json(out);
    else
        return err_set(e, ERR_USAGE, "--help=%.40s: no such view", view);
    why = std_fds_end(out);
    if (why)
        return err_set(e, ERR_RESOURCE, "write to stdout: %s", why);
    return 0;
}
