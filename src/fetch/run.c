/* run: see run.h. */
#include "fetch/run_parts.h"

#include "base/log.h"
#include "base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#define POLL_MS 1000

uint64_t run_now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void sink(void *ctx, const char *line, size_t len)
{
    show_clear(&((struct run *)ctx)->show);
    (void)!write(STDERR_FILENO, line, len);
}

/* The entry of the k-th URL: they lie in the entries' order. */
static size_t entry_of(struct run *r, size_t k)
{
    const struct item *items = r->urls->items;

    while (&r->urls->all[k] >= items[r->url_entry].urls +
                                   items[r->url_entry].n_urls)
        r->url_entry++;
    return r->url_entry;
}

static void begin(struct run *r, struct slot *s, struct item *checks)
{
    size_t i = r->next++, entry = r->args->check ? entry_of(r, i) : i;
    struct err e;

    memset(s, 0, sizeof *s);
    s->entry = entry;
    s->t.args = r->args;
    s->t.entry = &r->m->entries[entry];
    s->t.n_arrived = &r->n_arrived;
    s->t.part.fd = s->t.part.folder = -1;
    slot_move(r, s, r->args->check ? SLOT_WAIT : SLOT_STEP);
    if (r->args->check) {
        s->t.it = checks;
        *checks = (struct item){.urls = &r->urls->all[i], .n_urls = 1};
        slot_go(r, s);
        return;
    }
    s->t.it = &r->urls->items[entry];
    if (part_open(&s->t.part, r->root, s->t.entry, &e) != 0) {
        slot_fatal(r, s, &e);
    }
}

/* Work that is ready; returns when to look again at the latest. */
static uint64_t advance(struct run *r, struct item *checks)
{
    uint64_t wake = run_now() + POLL_MS;

    for (unsigned i = 0; i < SLOTS_MAX && r->fatal.code == 0; i++) {
        struct slot *s = &r->slots[i];

        if (s->state == SLOT_FREE && r->next < r->n &&
            r->n_busy < r->args->parallel &&
            r->n_used < r->args->parallel + RUN_WAITING_MAX)
            begin(r, s, &checks[i]);
        if (s->state == SLOT_STEP)
            slot_step(r, s);
        if (s->state == SLOT_WAIT && r->n_busy < r->args->parallel &&
            s->at_ms <= run_now())
            slot_go(r, s);
        if (s->state == SLOT_STEP)
            wake = 0;
        if (s->state == SLOT_WAIT && s->at_ms < wake)
            wake = r->n_busy < r->args->parallel ? s->at_ms : wake;
    }
    if (r->next < r->n && r->n_busy < r->args->parallel &&
        r->n_used < r->args->parallel + RUN_WAITING_MAX)
        wake = 0;
    return r->n_used == 0 && r->next == r->n ? 0 : wake; /* 0: all is over. */
}

static void poll_all(struct run *r, uint64_t wake)
{
    struct curl_waitfd extra = {.fd = r->signal_fd, .events = CURL_WAIT_POLLIN};
    uint64_t now = run_now(), next = show_next(&r->show);
    struct signalfd_siginfo si;
    int running, left;
    CURLMsg *msg;

    if (next < wake)
        wake = next;
    (void)curl_multi_perform(r->multi, &running);
    while ((msg = curl_multi_info_read(r->multi, &left)) != NULL) {
        CURLcode code = msg->data.result;
        char *t = NULL; /* The transfer, which is in its slot. */

        if (msg->msg != CURLMSG_DONE)
            continue;
        (void)curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, &t);
        slot_landed(r, (void *)(t - offsetof(struct slot, t)), code);
        wake = 0;
    }
    if (r->fatal.code == 0)
        (void)curl_multi_poll(r->multi, &extra, 1,
                              wake > now ? (int)(wake - now) : 0, NULL);
    if (read(r->signal_fd, &si, sizeof si) == (ssize_t)sizeof si)
        r->signo = (int)si.ssi_signo;
}

static void show_all(struct run *r)
{
    struct show_state st = {.n_files = r->n, .n_done = r->n_done,
                            .bytes = r->bytes, .total = r->m->n_bytes};

    if (r->args->check)
        return;
    for (unsigned i = 0; i < SLOTS_MAX; i++)
        if (r->slots[i].state != SLOT_FREE)
            st.bytes += r->slots[i].t.part.size;
    if (st.bytes > st.total) /* Of sums no sizes are known. */
        st.total = st.bytes;
    show_now(&r->show, &st, r->n_arrived, run_now());
}

