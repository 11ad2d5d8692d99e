/* help_complete: completions for bash and zsh, from the tables of options and
 * commands.
 *
 * After an option with words of its own those are offered, after another that
 * takes a value (a path, mostly) files. Options are offered once a dash is
 * there, commands as the first word. What follows the program to run is its
 * own: files. */
#include "agent/help_parts.h"

#include <string.h>

static bool takes_value(const struct opt_row *row)
{
    return row->type->arg && !row->type->is_optional;
}

static void words_of(FILE *out, const struct opt_row *row)
{
    for (const char *const *w = row->type->words; *w; w++)
        fprintf(out, "%s%s", w == row->type->words ? "" : " ", *w);
}

static void options_of(FILE *out, const struct opt_command *c)
{
    const struct opt_table *t = opt_table_of(c);
    const char *blank = "";

    for (unsigned i = 0; i < t->n; i++)
        if (t->rows[i].commands & c->bit) {
            fprintf(out, "%s--%s", blank, t->rows[i].name);
            blank = " ";
        }
}

static void bash_head(FILE *out)
{
    unsigned n;
    const struct opt_row *rows = opt_rows(&n);

    fprintf(out, "# bash completion for agent: made by agent --help=bash\n"
                 "_agent()\n{\n"
                 "    local cur=${COMP_WORDS[COMP_CWORD]} words= i\n"
                 "    local prev=${COMP_WORDS[COMP_CWORD-1]} valued='");
    for (unsigned i = 0; i < n; i++) {
        if (!takes_value(&rows[i]))
            continue;
        if (rows[i].letter)
            fprintf(out, " -%c", rows[i].letter);
        fprintf(out, " --%s", rows[i].name);
        if (rows[i].alias)
            fprintf(out, " --%s", rows[i].alias);
    }
    fprintf(out, " '\n"
                 "    COMPREPLY=()\n"
                 "    # \"=\" is a word of its own: --option = value.\n"
                 "    if [ \"$prev\" = = ]; then\n"
                 "        prev=${COMP_WORDS[COMP_CWORD-2]}\n"
                 "    elif [ \"$cur\" = = ]; then\n"
                 "        cur=\n"
                 "    fi\n");
}

/* The value of an option: its words, or none, which means files. */
static void bash_values(FILE *out)
{
    unsigned n;
    const struct opt_row *rows = opt_rows(&n);

    /* Underscores are dashes in names. */
    fprintf(out, "    prev=${prev//_/-}\n    case $prev in\n");
    for (unsigned i = 0; i < n; i++)
        if (takes_value(&rows[i]) && rows[i].type->words) {
            fprintf(out, "    --%s", rows[i].name);
            if (rows[i].alias)
                fprintf(out, " | --%s", rows[i].alias);
            fprintf(out, ") words='");
            words_of(out, &rows[i]);
            fprintf(out, "' ;;\n");
        }
    fprintf(out, "    *) case $valued in *\" $prev \"*) return ;; esac ;;\n"
                 "    esac\n    if [ -n \"$words\" ]; then\n"
                 "        COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
                 "        return\n    fi\n");
}

static void bash_commands(FILE *out)
{
    unsigned n;
    const struct opt_command *c = opt_commands(&n);

    fprintf(out, "    case $COMP_CWORD:${COMP_WORDS[1]} in\n");
    for (unsigned i = 0; i < n; i++)
        if (c[i].kind == OPT_OWN && c[i].command != CMD_RUN) {
            fprintf(out, "    [!1]*:%s | 1?*:%s) words='", c[i].word,
                    c[i].word);
            options_of(out, &c[i]);
            fprintf(out, "' ;;\n");
        }
    fprintf(out, "    1:[!-]* | 1:) words='");
    for (unsigned i = 0; i < n; i++)
        if (c[i].kind != OPT_LATER)
            fprintf(out, "%s%s", i ? " " : "", c[i].word);
    fprintf(out, "' ;;\n    *) words='");
    options_of(out, opt_find_command("run"));
    fprintf(out, "'\n"
        "        # Past the command, words are its own.\n"
        "        for ((i = 1; i < COMP_CWORD; i++)); do\n"
        "            case $i:${COMP_WORDS[i]} in\n"
        "            1:run) continue ;;\n"
        "            *:-?*) ;;\n"
        "            *) return ;;\n"
        "            esac\n"
        "            [ \"${COMP_WORDS[i]}\" != -- ] || return\n"
        "            case $valued in *\" ${COMP_WORDS[i]//_/-} \"*) "
        "((i++)) ;; esac\n"
        "            [ \"${COMP_WORDS[i]}\" != = ] || ((i++))\n"
        "        done ;;\n"
        "    esac\n"
        "    case $COMP_CWORD:$cur in 1:* | *:-*) ;; *) return ;; esac\n");
}

