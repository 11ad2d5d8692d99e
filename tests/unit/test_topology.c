/* Tests of agent/topology: tests/unit/topology/<name>.env is the environment
 * of a platform, and what is to be read from it. Lines that begin with '=':
 *   = OPTION VALUE SOURCE     what is said of it; nothing else is
 *   = dialect, fail, warning TEXT     (part of) it; "warning" alone: none
 *   = ignored NAME
 *   = given OPTION VALUE, host, domain, hostfile LINE|LINE    the rest of it */
#include "agent/topology.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FOLDER "tests/unit/topology"
#define LINES_MAX 64

struct fixture {
    char bytes[8192];
    char *env[LINES_MAX], *wants[LINES_MAX];
    unsigned n_env, n_wants;
    struct topo_place place;
    char hostfile[1024];
    struct topology_in in;
};

static const struct topo_place *place(void *ctx)
{
    return &((struct fixture *)ctx)->place;
}

static int key_of(const char *word, size_t len)
{
    for (int k = 0; k < TOPO_KEYS; k++)
        if (strlen(topology_option((enum topo_key)k)) == len &&
            strncmp(topology_option((enum topo_key)k), word, len) == 0)
            return k;
    return -1;
}

/* "= host x" and the like are taken; true where `line` was one. */
static bool take_line(struct fixture *f, char *line)
{
    char *rest = strchr(line, ' ');

    if (!rest)
        return false;
    rest++;
    if (strncmp(line, "host ", 5) == 0)
        f->place.host = rest;
    else if (strncmp(line, "domain ", 7) == 0)
        f->place.domain = rest;
    else if (strncmp(line, "given ", 6) == 0)
        f->in.given[key_of(rest, strcspn(rest, " "))] = strchr(rest, ' ') + 1;
    else if (strncmp(line, "hostfile ", 9) == 0) {
        (void)snprintf(f->hostfile, sizeof f->hostfile, "%s", rest);
        for (char *s = f->hostfile; *s; s++)
            *s = *s == '|' ? '\n' : *s;
        f->place.hostfile = f->hostfile;
        f->place.hostfile_name = "/etc/mpi/hostfile";
    } else {
        return false;
    }
    return true;
}

