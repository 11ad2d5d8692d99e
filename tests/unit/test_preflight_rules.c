/* preflight's pure parts: names of checks, interfaces, devices; output. */
#include "preflight/names.h"
#include "preflight/net_rules.h"
#include "preflight/show.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void test_lists(void **state)
{
    static const struct {
        const char *list;
        unsigned bits;
        const char *bad;
        unsigned busbw;
    } cases[] = {
        {"allreduce=12.5,shm", PREFLIGHT_BIT(SHM) | PREFLIGHT_BIT(ALLREDUCE),
         NULL, 12500},
        {"allreduce", PREFLIGHT_BIT(ALLREDUCE), NULL, 0},
        {"allreduce=", 0, "allreduce=", 0},
        {"shm,allreduce=x1", 0, "allreduce=x1", 0},
        {"allreduce=1e3", 0, "allreduce=1e3", 0},
        {"shm=3", 0, "shm=3", 0},
        {"off", 0, NULL, 0},
        {"shm", PREFLIGHT_BIT(SHM), NULL, 0},
        {"env,shm", PREFLIGHT_BIT(SHM) | PREFLIGHT_BIT(ENV), NULL, 0},
        {"shm,shm", PREFLIGHT_BIT(SHM), NULL, 0},
        {PREFLIGHT_DEFAULT, PREFLIGHT_BIT(SHM) | PREFLIGHT_BIT(MEMLOCK) |
                                PREFLIGHT_BIT(LIMITS) | PREFLIGHT_BIT(IFACE),
         NULL, 0},
        {"", 0, "", 0},
        {"shm,", 0, "", 0},
        {"shm,off", 0, "off", 0},
        {"sh", 0, "sh", 0},
        {"shm2,dns", 0, "shm2", 0},
        {"dns,SHM", 0, "SHM", 0},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct preflight_list l = {0};
        unsigned len = 0;
        const char *bad = NULL;
        bool fine = preflight_read_list(cases[i].list, &l, &bad, &len);

        if (fine != (cases[i].bad == NULL))
            fail_msg("'%s'", cases[i].list);
        if (fine)
            assert_true(l.bits == cases[i].bits && l.busbw == cases[i].busbw);
        else if (len != strlen(cases[i].bad) ||
                 memcmp(bad, cases[i].bad, len) != 0)
            fail_msg("'%s': bad is '%.*s'", cases[i].list, (int)len, bad);
    }
}

static void test_matches(void **state)
{
    static const struct {
        const char *spec, *name;
        bool fits, fits_hca;
    } cases[] = {
        {"eth0", "eth0", true, true},    {"eth", "eth0", true, true},
        {"=eth", "eth0", false, false},  {"=eth0", "eth0", true, true},
        {"^eth", "eth0", false, false},  {"^eth", "ib0", true, true},
        {"^=eth0", "eth0", false, false}, {"^=eth", "eth0", true, true},
        {"ib,eth1", "eth1", true, true}, {"ib,eth1", "eth0", false, false},
        {"^docker,lo", "lo", false, false}, {"eth0,", "ib0", false, false},
        {"mlx5_0:1", "mlx5_0", false, true}, {"=mlx5_0:1", "mlx5_01", false,
                                              false},
        {"^mlx5_0:1", "mlx5_0", true, false},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (net_matches(cases[i].spec, cases[i].name) != cases[i].fits ||
            net_hca_matches(cases[i].spec, cases[i].name, 0) !=
                cases[i].fits_hca)
            fail_msg("%s for %s", cases[i].spec, cases[i].name);
    assert_true(net_hca_matches("=mlx5_0:1,mlx5_1", "mlx5_0", 1));
    assert_false(net_hca_matches("=mlx5_0:1,mlx5_1", "mlx5_0", 2));
    assert_true(net_hca_matches("=mlx5_0:1,mlx5_1", "mlx5_1", 2));
    assert_false(net_hca_matches("^=mlx5_0:1", "mlx5_0", 1));
    assert_true(net_hca_matches("^=mlx5_0:1", "mlx5_0", 2));
}

/* "eth0+,lo-": up, down; "lo" is loopback. */
static void make_list(struct net_list *l, const char *text)
{
    char buf[256], *save;

    memset(l, 0, sizeof *l);
    (void)snprintf(buf, sizeof buf, "%s", text);
    for (char *w = strtok_r(buf, ",", &save); w;
         w = strtok_r(NULL, ",", &save)) {
        struct net_if *at = &l->at[l->n++];
        size_t len = strlen(w);

        at->is_up = w[len - 1] == '+';
        (void)snprintf(at->name, sizeof at->name, "%.*s", (int)(len - 1), w);
        at->is_loopback = strcmp(at->name, "lo") == 0;
    }
}

static void test_choice(void **state)
{
    static const struct {
        const char *list, *spec, *choice;
    } cases[] = {
        {"lo+,docker0+,eth0+", NULL, "eth0"},
        {"lo+,eth0+,ib0+", NULL, "ib0"},
        {"lo+,docker0+", NULL, "docker0"},
        {"lo+", NULL, "lo"},
        {"lo+,eth0-,eth1+", NULL, "eth1"},
        {"lo+,virbr0+,eth0+", NULL, "eth0"},
        {"", NULL, NULL},
        {"lo+,eth0+", "eth9", NULL},
        {"lo+,eth0+,eth1+", "=eth1", "eth1"},
        {"lo+,eth0+", "^eth", "lo"},
    };
    struct net_list l;

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct net_if *c;

        make_list(&l, cases[i].list);
        c = net_choice(&l, cases[i].spec);
        if (!c != !cases[i].choice || (c && strcmp(c->name, cases[i].choice)))
            fail_msg("%s with %s: %s", cases[i].list,
                     cases[i].spec ? cases[i].spec : "none",
                     c ? c->name : "none");
    }
}