void help_bash(FILE *out)
{
    bash_head(out);
    bash_values(out);
    bash_commands(out);
    fprintf(out, "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
                 "}\ncomplete -o default -F _agent agent\n");
}

/* Inside '...[...]' of zsh's _arguments. */
static void zsh_text(FILE *out, const char *s)
{
    for (; *s; s++) {
        if (*s == '\'')
            fprintf(out, "'\\'");
        else if (strchr("[]:\\", *s))
            (void)fputc('\\', out);
        (void)fputc(*s, out);
    }
}

static void zsh_row(FILE *out, const struct opt_row *row, const char *name)
{
    const struct opt_type *t = row->type;

    /* "*" may be repeated; after "=" the value may be a word of its own, after
     * "=-" not. */
    fprintf(out, "    '%s--%s%s[",
            row->count_at || t == &opt_type_count ? "*" : "", name,
            takes_value(row) ? "=" : t->arg ? "=-" : "");
    zsh_text(out, row->help);
    fprintf(out, "]");
    if (t->arg) {
        fprintf(out, "%s", t->is_optional ? "::" : ":");
        zsh_text(out, opt_arg(row));
        fprintf(out, ":");
    }
    if (t->words) {
        fprintf(out, "(");
        words_of(out, row);
        fprintf(out, ")");
    } else if (t->arg) {
        fprintf(out, "%s", strstr(t->name, "path") ? "_files" : " ");
    }
    fprintf(out, "' \\\n");
}

static void zsh_rows(FILE *out, const struct opt_command *c)
{
    const struct opt_table *t = opt_table_of(c);

    for (unsigned i = 0; i < t->n; i++) {
        const struct opt_row *row = &t->rows[i];

        if (row->commands & c->bit)
            zsh_row(out, row, row->name);
        if (row->commands & c->bit && row->alias)
            zsh_row(out, row, row->alias);
    }
}

void help_zsh(FILE *out)
{
    unsigned n;
    const struct opt_command *c = opt_commands(&n);

    fprintf(out, "#compdef agent\n"
                 "# zsh completion for agent: made by agent --help=zsh\n"
                 "case $CURRENT:$words[2] in\n"
                 "2:-*) ;;\n2:*)\n    compadd --");
    for (unsigned i = 0; i < n; i++)
        if (c[i].kind != OPT_LATER)
            fprintf(out, " %s", c[i].word);
    fprintf(out, "\n    _command_names -e\n    return ;;\n");
    for (unsigned i = 0; i < n; i++)
        if (c[i].kind == OPT_OWN && c[i].command != CMD_RUN) {
            fprintf(out, "*:%s)\n    shift words\n    (( CURRENT-- ))\n"
                         "    _arguments -s \\\n", c[i].word);
            zsh_rows(out, &c[i]);
            fprintf(out, "    '*:file:_files'\n    return ;;\n");
        }
    fprintf(out, "*:run)\n    shift words\n    (( CURRENT-- )) ;;\nesac\n"
                 "_arguments -s -S \\\n");
    zsh_rows(out, opt_find_command("run"));
    fprintf(out, "    '(-)1:command:_command_names -e' '*:: :_normal'\n");
}
