/* help_man: agent(1) in mdoc, from the options table and the table of exit
 * statuses. */
#include "agent/help_parts.h"

#include "base/err.h"

#include <string.h>

/* Sentences as mdoc text: each on a line of its own, no macro line, no lost
 * backslash, and the dashes of an option are such that they can be copied. */
static void man_text(FILE *out, const char *s)
{
    bool starts = true, in_option = false;
    char before = ' ';

    for (; *s; before = *s++) {
        if (starts && (*s == '.' || *s == '\''))
            fprintf(out, "\\&");
        starts = false;
        if (*s == '-' && (before == ' ' || before == '['))
            in_option = true;
        else if (*s != '-' && (*s < 'a' || *s > 'z'))
            in_option = false;
        if (*s == '\\')
            fprintf(out, "\\e");
        else if (*s == '-' && in_option)
            fprintf(out, "\\-");
        else
            (void)fputc(*s, out);
        if (*s == '.' && s[1] == ' ') {
            s++;
            starts = true;
            (void)fputc('\n', out);
        }
    }
    (void)fputc('\n', out);
}

/* A value as it is given, blanks and all. */
static void man_value(FILE *out, const char *s)
{
    fprintf(out, ".Ql \"");
    for (; *s; s++)
        fprintf(out, *s == '\\' ? "\\e" : *s == '"' ? "\"\"" : "%c", *s);
    fprintf(out, "\" .\n");
}

static void man_option(FILE *out, const struct opt_table *t,
                       const struct opt_row *r)
{
    char name[OPT_NAME_MAX + 8];

    fprintf(out, ".It ");
    if (r->letter)
        fprintf(out, "Fl %c , ", r->letter);
    fprintf(out, "Fl Fl %s", r->name);
    if (r->type->is_optional)
        fprintf(out, " Ns Op = Ns Ar %s", opt_arg(r));
    else if (opt_arg(r))
        fprintf(out, " Ar %s", opt_arg(r));
    fprintf(out, "\n");
    man_text(out, r->help);
    if (r->more)
        man_text(out, r->more);
    if (r->alias)
        fprintf(out, "Also\n.Fl Fl %s .\n", r->alias);
    if (r->initial && *r->initial) {
        fprintf(out, "Default:\n");
        man_value(out, r->initial);
    } else if (r->none && *r->none) {
        fprintf(out, "Default: %s.\n", r->none);
    }
    if (!r->no_variable)
        fprintf(out, "Variable:\n.Ev %s .\n",
                opt_variable_of(t, name, r->name));
}

static void man_torchrun(FILE *out)
{
    const struct opt_table *t = opt_table_of(opt_find_command("torchrun"));

    fprintf(out, ".Sh TORCHRUN\n"
        ".Nm Cm torchrun ,\nor\n.Nm\nunder the name torchrun, takes the "
        "command line of PyTorch's torchrun, with its\nmeaning and defaults: "
        "no restarts, no prefix without\n.Fl Fl tee ,\npython \\-u before "
        "the script.\nNames may be cut where one alone begins so.\n"
        "Other options of\n.Nm\ncount as\n.Ev AGENT_*\nvariables.\n"
        "What differs is in docs/torchrun.md.\n.Bl -tag -width Ds\n");
    for (unsigned i = 0; i < t->n; i++)
        man_option(out, t, &t->rows[i]);
    fprintf(out, ".El\n");
}

static void man_options(FILE *out)
{
    unsigned n;
    const struct opt_row *rows = opt_rows(&n);

    fprintf(out, ".Sh OPTIONS\n"
        "Long names take dashes or underscores, a value follows as\n"
        ".Ql --name=value\nor\n.Ql --name value ;\n"
        "there are no abbreviations.\n"
        "A value comes from the command line, else from the variable, else "
        "from what the\nplatform says (see\n.Cm env ) ,\nelse it is the "
        "default.\n"
        "Durations are a number and ms, s, m or h; a bare number is "
        "seconds.\n");
    for (int g = 0; g < OPT_GROUPS; g++) {
        fprintf(out, ".Ss %s\n.Bl -tag -width Ds\n",
                opt_group_title((enum opt_group)g));
        for (unsigned i = 0; i < n; i++)
            if (rows[i].group == (enum opt_group)g)
                man_option(out, opt_table_of(opt_find_command("run")),
                           &rows[i]);
        fprintf(out, ".El\n");
    }
}

static void man_commands(FILE *out)
{
    unsigned n;
    const struct opt_command *c = opt_commands(&n);

    fprintf(out, ".Sh COMMANDS\n.Bl -tag -width Ds\n");
    for (unsigned i = 0; i < n; i++) {
        if (c[i].kind == OPT_LATER)
            continue;
        fprintf(out, ".It Cm %s%s", c[i].word,
                c[i].kind == OPT_OWN ? " " : "");
        man_text(out, c[i].kind == OPT_OWN ? c[i].usage : "");
        man_text(out, c[i].help);
    }
    fprintf(out, ".El\n"
        ".Pp\nAny other first word is the program to run; a program with the "
        "name of a\ncommand is reached after\n.Ql -- .\n");
}

