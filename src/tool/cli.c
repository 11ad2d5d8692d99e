/* cli: see cli.h. */
#include "tool/cli.h"

#include "agent/option_types.h"

#include <stdbool.h>
#include <string.h>

#define HELP_AT 26 /* The column of what --help says of an option. */
#define HELP_END 79

static const struct cli_row *find(const struct cli *cli, const char *name,
                                  size_t len)
{
    for (unsigned i = 0; i < cli->n_rows; i++) {
        const struct cli_row *row = &cli->rows[i];
        bool same = strlen(row->name) == len;

        for (size_t k = 0; same && k < len; k++)
            same = row->name[k] == (name[k] == '_' ? '-' : name[k]);
        if (same)
            return row;
    }
    return NULL;
}

int cli_bad(const struct cli_row *row, const char *text, const char *why,
            struct err *e)
{
    char shown[OPT_SHOWN_MAX];

    return err_set(e, ERR_USAGE, "--%s=%s: %s", row->name,
                   opt_shown(shown, text, strlen(text)), why);
}

static int take(void *to, const struct cli_row *row, const char *text,
                enum cli_view *view, struct err *e)
{
    uint64_t v = 0;

    switch (row->kind) {
    case CLI_FLAG:
        *CLI_FIELD(to, row, bool) = true;
        return 0;
    case CLI_COUNT:
        ++*CLI_FIELD(to, row, unsigned);
        return 0;
    case CLI_HELP:
        *view = text && strcmp(text, "man") == 0 ? CLI_SHOW_MAN
                                                 : CLI_SHOW_HELP;
        return 0;
    case CLI_VERSION:
        *view = CLI_SHOW_VERSION;
        return 0;
    case CLI_OTHER:
        return row->take(to, row, text, e);
    case CLI_PATH:
        if (!*text)
            return cli_bad(row, text, "it must not be empty", e);
        *CLI_FIELD(to, row, const char *) = text;
        return 0;
    case CLI_NUMBER:
        if (!opt_read_uint(text, strlen(text), row->min, row->max, &v))
            return err_set(e, ERR_USAGE, "--%s=%.40s: use a number from %u to "
                           "%u", row->name, text, (unsigned)row->min,
                           (unsigned)row->max);
        *CLI_FIELD(to, row, unsigned) = (unsigned)v;
        return 0;
    case CLI_DURATION:
        break;
    }
    if (!opt_read_duration(text, &v) || v < row->min || v > row->max)
        return cli_bad(row, text, "use a duration that makes sense here: 30s, "
                       "5m, 2h", e);
    *CLI_FIELD(to, row, uint64_t) = v;
    return 0;
}

/* The words of a command line, and how far it is read. */
struct line {
    const struct cli *cli;
    void *to;
    int argc, i;
    char **argv;
    enum cli_view *view;
};

static int long_option(struct line *l, struct err *e)
{
    const char *word = l->argv[l->i] + 2, *eq = strchr(word, '=');
    const struct cli_row *row = find(l->cli, word, eq ? (size_t)(eq - word)
                                                      : strlen(word));
    const char *text = eq ? eq + 1 : NULL;
    char shown[OPT_SHOWN_MAX];

    if (!row)
        return err_set(e, ERR_USAGE, "%s: no such option; see %s --help",
                       opt_shown(shown, word - 2, strlen(word) + 2),
                       l->cli->program);
    if (row->arg && !text) {
        if (l->i + 1 >= l->argc)
            return err_set(e, ERR_USAGE, "--%s: it needs a value: %s",
                           row->name, row->arg);
        text = l->argv[++l->i];
    }
    if (!row->arg && text && row->kind != CLI_HELP)
        return cli_bad(row, text, "it takes no value", e);
    return take(l->to, row, text, l->view, e);
}

