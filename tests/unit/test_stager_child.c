/* stager: the child that stages, heard through its pipe. */
#include "dataset/stager.h"

#include "base/mem.h"

#include <poll.h>

#include "stage_fixture.h"

#define WAIT_MS 60000
#define LINES_MAX 512

struct heard {
    unsigned n_progress, last_percent, n_sets;
    uint8_t digests[2][32];
    char dirs[2][PATH_MAX];
    struct err error; /* code 0: none. */
};

static void take_line(struct heard *h, const char *text)
{
    static struct stager_line l; /* Large. */

    if (!stager_parse(text, &l))
        fail_msg("no line of the stager: '%s'", text);
    assert_int_equal(h->error.code, 0); /* Nothing comes after an error. */
    switch (l.kind) {
    case STAGER_PROGRESS:
        assert_true(l.percent >= h->last_percent);
        h->last_percent = l.percent;
        h->n_progress++;
        break;
    case STAGER_SET:
        assert_true(l.index == h->n_sets && l.index < 2);
        memcpy(h->digests[l.index], l.set.digest, 32);
        (void)snprintf(h->dirs[l.index], PATH_MAX, "%s", l.set.dir);
        h->n_sets++;
        break;
    case STAGER_ERROR:
        h->error = l.err;
        break;
    }
}

/* Hear the child out; its wait status. */
static int listen_to(pid_t pid, int fd, struct heard *h)
{
    char *line = NULL;
    size_t cap = 0;
    int status;
    FILE *f;

    (void)fcntl(fd, F_SETFL, 0); /* A test may block; alarm() is the limit. */
    f = fdopen(fd, "r");
    assert_non_null(f);
    memset(h, 0, sizeof *h);
    for (unsigned n = 0; getline(&line, &cap, f) > 0; n++) {
        assert_true(n < LINES_MAX);
        assert_int_equal(line[strlen(line) - 1], '\n');
        line[strlen(line) - 1] = '\0';
        take_line(h, line);
    }
    free(line);
    (void)fclose(f);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static int run_child(const struct stage_request *req, unsigned n,
                     struct heard *h)
{
    struct err e = {0};
    int fd = -1;
    pid_t pid = stager_start(req, n, &fd, &e);

    assert_true(pid > 0 && fd >= 0);
    assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
    return listen_to(pid, fd, h);
}

/* One set verified in place, the other one staged. */
static void two_sets(void **state)
{
    struct fixture *f = *state;
    struct stage_request req[2] = {
        {.manifest = f->manifest, .source = f->src},
        {.manifest = f->manifest, .source = f->src, .stage_dir = f->stage}};
    struct heard h;

    add_file(f, "a", "hello", "");
    add_file(f, "b", "world!", "");
    write_manifest(f);
    assert_int_equal(run_child(req, 2, &h), 0);
    assert_int_equal(h.error.code, 0);
    assert_int_equal(h.n_sets, 2);
    assert_int_equal(h.last_percent, 100);
    assert_string_equal(h.dirs[0], f->src);
    assert_memory_equal(h.dirs[1], f->stage, strlen(f->stage));
    assert_content(h.dirs[1], "b", "world!", 6);
    assert_memory_equal(h.digests[0], h.digests[1], 32);
}

/* The first set is told, the fault of the second is what ends it. */
static void second_set_is_bad(void **state)
{
    struct fixture *f = *state;
    char other[128];
    struct stage_request req[2] = {
        {.manifest = f->manifest, .source = f->src},
        {.manifest = f->manifest, .source = other}};
    struct heard h;
    int status;

    (void)snprintf(other, sizeof other, "%s/other", f->top);
    assert_int_equal(mkdir(other, 0755), 0);
    add_file(f, "a", "hello", "");
    write_manifest(f);
    put_file(other, "a", "jello", 5);
    status = run_child(req, 2, &h);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 65);
    assert_int_equal(h.n_sets, 1);
    assert_int_equal(h.error.code, 65);
    assert_non_null(strstr(h.error.text, other));
}

/* agent is gone: the child does not stage on for nobody. */
static void nobody_listens(void **state)
{
    struct fixture *f = *state;
    struct stage_request req = {.manifest = f->manifest, .source = f->src};
    struct err e = {0};
    int fd = -1, status;
    pid_t pid;

    add_file(f, "a", "hello", "");
    write_manifest(f);
    pid = stager_start(&req, 1, &fd, &e);
    assert_true(pid > 0);
    (void)close(fd);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (status != 0) /* It had said all before, or it noticed. */
        assert_true((WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE) ||
                    WEXITSTATUS(status) == ERR_AGENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(two_sets, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(second_set_is_bad, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(nobody_listens, fixture_setup,
                                        fixture_teardown),
    };

    (void)alarm(WAIT_MS / 1000);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
