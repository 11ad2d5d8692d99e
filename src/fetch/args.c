/* args: see args.h. */
#include "fetch/args.h"

#include "agent/option_types.h"

#include <stddef.h>
#include <string.h>

enum kind { FLAG, COUNT, NUMBER, DURATION, PATH, MIRROR, VIEW, VERSION };

struct row {
    const char *name;
    char letter; /* '\0': none. */
    enum kind kind;
    size_t at;       /* Of the field. */
    uint64_t min, max;
    const char *arg, *initial, *help;
};

#define AT(field) offsetof(struct args, field)
#define HOUR 3600000

static const struct row rows[] = {
    {"mirror", 0, MIRROR, AT(mirrors), 0, 0, "URL", NULL,
     "Another place for all files: URL and the file's path. Repeatable; for "
     "manifests without \"urls\", and after them."},
    {"parallel", 'j', NUMBER, AT(parallel), 1, ARGS_PARALLEL_MAX, "N", "8",
     "Transfers at a time."},
    {"retries", 0, NUMBER, AT(retries), 0, ARGS_RETRIES_MAX, "N", "8",
     "Failures in a row that a URL may have: time-outs, cut connections, "
     "HTTP 408, 425, 429 and 5xx. In between 0.5 s to 60 s, or as long as the "
     "server asks, at most 2 min."},
    {"stall-timeout", 0, DURATION, AT(stall_ms), 1000, HOUR, "T", "30s",
     "A transfer of less than 1 KiB/s for so long counts as failed."},
    {"connect-timeout", 0, DURATION, AT(connect_ms), 100, HOUR, "T", "30s",
     "From the look-up of the name to the connection."},
    {"give-up", 0, DURATION, AT(give_up_ms), 1000, 1000 * (uint64_t)HOUR, "T",
     "10m", "End where nothing at all has come for so long."},
    {"netrc-file", 0, PATH, AT(netrc), 0, 0, "FILE", "~/.netrc",
     "User and password for hosts that are named in it."},
    {"check", 0, FLAG, AT(check), 0, 0, NULL, NULL,
     "Fetch nothing: ask each URL by HEAD whether it has the file, and how "
     "large it is. DIR may be left out."},
    {"quiet", 'q', COUNT, AT(quiet), 0, 0, NULL, NULL,
     "No progress; twice: errors only."},
    {"verbose", 'v', COUNT, AT(verbose), 0, 0, NULL, NULL,
     "Tell of each file."},
    {"help", 'h', VIEW, 0, 0, 0, NULL, NULL, "Print this."},
    {"version", 0, VERSION, 0, 0, 0, NULL, NULL, "Print the version."},
};
#define N_ROWS (sizeof rows / sizeof rows[0])
#define FIELD(a, row, type) ((type *)(void *)((char *)(a) + (row)->at))

static const struct row *find(const char *name, size_t len)
{
    for (unsigned i = 0; i < N_ROWS; i++) {
        bool same = strlen(rows[i].name) == len;

        for (size_t k = 0; same && k < len; k++)
            same = rows[i].name[k] == (name[k] == '_' ? '-' : name[k]);
        if (same)
            return &rows[i];
    }
    return NULL;
}

static bool takes_value(const struct row *row)
{
    return row->arg != NULL;
}

static int bad(const struct row *row, const char *text, const char *why,
               struct err *e)
{
    char shown[OPT_SHOWN_MAX];

    return err_set(e, ERR_USAGE, "--%s=%s: %s", row->name,
                   opt_shown(shown, text, strlen(text)), why);
}

static int take_mirror(struct args *a, const struct row *row, const char *text,
                       struct err *e)
{
    if (!strstr(text, "://"))
        return bad(row, text, "use a URL, such as https://host/folder/", e);
    if (strpbrk(text, "?#"))
        return bad(row, text, "a path is put behind it, so it can have no "
                   "query", e);
    if (a->n_mirrors == URLS_MIRRORS_MAX)
        return bad(row, text, "too many", e);
    a->mirrors[a->n_mirrors++] = text;
    return 0;
}

static int take(struct args *a, const struct row *row, const char *text,
                struct err *e)
{
    uint64_t v = 0;