static void test_unknown_names(void **state)
{
    struct net_list l;
    const char *bad;
    char names[64];
    size_t len;

    (void)state;
    make_list(&l, "lo+,eth0+");
    assert_null(net_unknown(&l, "eth0,lo", &len));
    bad = net_unknown(&l, "eth0,eth,lo", &len);
    assert_int_equal(len, 3);
    assert_memory_equal(bad, "eth", 3);
    net_names(&l, names, sizeof names);
    assert_string_equal(names, "lo, eth0");
}

static struct preflight_finding finding(enum preflight_level level)
{
    struct preflight_finding f;

    memset(&f, 0, sizeof f);
    f.check = PREFLIGHT_DNS;
    f.level = (uint8_t)level;
    (void)snprintf(f.what, sizeof f.what, "no \"name\"");
    (void)snprintf(f.why, sizeof f.why, "lost");
    (void)snprintf(f.fix, sizeof f.fix, "give it one");
    (void)snprintf(f.yaml, sizeof f.yaml, "a:\n- b\n");
    return f;
}

static void test_output(void **state)
{
    struct preflight_finding all[] = {finding(PREFLIGHT_RETRY),
                                      finding(PREFLIGHT_WARN)};
    struct show_check checks[PREFLIGHT_CHECKS] = {
        [PREFLIGHT_DNS] = {true, PREFLIGHT_RETRY, 1234}};
    char buf[4096];
    struct text t;

    (void)state;
    text_init(&t, buf, sizeof buf);
    show_finding(&t, &all[0]);
    assert_string_equal(buf,
                        "retryable dns       no \"name\"\n"
                        "                    why: lost\n"
                        "                    fix: give it one\n"
                        "                      | a:\n"
                        "                      | - b\n");
    text_init(&t, buf, sizeof buf);
    show_end(&t, PREFLIGHT_RETRY, all, 2);
    assert_string_equal(buf, "preflight: retryable (20): 0 fatal, 1 retryable, "
                             "1 warning\n");
    text_init(&t, buf, sizeof buf);
    show_line(&t, &all[1]);
    assert_string_equal(buf, "preflight: dns: no \"name\"; lost; fix: give it "
                             "one");
    text_init(&t, buf, sizeof buf);
    show_json(&t, "h", PREFLIGHT_RETRY, checks, all, 2);
    assert_non_null(strstr(buf, "\"code\": 20"));
    assert_non_null(strstr(buf, "\"what\": \"no \\\"name\\\"\""));
    assert_non_null(strstr(buf, "\"yaml\": \"a:\\n- b\\n\""));
    assert_non_null(strstr(buf, "\"seconds\": 1.234"));
    assert_null(strstr(buf, "\"shm\""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_matches),
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_unknown_names),
        cmocka_unit_test(test_output),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