static void man_status(FILE *out)
{
    unsigned n;
    const struct err_row *rows = err_rows(&n);

    fprintf(out, ".Sh EXIT STATUS\n.Bl -tag -width Ds\n"
        ".It 0\nEvery worker of every pod ended with 0.\n"
        ".It Ar N , No 128+signal\n"
        "Of the first worker that failed, on every pod alike, once the "
        "restarts are\nused up; or 128+signal of a stop from outside (TERM "
        "gives 143).\n");
    for (unsigned i = 0; i < n; i++) {
        fprintf(out, ".It %d Pq %s%s\n", rows[i].status, rows[i].word,
                rows[i].retry ? ", worth a retry" : "");
        fprintf(out, "%c%s.\n", rows[i].meaning[0] - 'a' + 'A',
                rows[i].meaning + 1);
    }
    fprintf(out, ".El\n");
}

static const char head[] =
    ".Dd November 28, 2026\n.Dt AGENT 1\n.Os\n"
    ".Sh NAME\n.Nm agent\n"
    ".Nd init and supervisor for the pods of a distributed training\n"
    ".Sh SYNOPSIS\n"
    ".Nm\n.Op Cm run\n.Op Ar options\n.Op Fl Fl\n.Ar command\n"
    ".Op Ar arg ...\n"
    ".Nm\n.Cm torchrun\n.Op Ar options of torchrun\n.Ar script\n"
    ".Op Ar arg ...\n"
    ".Nm\n.Cm stage | verify | manifest | status | env | preflight | fetch |\n"
    ".Cm allreduce | probe\n"
    ".Op Ar ...\n"
    ".Sh DESCRIPTION\n"
    ".Nm\n"
    "is PID 1 of a training pod.\n"
    "It verifies and stages the data sets from local sources, waits at a TCP "
    "barrier\nuntil all pods are there, starts the workers of this pod with "
    "the environment\nthat torchrun gives, relays their output with a prefix "
    "for each rank, restarts\nthe job as a whole when a worker fails, and "
    "ends with the code and the story of\nthe first failure.\n"
    "It is no less useful where it is not PID 1.\n";

static const char tail_1[] =
    ".Sh ENVIRONMENT\n"
    "The variables of the options are named with them above; workers do not "
    "see them.\n"
    "A worker gets\n"
    ".Ev RANK , LOCAL_RANK , WORLD_SIZE , LOCAL_WORLD_SIZE , GROUP_RANK ,\n"
    ".Ev GROUP_WORLD_SIZE , ROLE_NAME , ROLE_RANK , ROLE_WORLD_SIZE ,\n"
    ".Ev MASTER_ADDR , MASTER_PORT\n"
    "and the\n.Ev TORCHELASTIC_*\nvariables as from torchrun,\n"
    ".Ev AGENT_DATASET_DIR\n(of several data sets also\n"
    ".Ev AGENT_DATASET_DIR_<NAME> ) ,\n"
    ".Ev AGENT_PROCESS_INDEX\nand\n.Ev AGENT_PROCESS_NUM ;\n"
    ".Ev OMP_NUM_THREADS\nand\n.Ev PYTHONUNBUFFERED\nwhere they are not set.\n"
    "Its standard input is /dev/null, but for one worker with\n.Nm\non a "
    "terminal: that has the terminal itself.\n"
    ".Sh SIGNALS\n"
    "TERM, INT, HUP and QUIT stop: the workers get TERM, or INT where that is "
    "what came\n(Python's KeyboardInterrupt), and KILL after the grace; a "
    "second TERM or INT ends\nthe grace.\n"
    "USR1, USR2, WINCH, CONT, ALRM and real-time signals are passed on to the "
    "workers.\n"
    "After SIGKILL of\n.Nm\nnothing of its workers is left.\n"
    ".Sh FILES\n.Bl -tag -width Ds\n"
    ".It Pa /dev/termination-log\n"
    "The verdict in at most 4096 bytes, where it exists.\n"
    ".It Pa /run/agent.sock\n"
    "Where\n.Nm Cm status\nasks; see\n.Fl Fl socket .\n"
    ".It Pa /dev/shm\n"
    "Before a round, what dead workers left there (nccl-*, torch_*, sem.* and "
    "the like)\nis removed where nobody has it open or mapped.\n"
    ".It Pa STAGE/<name>@<digest16>/\nA finished data set.\n.El\n";

static const char tail_2[] =
    ".Sh EXAMPLES\n"
    "Four workers, at most three restarts:\n"
    ".Pp\n.Dl agent --nproc 4 -- python train.py\n"
    ".Pp\nThe second of two pods, with verified data:\n"
    ".Bd -literal -offset indent\n"
    "agent --nnodes 2 --node-rank 1 --master-addr train-0.train \\e\n"
    "      --dataset /data/digits.json --stage /scratch \\e\n"
    "      --nproc 4 -- python train.py\n"
    ".Ed\n"
    ".Sh SEE ALSO\n.Xr agent-allreduce 1 ,\n.Xr agent-fetch 1 ,\n"
    ".Xr agent-probe 1 ,\n.Xr sha256sum 1 ,\n.Xr ddp 3\n";

void help_man(FILE *out)
{
    fputs(head, out);
    man_commands(out);
    man_options(out);
    man_torchrun(out);
    fputs(tail_1, out);
    man_status(out);
    fputs(tail_2, out);
}