/* The last deadline: nothing at all moves. */
static void check_alive(struct run *r)
{
    uint64_t now = run_now();
    struct err e;

    if (r->n_arrived != r->seen_arrived || r->n_used == 0)
        r->alive_ms = now;
    r->seen_arrived = r->n_arrived;
    if (now - r->alive_ms < r->args->give_up_ms)
        return;
    (void)err_set(&e, ERR_RESOURCE, "nothing has come for %" PRIu64 " s "
                  "(--give-up): is there a way out of here? A proxy is set by "
                  "http_proxy and https_proxy", r->args->give_up_ms / 1000);
    r->fatal = e;
}

static int open_run(struct run *r, struct err *e)
{
    sigset_t stops;

    sigemptyset(&stops);
    (void)sigaddset(&stops, SIGTERM);
    (void)sigaddset(&stops, SIGINT);
    (void)sigaddset(&stops, SIGHUP);
    (void)sigaddset(&stops, SIGQUIT);
    r->signal_fd = signalfd(-1, &stops, SFD_CLOEXEC | SFD_NONBLOCK);
    r->slots = calloc(SLOTS_MAX, sizeof *r->slots);
    r->good = calloc(r->m->n_entries + 1, sizeof *r->good);
    if (curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK)
        r->multi = curl_multi_init();
    if (r->signal_fd < 0 || !r->slots || !r->good || !r->multi)
        return err_set(e, ERR_RESOURCE, "no memory or no descriptors left: %s",
                       strerror(errno));
    if (getrandom(&r->rng, sizeof r->rng, GRND_NONBLOCK) < 0 || r->rng == 0)
        r->rng = run_now() | 1;
    r->alive_ms = run_now();
    show_init(&r->show, r->args->quiet == 0 && !r->args->check, r->alive_ms);
    log_set_sink(sink, r);
    return 0;
}

/* Files that no URL has. */
static void say_unchecked(struct run *r)
{
    struct path_shown p;
    size_t n_bad = 0;

    for (size_t i = 0; i < r->m->n_entries; i++)
        if (!r->good[i]) {
            n_bad++;
            log_error("%s: no URL has it",
                      path_show(&p, NULL, r->m->entries[i].path));
        }
    log_info("%zu file%s, %zu URL%s: %zu file%s without a URL that has %s, "
             "%zu URL%s that %s no good", r->m->n_entries,
             text_plural(r->m->n_entries), r->n, text_plural(r->n), n_bad,
             text_plural(n_bad), n_bad == 1 ? "it" : "them", r->n_failed,
             text_plural(r->n_failed), r->n_failed == 1 ? "is" : "are");
    if (n_bad == 0)
        memset(r->saw, 0, sizeof r->saw); /* A mirror may be down. */
}

static int end_run(struct run *r)
{
    static const int codes[] = {ERR_DATA, ERR_NODATA, ERR_RESOURCE};
    char b[SHOW_BYTES_MAX], c[SHOW_BYTES_MAX], took[32];
    struct text t;

    show_clear(&r->show);
    if (r->fatal.code) {
        log_error("%s", r->fatal.text);
        return r->fatal.code;
    }
    if (r->signo) {
        log_error("stopped by signal %d; run it again to go on", r->signo);
        return 128 + r->signo;
    }
    text_init(&t, took, sizeof took);
    text_add_duration(&t, run_now() - r->show.start_ms);
    if (r->args->check)
        say_unchecked(r);
    else
        log_info("%zu of %zu files are there and right, %s: %zu fetched (%s) "
                 "in %s%s", r->n_done, r->n, show_bytes(b, r->bytes),
                 r->n_fetched, show_bytes(c, r->fetched), took,
                 r->n_failed ? "; the others are named above" : "");
    for (unsigned i = 0; i < 3; i++)
        if (r->saw[i])
            return codes[i];
    return 0;
}

int run_all(const struct args *a, const struct manifest *m, struct urls *u,
            const struct part_root *root)
{
    static struct run r; /* Transfers may fly until the process ends. */
    struct item *checks = calloc(SLOTS_MAX, sizeof *checks);
    struct err e;
    int rc;

    r = (struct run){.args = a, .m = m, .urls = u, .root = root};
    r.n = a->check ? u->n_all : m->n_entries;
    if (!checks || open_run(&r, &e) != 0) {
        log_error("%s", checks ? e.text : "no memory left");
        return ERR_RESOURCE;
    }
    while ((r.next < r.n || r.n_used > 0) && r.fatal.code == 0 && !r.signo) {
        poll_all(&r, advance(&r, checks));
        show_all(&r);
        check_alive(&r);
    }
    rc = end_run(&r);
    log_set_sink(NULL, NULL);
    /* To end a transfer may mean to wait for a name server: what flies ends
     * with the process. */
    for (unsigned i = 0; i < SLOTS_MAX; i++)
        if (r.slots[i].state != SLOT_FREE)
            part_close(&r.slots[i].t.part);
    if (r.n_used == 0) {
        (void)curl_multi_cleanup(r.multi);
        curl_global_cleanup();
        free(r.slots);
    }
    free(r.good);
    free(checks);
    return rc;
}