static int short_options(struct line *l, struct err *e)
{
    for (const char *s = l->argv[l->i] + 1; *s; s++) {
        const struct cli_row *row = NULL;
        const char *text = NULL;
        int rc;

        for (unsigned k = 0; k < l->cli->n_rows; k++)
            if (l->cli->rows[k].letter == *s)
                row = &l->cli->rows[k];
        if (!row)
            return err_set(e, ERR_USAGE, "-%c: no such option; see %s --help",
                           *s > ' ' ? *s : '?', l->cli->program);
        if (row->arg)
            text = s[1] ? s + 1 : l->i + 1 < l->argc ? l->argv[++l->i] : NULL;
        if (row->arg && !text)
            return err_set(e, ERR_USAGE, "-%c: it needs a value: %s", *s,
                           row->arg);
        rc = take(l->to, row, text, l->view, e);
        if (rc || row->arg)
            return rc;
    }
    return 0;
}

int cli_read(const struct cli *cli, void *to, int argc, char **argv,
             enum cli_view *ret_view, struct err *e)
{
    struct line l = {.cli = cli, .to = to, .argc = argc, .argv = argv,
                     .view = ret_view};
    bool only_words = false;
    unsigned n_words = 0;
    int rc = 0;

    *ret_view = CLI_RUN;
    for (unsigned i = 0; i < cli->n_rows; i++)
        if (cli->rows[i].initial && cli->rows[i].kind != CLI_PATH)
            (void)take(to, &cli->rows[i], cli->rows[i].initial, ret_view, e);
    for (l.i = 1; rc == 0 && l.i < argc; l.i++) {
        const char *word = argv[l.i];

        if (only_words || word[0] != '-' || word[1] == '\0')
            rc = cli->word(to, n_words++, word, e);
        else if (strcmp(word, "--") == 0)
            only_words = true;
        else
            rc = word[1] == '-' ? long_option(&l, e) : short_options(&l, e);
    }
    return rc;
}

/* Words from column `at` on, folded. */
static void write_folded(FILE *out, const char *s, int at)
{
    while (*s) {
        size_t len = strcspn(s, " ");

        if (at > HELP_AT && at + 1 + (int)len > HELP_END) {
            fprintf(out, "\n%*s", HELP_AT, "");
            at = HELP_AT;
        }
        at += fprintf(out, "%s%.*s", at > HELP_AT ? " " : "", (int)len, s);
        s += len + (s[len] == ' ');
    }
}

static void write_help(const struct cli *cli, FILE *out)
{
    fputs(cli->help_head, out);
    for (unsigned i = 0; i < cli->n_rows; i++) {
        const struct cli_row *r = &cli->rows[i];
        int n;

        if (!r->help)
            continue;
        n = fprintf(out, "  --%s%s%s", r->name, r->arg ? " " : "",
                    r->arg ? r->arg : "");
        if (r->letter)
            n += fprintf(out, ", -%c", r->letter);
        fprintf(out, "%*s", n < HELP_AT ? HELP_AT - n : 1, "");
        write_folded(out, r->help, n < HELP_AT ? HELP_AT : n + 1);
        fprintf(out, r->initial ? " [%s]\n" : "\n", r->initial);
    }
    fputs(cli->help_tail, out);
}

static void write_man(const struct cli *cli, FILE *out)
{
    fprintf(out, "%s.Sh OPTIONS\n.Bl -tag -width Ds\n", cli->man_head);
    for (unsigned i = 0; i < cli->n_rows; i++) {
        const struct cli_row *r = &cli->rows[i];

        if (!r->help)
            continue;
        fprintf(out, ".It ");
        if (r->letter)
            fprintf(out, "Fl %c , ", r->letter);
        fprintf(out, "Fl Fl %s", r->name);
        if (r->arg)
            fprintf(out, " Ar %s", r->arg);
        (void)fputc('\n', out);
        for (const char *s = r->help; *s; s++) {
            (void)fputc(*s, out);
            if (*s == '.' && s[1] == ' ') {
                s++;
                (void)fputc('\n', out);
            }
        }
        (void)fputc('\n', out);
        if (r->initial)
            fprintf(out, "Default:\n.Ql %s .\n", r->initial);
    }
    fprintf(out, ".El\n%s", cli->man_tail);
}

void cli_write(const struct cli *cli, FILE *out, enum cli_view view)
{
    if (view == CLI_SHOW_VERSION)
        fprintf(out, "%s %s\n", cli->program, AGENT_VERSION);
    else if (view == CLI_SHOW_MAN)
        write_man(cli, out);
    else
        write_help(cli, out);
}