    switch (row->kind) {
    case FLAG:
        *FIELD(a, row, bool) = true;
        return 0;
    case COUNT:
        ++*FIELD(a, row, unsigned);
        return 0;
    case VIEW:
        a->help = text && strcmp(text, "man") == 0 ? ARGS_HELP_MAN : ARGS_HELP;
        return 0;
    case VERSION:
        a->help = ARGS_VERSION;
        return 0;
    case MIRROR:
        return take_mirror(a, row, text, e);
    case PATH:
        if (!*text)
            return bad(row, text, "it must not be empty", e);
        *FIELD(a, row, const char *) = text;
        return 0;
    case NUMBER:
        if (!opt_read_uint(text, strlen(text), row->min, row->max, &v))
            return err_set(e, ERR_USAGE, "--%s=%.40s: use a number from %u to "
                           "%u", row->name, text, (unsigned)row->min,
                           (unsigned)row->max);
        *FIELD(a, row, unsigned) = (unsigned)v;
        return 0;
    case DURATION:
        break;
    }
    if (!opt_read_duration(text, &v) || v < row->min || v > row->max)
        return bad(row, text, "use a duration that makes sense here: 30s, 5m, "
                   "2h", e);
    *FIELD(a, row, uint64_t) = v;
    return 0;
}

static int long_option(struct args *a, int argc, char **argv, int *i,
                       struct err *e)
{
    const char *word = argv[*i] + 2, *eq = strchr(word, '=');
    const struct row *row = find(word, eq ? (size_t)(eq - word)
                                          : strlen(word));
    const char *text = eq ? eq + 1 : NULL;
    char shown[OPT_SHOWN_MAX];

    if (!row)
        return err_set(e, ERR_USAGE, "%s: no such option; see agent-fetch "
                       "--help", opt_shown(shown, argv[*i],
                                           strlen(argv[*i])));
    if (takes_value(row) && !text) {
        if (*i + 1 >= argc)
            return err_set(e, ERR_USAGE, "--%s: it needs a value: %s",
                           row->name, row->arg);
        text = argv[++*i];
    }
    if (!takes_value(row) && text && row->kind != VIEW)
        return bad(row, text, "it takes no value", e);
    return take(a, row, text, e);
}

static int short_options(struct args *a, int argc, char **argv, int *i,
                         struct err *e)
{
    for (const char *s = argv[*i] + 1; *s; s++) {
        const struct row *row = NULL;
        const char *text = NULL;
        int rc;

        for (unsigned k = 0; k < N_ROWS; k++)
            if (rows[k].letter == *s)
                row = &rows[k];
        if (!row)
            return err_set(e, ERR_USAGE, "-%c: no such option; see "
                           "agent-fetch --help", *s > ' ' ? *s : '?');
        if (takes_value(row))
            text = s[1] ? s + 1 : *i + 1 < argc ? argv[++*i] : NULL;
        if (takes_value(row) && !text)
            return err_set(e, ERR_USAGE, "-%c: it needs a value: %s", *s,
                           row->arg);
        rc = take(a, row, text, e);
        if (rc || takes_value(row))
            return rc;
    }
    return 0;
}

static int check(const struct args *a, unsigned n_words, struct err *e)
{
    if (a->help != ARGS_RUN)
        return 0;
    if (n_words > 2 || !a->manifest || (!a->folder && !a->check))
        return err_set(e, ERR_USAGE, "%s; use: agent-fetch [options] MANIFEST "
                       "DIR", n_words > 2 ? "too many words"
                       : n_words == 1     ? "DIR is missing"
                                          : "MANIFEST and DIR are missing");
    return 0;
}

int args_read(struct args *ret, int argc, char **argv, struct err *e)
{
    bool only_words = false;
    unsigned n_words = 0;
    int rc = 0;

    memset(ret, 0, sizeof *ret);
    for (unsigned i = 0; i < N_ROWS; i++)
        if (rows[i].initial && rows[i].kind != PATH)
            (void)take(ret, &rows[i], rows[i].initial, e);
    for (int i = 1; rc == 0 && i < argc; i++) {
        const char *word = argv[i];

        if (only_words || word[0] != '-' || word[1] == '\0') {
            if (n_words < 2)
                *(n_words ? &ret->folder : &ret->manifest) = word;
            n_words++;
        } else if (strcmp(word, "--") == 0) {
            only_words = true;
        } else {
            rc = word[1] == '-' ? long_option(ret, argc, argv, &i, e)
                                : short_options(ret, argc, argv, &i, e);
        }
    }
    return rc ? rc : check(ret, n_words, e);
}

