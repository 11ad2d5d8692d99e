/* Tests of agent/cpu_plan: which CPUs each worker gets. What torchrun's modes
 * give is what PyTorch 2.13's own functions gave for the same machines. */
#include "agent/cpu_plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* 16 cores with two CPUs each, n and n + 16; four cores a node, two nodes a
 * socket, two cores a cache. */
static void make_big(struct cpu_machine *m, const char *allowed)
{
    struct cpu_mask mask = {{0}};

    assert_true(cpu_parse(allowed, &mask));
    memset(m, 0, sizeof *m);
    m->has_cores = m->has_sockets = m->has_caches = true;
    for (unsigned i = 0; i < 32; i++) {
        unsigned core = i % 16;

        if (!cpu_has(&mask, i))
            continue;
        m->end = i + 1;
        m->n_cpus++;
        m->cpus[i] = (struct cpu_one){.usable = true,
                                      .node = (uint16_t)(core / 4),
                                      .socket = (uint16_t)(core / 8),
                                      .core = (uint16_t)core,
                                      .cache = (uint16_t)(core / 2 * 2)};
    }
}

static void expect(const struct cpu_machine *m, enum cpu_bind how,
                   const uint16_t *nodes, unsigned n, unsigned unit,
                   const char *want)
{
    struct err e = {0};
    struct cpu_mask got;
    char buf[256] = "";
    struct text t;

    text_init(&t, buf, sizeof buf);
    if (cpu_share(m, how, nodes, n, unit, &got, &e) != 0) {
        assert_int_equal(e.code, ERR_USAGE);
        (void)text_copy(buf, sizeof buf, e.text);
    } else {
        cpu_print(&got, &t);
    }
    if (strcmp(buf, want) != 0)
        fail_msg("mode %d, unit %u: \"%s\", not \"%s\"", (int)how, unit, buf,
                 want);
}

struct shares {
    const char *allowed;
    enum cpu_bind how;
    unsigned n;
    uint16_t nodes[6];
    const char *want[6];
};

static void test_shares(void **state)
{
    static struct cpu_machine m;
    static const struct shares rows[] = {
        {"0-31", CPU_BIND_NODE, 4, {1, 1, 3, 0},
         {"4-7,20-23", "4-7,20-23", "12-15,28-31", "0-3,16-19"}},
        {"0-31", CPU_BIND_SOCKET, 4, {1, 1, 3, 0},
         {"0-7,16-23", "0-7,16-23", "8-15,24-31", "0-7,16-23"}},
        {"0-31", CPU_BIND_CORES, 4, {1, 1, 3, 0},
         {"4-5,20-21", "6-7,22-23", "12-15,28-31", "0-3,16-19"}},
        /* The first ones get one more. */
        {"0-31", CPU_BIND_CORES, 3, {2, 2, 2},
         {"8-9,24-25", "10,26", "11,27"}},
        {"0-31", CPU_BIND_COMPLEX, 4, {1, 1, 1, 0},
         {"4-5,20-21", "6-7,22-23", "4-5,20-21", "0-1,16-17"}},
        /* Some CPUs alone: a core is one, with one of its CPUs or two. */
        {"4,6-7,20,22", CPU_BIND_NODE, 1, {1}, {"4,6-7,20,22"}},
        {"4,6-7,20,22", CPU_BIND_CORES, 2, {1, 1}, {"4,6,20,22", "7"}},
        {"21-23", CPU_BIND_CORES, 3, {1, 1, 1}, {"21", "22", "23"}},
        /* The larger complex first, though its numbers are higher. */
        {"4,6-7,20,22", CPU_BIND_COMPLEX, 3, {1, 1, 1},
         {"6-7,22", "4,20", "6-7,22"}},
        {"0-3,9", CPU_BIND_SOCKET, 2, {0, 2}, {"0-3", "9"}},
    };

    (void)state;
    for (unsigned r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        make_big(&m, rows[r].allowed);
        for (unsigned i = 0; i < rows[r].n; i++)
            expect(&m, rows[r].how, rows[r].nodes, rows[r].n, i,
                   rows[r].want[i]);
    }
}

