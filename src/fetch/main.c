/* main of agent-fetch: downloads the files of a manifest where images are
 * built. A program of its own: agent itself downloads nothing. */
#include "base/log.h"
#include "base/mem.h"
#include "base/std_fds.h"
#include "dataset/load.h"
#include "fetch/args.h"
#include "fetch/run.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* As signals that the run reads; those that are ignored (nohup) stay so. */
static void block_signals(void)
{
    static const int stops[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
    struct sigaction now;
    sigset_t set;

    sigemptyset(&set);
    for (unsigned i = 0; i < 4; i++)
        if (sigaction(stops[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            (void)sigaddset(&set, stops[i]);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    (void)sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
}

static int fetch(const struct args *a, const struct manifest *m,
                 struct urls *u, struct err *e)
{
    struct part_root root = {.fd = -1};
    uint64_t need = 0;
    int rc;

    if (a->check)
        return run_all(a, m, u, &root);
    rc = part_root_open(&root, a->folder, e);
    if (rc)
        return rc;
    for (size_t i = 0; i < m->n_entries; i++)
        need += part_missing(&root, &m->entries[i]);
    rc = part_check_space(&root, need, e);
    if (rc == 0)
        rc = run_all(a, m, u, &root);
    if (rc >= 0 && rc <= 128) {
        int sync = part_root_sync(&root, e);

        rc = rc == 0 ? sync : rc;
    }
    part_root_close(&root);
    return rc;
}

static int run(const struct args *a, struct err *e)
{
    struct manifest m;
    struct urls u;
    autofree char *source = NULL;
    const char *weak;
    int rc;

    if (a->netrc && access(a->netrc, R_OK) != 0)
        return err_set(e, ERR_USAGE, "--netrc-file %s: %s", a->netrc,
                       strerror(errno));
    rc = load_manifest(&m, a->manifest, NULL, &source, e);
    if (rc)
        return rc;
    weak = manifest_weak_hash(&m);
    if (weak)
        log_warning("%s: %s is good against accidents, not against intent: "
                    "the servers must be trusted", m.name, weak);
    rc = urls_read(&u, &m, a->manifest, a->mirrors, a->n_mirrors, e);
    if (rc == 0) {
        rc = fetch(a, &m, &u, e);
        urls_free(&u);
    }
    manifest_free(&m);
    return rc;
}

int main(int argc, char **argv)
{
    struct args a;
    struct err e;
    int rc, level;

    (void)std_fds_fill();
    log_setup_program("agent-fetch");
    rc = args_read(&a, argc, argv, &e);
    if (rc == 0 && a.view != CLI_RUN) {
        args_write_help(stdout, a.view);
        return log_end_stdout();
    }
    level = LOG_INFO + (a.verbose > 0) - (a.quiet > 1 ? 2 : 0);
    log_setup(-1, (enum log_level)level);
    block_signals();
    if (rc == 0)
        rc = run(&a, &e);
    if (rc < 0) {
        log_error("%s", e.text);
        return -rc;
    }
    return rc;
}