/* Words from column `at` on, folded at 79. */
static void write_folded(FILE *out, const char *s, int indent, int at)
{
    while (*s) {
        size_t len = strcspn(s, " ");

        if (at > indent && at + 1 + (int)len > 79) {
            fprintf(out, "\n%*s", indent, "");
            at = indent;
        }
        at += fprintf(out, "%s%.*s", at > indent ? " " : "", (int)len, s);
        s += len + (s[len] == ' ');
    }
}

static void write_text(FILE *out)
{
    fprintf(out, "usage: agent-fetch [options] MANIFEST DIR\n\n"
        "Download the files that MANIFEST names into DIR, and verify them.\n"
        "What is there already is kept, what was begun is gone on with.\n\n");
    for (unsigned i = 0; i < N_ROWS; i++) {
        const struct row *r = &rows[i];
        int n = fprintf(out, "  --%s%s%s", r->name, r->arg ? " " : "",
                        r->arg ? r->arg : "");

        if (r->letter)
            n += fprintf(out, ", -%c", r->letter);
        fprintf(out, "%*s", n < 26 ? 26 - n : 1, "");
        write_folded(out, r->help, 26, 26);
        fprintf(out, r->initial ? " [%s]\n" : "\n", r->initial);
    }
    fprintf(out, "\nExit codes: 0; 64 usage; 65 what is offered is not the "
        "file; 66 no URL has it;\n202 network or disk, worth a retry.\n");
}

static const char man_head[] =
    ".Dd November 28, 2026\n.Dt AGENT-FETCH 1\n.Os\n"
    ".Sh NAME\n.Nm agent-fetch\n"
    ".Nd download and verify the files of a data set\n"
    ".Sh SYNOPSIS\n.Nm\n.Op Ar options\n.Ar MANIFEST\n.Ar DIR\n"
    ".Sh DESCRIPTION\n"
    ".Nm\n"
    "downloads the files that\n.Ar MANIFEST\nnames into\n.Ar DIR ,\n"
    "where\n.Ql agent --source Ar DIR\nfinds them.\n"
    "It is for building images and volumes;\n.Xr agent 1\n"
    "itself downloads nothing.\n.Pp\n"
    "Each file is verified while it is written, under a hidden name, and "
    "renamed once\nit is right.\n"
    "A file that is there and right is not fetched again; one that was begun "
    "is gone\non with, by a range.\n"
    "Of several URLs the first that works is used, and one whose host fails "
    "is left\nfor the next.\n"
    "A size that is not that of the manifest, or an HTML page, is refused "
    "with its\nfirst bytes.\n";

static const char man_tail[] =
    ".Sh ENVIRONMENT\n"
    ".Ev http_proxy , https_proxy , all_proxy , no_proxy\nas for\n"
    ".Xr curl 1 ;\n"
    ".Ev CURL_CA_BUNDLE , SSL_CERT_FILE , SSL_CERT_DIR .\n"
    ".Sh FILES\n.Bl -tag -width Ds\n"
    ".It Pa ~/.netrc\nUsers and passwords of hosts.\n"
    ".It Pa DIR/**/.<32 hex digits>.part\nA file that is not complete.\n.El\n"
    ".Sh EXIT STATUS\n.Bl -tag -width Ds\n"
    ".It 0\nAll files are there and right.\n"
    ".It 64\nA bad option, or a folder that cannot be written to.\n"
    ".It 65\nWhat a URL has is not the file; or the manifest is malformed.\n"
    ".It 66\nNo URL has the file; or the manifest is missing.\n"
    ".It 202\nThe network or the disk failed: worth a retry.\n"
    ".It 128+signal\nStopped; the next run goes on.\n.El\n"
    ".Sh EXAMPLES\n"
    ".Dl agent-fetch --mirror https://mirror.local/data/ set.json /data\n"
    ".Sh SEE ALSO\n.Xr agent 1 , Xr curl 1\n";

static void write_man(FILE *out)
{
    fprintf(out, "%s.Sh OPTIONS\n.Bl -tag -width Ds\n", man_head);
    for (unsigned i = 0; i < N_ROWS; i++) {
        const struct row *r = &rows[i];

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
    fprintf(out, ".El\n%s", man_tail);
}

void args_write_help(FILE *out, enum args_help view)
{
    if (view == ARGS_VERSION)
        fprintf(out, "agent-fetch %s\n", AGENT_VERSION);
    else if (view == ARGS_HELP_MAN)
        write_man(out);
    else
        write_text(out);
}