static void test_no_share_is_said(void **state)
{
    static struct cpu_machine m;
    static const uint16_t five[] = {2, 2, 2, 2, 2}, other[] = {3};

    (void)state;
    make_big(&m, "0-31");
    expect(&m, CPU_BIND_CORES, five, 5, 0, "NUMA node 2 has 4 cores that may "
           "be used, for 5 workers or GPUs: no share for each");
    make_big(&m, "0-3");
    for (int how = CPU_BIND_NODE; how <= CPU_BIND_COMPLEX; how++)
        expect(&m, (enum cpu_bind)how, other, 1, 0, how == CPU_BIND_CORES
               ? "NUMA node 3 has 0 cores that may be used, for 1 worker or "
                 "GPU: no share for each"
               : "of the CPUs of NUMA node 3 this pod may use none");
    m.has_cores = m.has_sockets = m.has_caches = false;
    for (int how = CPU_BIND_CORES; how <= CPU_BIND_COMPLEX; how++)
        expect(&m, (enum cpu_bind)how, other, 1, 0, "/sys/devices/system/cpu "
               "does not say which CPUs make up a core, socket or cache");
}

/* Of any number of workers on a node: disjoint, not empty, together all. */
static void test_cores_are_shared_out(void **state)
{
    static struct cpu_machine m;
    static const char *const alloweds[] = {"0-31", "0-15", "1,3,5-7,17-22,30"};

    (void)state;
    for (unsigned a = 0; a < 3; a++)
        for (unsigned n = 1; n <= 16; n++) {
            uint16_t nodes[16];
            unsigned seen[32] = {0}, first;
            struct err e = {0};
            bool all = true;

            make_big(&m, alloweds[a]);
            cpu_spread(&m, n, nodes);
            for (unsigned i = 0; i < n; i++) {
                struct cpu_mask got;

                all = all && cpu_share(&m, CPU_BIND_CORES, nodes, n, i, &got,
                                       &e) == 0;
                for (unsigned c = 0; all && c < 32; c++)
                    seen[c] += cpu_has(&got, c);
            }
            for (unsigned c = 0; all && c < 32; c++) {
                assert_true(seen[c] <= 1);
                if (n >= cpu_nodes(&m, &first) && a < 2)
                    assert_int_equal(seen[c], m.cpus[c].usable);
            }
            assert_true(all || a == 2);
        }
}

static void test_spread(void **state)
{
    static struct cpu_machine m;
    static const struct {
        const char *allowed;
        unsigned n;
        uint16_t want[8];
    } rows[] = {
        {"0-31", 1, {0}},
        {"0-31", 2, {0, 2}},
        {"0-31", 4, {0, 1, 2, 3}},
        {"0-31", 8, {0, 0, 1, 1, 2, 2, 3, 3}},
        {"0-31", 6, {0, 0, 1, 2, 2, 3}},
        {"4-6,8", 4, {1, 1, 1, 2}}, /* By CPUs. */
        {"12", 3, {3, 3, 3}},
    };
    unsigned first;

    (void)state;
    for (unsigned r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        uint16_t got[8] = {0};

        make_big(&m, rows[r].allowed);
        cpu_spread(&m, rows[r].n, got);
        for (unsigned i = 0; i < rows[r].n; i++)
            assert_int_equal(got[i], rows[r].want[i]);
    }
    make_big(&m, "4-6,8");
    assert_int_equal(cpu_nodes(&m, &first), 2);
    assert_int_equal(first, 1);
}

static void test_lists(void **state)
{
    static const struct {
        const char *text, *again; /* NULL: no list. */
    } rows[] = {
        {"0-3,8,10-11\n", "0-3,8,10-11"}, {"5", "5"}, {"\n", ""}, {"", ""},
        {"0,1,2", "0-2"}, {"4094-4100", "4094-4095"}, {"9000", ""},
        {"3-1", NULL}, {"a", NULL}, {"1,", NULL}, {",1", NULL}, {"1-", NULL},
        {"-1", NULL}, {"1 2", NULL}, {"1-2-3", NULL},
        {"99999999999999999999", NULL},
    };

    (void)state;
    for (unsigned r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        struct cpu_mask m = {{0}};
        char buf[64] = "";
        struct text t;
        bool ok = cpu_parse(rows[r].text, &m);

        if (ok != (rows[r].again != NULL))
            fail_msg("\"%s\"", rows[r].text);
        text_init(&t, buf, sizeof buf);
        cpu_print(&m, &t);
        if (ok)
            assert_string_equal(buf, rows[r].again);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_no_share_is_said),
        cmocka_unit_test(test_cores_are_shared_out),
        cmocka_unit_test(test_spread),
        cmocka_unit_test(test_lists),
    };

    return cmocka_run_group_tests_name("cpu_plan", tests, NULL, NULL);
}