static void load(struct fixture *f, const char *name)
{
    char path[512], *save, *line;
    size_t n;
    FILE *file;

    memset(f, 0, sizeof *f);
    f->place.host = f->place.domain = "";
    f->in = (struct topology_in){.envp = f->env, .place = place, .ctx = f};
    (void)snprintf(path, sizeof path, FOLDER "/%s", name);
    file = fopen(path, "re");
    assert_non_null(file);
    n = fread(f->bytes, 1, sizeof f->bytes - 1, file);
    (void)fclose(file);
    assert_true(n < sizeof f->bytes - 1);
    for (line = strtok_r(f->bytes, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        assert_true(f->n_env < LINES_MAX - 1 && f->n_wants < LINES_MAX);
        if (strncmp(line, "= ", 2) == 0) {
            if (!take_line(f, line + 2))
                f->wants[f->n_wants++] = line + 2;
        } else if (*line != '#') {
            f->env[f->n_env++] = line;
        }
    }
}

static bool is_ignored(const struct topology *t, const char *name)
{
    for (unsigned i = 0; i < t->n_ignored; i++)
        if (strcmp(t->ignored[i].name, name) == 0)
            return true;
    return false;
}

/* One wanted line; the bit of the option that it is about is set. */
static void check_want(const char *file, const char *want,
                       const struct topology *t, unsigned *seen)
{
    size_t len = strcspn(want, " ");
    const char *rest = want + len + (want[len] == ' ');
    int k = key_of(want, len);
    char is[1024];

    if (k >= 0) {
        (void)snprintf(is, sizeof is, "%s %s",
                       t->at[k].text ? t->at[k].text : "(nothing)",
                       t->at[k].source ? t->at[k].source : "");
        *seen |= 1u << k;
        if (strcmp(is, rest) != 0)
            fail_msg("%s: %s, but it is %s", file, want, is);
    } else if (strncmp(want, "dialect", 7) == 0) {
        if (!t->dialect || strcmp(t->dialect, rest) != 0)
            fail_msg("%s: %s, but it is %s", file, want,
                     t->dialect ? t->dialect : "none");
    } else if (strncmp(want, "warning", 7) == 0) {
        if (*rest ? !strstr(t->warning, rest) : t->warning[0] != '\0')
            fail_msg("%s: %s, but it is '%s'", file, want, t->warning);
    } else if (strncmp(want, "ignored", 7) == 0) {
        if (!is_ignored(t, rest))
            fail_msg("%s: %s is not ignored", file, rest);
    } else {
        fail_msg("%s: what is '%s'?", file, want);
    }
}

static void check(const char *name)
{
    static struct fixture f;
    static struct topology t;
    struct err e = {0};
    unsigned seen = 0;
    int rc;

    load(&f, name);
    rc = topology_read(&t, &f.in, &e);
    if (f.n_wants == 1 && strncmp(f.wants[0], "fail ", 5) == 0) {
        if (rc == 0 || e.code != ERR_USAGE || !strstr(e.text, f.wants[0] + 5))
            fail_msg("%s: %s, but: %s", name, f.wants[0],
                     rc ? e.text : "it is read");
        return;
    }
    if (rc != 0)
        fail_msg("%s: %s", name, e.text);
    for (unsigned i = 0; i < f.n_wants; i++)
        check_want(name, f.wants[i], &t, &seen);
    for (int k = 0; k < TOPO_KEYS; k++)
        if (t.at[k].text && !(seen & 1u << k))
            fail_msg("%s: %s=%s of %s is not expected", name,
                     topology_option((enum topo_key)k), t.at[k].text,
                     t.at[k].source);
}

static void test_platforms(void **state)
{
    DIR *d = opendir(FOLDER);
    const struct dirent *ent;
    unsigned n = 0;

    (void)state;
    if (!d)
        fail_msg(FOLDER " is not there: run this from the top of the tree");
    while ((ent = readdir(d)) != NULL)
        if (strstr(ent->d_name, ".env")) {
            check(ent->d_name);
            n++;
        }
    (void)closedir(d);
    assert_true(n >= 30);
}

/* Much of everything: nothing overflows, and there is an answer. */
static void test_long_values(void **state)
{
    static const char *const names[] = {
        "PET_NNODES", "PET_NODE_RANK", "PET_RDZV_ENDPOINT", "PET_RDZV_BACKEND",
        "RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "LWS_GROUP_SIZE",
        "VC_TASK_INDEX", "VC_A_HOSTS", "VC_B_HOSTS", "SLURM_NODEID",
        "SLURM_JOB_NUM_NODES", "SLURM_JOB_NODELIST", "PMI_RANK", "PMI_SIZE",
        "JOB_COMPLETION_INDEX"};
    enum { N = sizeof names / sizeof names[0], LEN = 6000 };
    static char bytes[N][LEN];
    static struct topology t;
    char *envp[N + 1];
    uint64_t r = 4101842887655102017u;

    (void)state;
    for (unsigned round = 0; round < 2000; round++) {
        struct topology_in in = {.envp = envp};
        struct err e = {0};
        unsigned n = 0;

        for (unsigned i = 0; i < N; i++) {
            static const char *const values[] = {"1", "2", "0", "x:1", "a,b",
                                                 "n[1-3]", "", "2:4", "c10d"};
            size_t len;

            r ^= r << 13, r ^= r >> 7, r ^= r << 17;
            if (r & 256)
                continue;
            len = (size_t)snprintf(bytes[i], LEN, "%s=%s", names[i],
                                   values[r % 9]);
            if (r % 7 == 0) {
                memset(bytes[i] + len, 'y', LEN - 1 - len);
                bytes[i][LEN - 1] = '\0';
            }
            envp[n++] = bytes[i];
        }
        envp[n] = NULL;
        if (topology_read(&t, &in, &e) != 0)
            assert_true(e.code == ERR_USAGE && e.text[0]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_platforms),
        cmocka_unit_test(test_long_values),
    };

    return cmocka_run_group_tests_name("topology", tests, NULL, NULL);
}
