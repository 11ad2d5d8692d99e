/* args: see args.h. */
#include "fetch/args.h"

#include <stddef.h>
#include <string.h>

#define AT(field) offsetof(struct args, field)
#define HOUR 3600000
#define SYNOPSIS "use: agent-fetch [options] MANIFEST DIR"

static int take_mirror(void *to, const struct cli_row *row, const char *text,
                       struct err *e)
{
    struct args *a = to;

    if (!strstr(text, "://"))
        return cli_bad(row, text, "use a URL, such as https://host/folder/", e);
    if (strpbrk(text, "?#"))
        return cli_bad(row, text, "a path is put behind it, so it can have no "
                   "query", e);
    if (a->n_mirrors == URLS_MIRRORS_MAX)
        return cli_bad(row, text, "too many", e);
    a->mirrors[a->n_mirrors++] = text;
    return 0;
}

static const struct cli_row rows[] = {
    {"mirror", 0, CLI_OTHER, AT(mirrors), 0, 0, "URL", NULL,
     "Another place for all files: URL and the file's path. Repeatable; for "
     "manifests without \"urls\", and after them.", take_mirror},
    {"parallel", 'j', CLI_NUMBER, AT(parallel), 1, ARGS_PARALLEL_MAX, "N", "8",
     "Transfers at a time.", NULL},
    {"retries", 0, CLI_NUMBER, AT(retries), 0, ARGS_RETRIES_MAX, "N", "8",
     "Failures in a row that a URL may have: time-outs, cut connections, "
     "HTTP 408, 425, 429 and 5xx. In between 0.5 s to 60 s, or as long as the "
     "server asks, at most 2 min.", NULL},
    {"stall-timeout", 0, CLI_DURATION, AT(stall_ms), 1000, HOUR, "T", "30s",
     "A transfer of less than 1 KiB/s for so long counts as failed.", NULL},
    {"connect-timeout", 0, CLI_DURATION, AT(connect_ms), 100, HOUR, "T", "30s",
     "From the look-up of the name to the connection.", NULL},
    {"give-up", 0, CLI_DURATION, AT(give_up_ms), 1000, 1000 * (uint64_t)HOUR,
     "T", "10m", "End where nothing at all has come for so long.", NULL},
    {"netrc-file", 0, CLI_PATH, AT(netrc), 0, 0, "FILE", "~/.netrc",
     "User and password for hosts that are named in it.", NULL},
    {"check", 0, CLI_FLAG, AT(check), 0, 0, NULL, NULL,
     "Fetch nothing: ask each URL by HEAD whether it has the file, and how "
     "large it is. DIR may be left out.", NULL},
    {"quiet", 'q', CLI_COUNT, AT(quiet), 0, 0, NULL, NULL,
     "No progress; twice: errors only.", NULL},
    {"verbose", 'v', CLI_COUNT, AT(verbose), 0, 0, NULL, NULL,
     "Tell of each file.", NULL},
    {"help", 'h', CLI_HELP, 0, 0, 0, NULL, NULL, "Print this.", NULL},
    {"version", 0, CLI_VERSION, 0, 0, 0, NULL, NULL, "Print the version.",
     NULL},
};

static int take_word(void *to, unsigned n, const char *word, struct err *e)
{
    struct args *a = to;

    if (n >= 2)
        return err_set(e, ERR_USAGE, "too many words; " SYNOPSIS);
    *(n ? &a->folder : &a->manifest) = word;
    return 0;
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

static const struct cli cli = {
    .program = "agent-fetch", .rows = rows,
    .n_rows = sizeof rows / sizeof rows[0], .word = take_word,
    .help_head = "usage: agent-fetch [options] MANIFEST DIR\n\n"
        "Download the files that MANIFEST names into DIR, and verify them.\n"
        "What is there already is kept, what was begun is gone on with.\n\n",
    .help_tail = "\nExit codes: 0; 64 usage; 65 what is offered is not the "
        "file; 66 no URL has it;\n202 network or disk, worth a retry.\n",
    .man_head = man_head, .man_tail = man_tail};

int args_read(struct args *ret, int argc, char **argv, struct err *e)
{
    int rc;

    memset(ret, 0, sizeof *ret);
    rc = cli_read(&cli, ret, argc, argv, &ret->view, e);
    if (rc || ret->view != CLI_RUN)
        return rc;
    if (!ret->manifest || (!ret->folder && !ret->check))
        return err_set(e, ERR_USAGE, "%s; " SYNOPSIS,
                       ret->manifest ? "DIR is missing"
                                     : "MANIFEST and DIR are missing");
    return 0;
}

void args_write_help(FILE *out, enum cli_view view)
{
    cli_write(&cli, out, view);
}
