/* Every public call of libddp gets NULL wherever a pointer goes: the answer is
 * an error with words, or what ddp.h says; never a crash. */
#include "ddp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static float b[4];
static struct ddp_comm *comm;

/* A call that must be refused, in both ways, with these words. */
#define REFUSED(call, words)                                                  \
    do {                                                                      \
        struct ddp_error e = {.code = 0};                                     \
        struct ddp_error *err = &e;                                           \
                                                                              \
        assert_int_equal(call, DDP_EINVAL);                                   \
        assert_int_equal(e.code, DDP_EINVAL);                                 \
        assert_int_equal(e.peer, -1);                                         \
        if (!strstr(e.text, words))                                           \
            fail_msg("'%s', wanted '%s'", e.text, words);                     \
        err = NULL;                                                           \
        assert_int_equal(call, DDP_EINVAL);                                   \
    } while (0)

static void test_no_communicator(void **state)
{
    const char *words = "communicator is NULL";
    struct ddp_reducer *r = NULL;

    (void)state;
    assert_int_equal(ddp_rank(NULL), DDP_EINVAL);
    assert_int_equal(ddp_size(NULL), DDP_EINVAL);
    assert_int_equal(ddp_local_rank(NULL), DDP_EINVAL);
    assert_int_equal(ddp_abort(NULL), DDP_EINVAL);
    REFUSED(ddp_all_reduce(NULL, b, b, 1, DDP_F32, DDP_SUM, NULL, err), words);
    REFUSED(ddp_broadcast(NULL, b, 1, DDP_F32, 0, NULL, err), words);
    REFUSED(ddp_reduce_scatter(NULL, b, b, 1, DDP_F32, DDP_SUM, NULL, err),
            words);
    REFUSED(ddp_all_gather(NULL, b, b, 1, DDP_F32, NULL, err), words);
    REFUSED(ddp_barrier(NULL, err), words);
    REFUSED(ddp_queued(NULL, 1, err), words);
    REFUSED(ddp_wait(NULL, err), words);
    REFUSED(ddp_reducer_new(&r, NULL, NULL, 0, NULL, err), words);
    assert_null(r);
    ddp_free(NULL);
}

static void test_no_reducer(void **state)
{
    const struct ddp_param no_grad = {.count = 1, .type = DDP_F32};
    struct ddp_reducer *r = NULL;

    (void)state;
    REFUSED(ddp_reducer_ready(NULL, 0, err), "reducer is NULL");
    REFUSED(ddp_reducer_wait(NULL, err), "reducer is NULL");
    REFUSED(ddp_reducer_no_sync(NULL, 1, err), "reducer is NULL");
    REFUSED(ddp_reducer_new(NULL, comm, NULL, 0, NULL, err), "ret is NULL");
    REFUSED(ddp_reducer_new(&r, comm, NULL, 1, NULL, err), "params is NULL");
    REFUSED(ddp_reducer_new(&r, comm, &no_grad, 1, NULL, err),
            "parameter 0: its gradient is NULL");
    assert_null(r);
    ddp_reducer_free(NULL);
    assert_int_equal(ddp_reducer_new(&r, comm, NULL, 0, NULL, NULL), 0);
    assert_int_equal(ddp_reducer_wait(r, NULL), 0);
    ddp_reducer_free(r);
}

static void test_no_buffers(void **state)
{
    const char *words = "a buffer is NULL";

    (void)state;
    REFUSED(ddp_init(NULL, NULL, err), "ret is NULL");
    REFUSED(ddp_all_reduce(comm, NULL, b, 1, DDP_F32, DDP_SUM, NULL, err),
            words);
    REFUSED(ddp_all_reduce(comm, b, NULL, 1, DDP_F32, DDP_SUM, NULL, err),
            words);
    REFUSED(ddp_broadcast(comm, NULL, 1, DDP_F32, 0, NULL, err), words);
    REFUSED(ddp_reduce_scatter(comm, NULL, b, 1, DDP_F32, DDP_SUM, NULL, err),
            words);
    REFUSED(ddp_reduce_scatter(comm, b, NULL, 1, DDP_F32, DDP_SUM, NULL, err),
            words);
    REFUSED(ddp_all_gather(comm, NULL, b, 1, DDP_F32, NULL, err), words);
    REFUSED(ddp_all_gather(comm, b, NULL, 1, DDP_F32, NULL, err), words);
    /* Nothing is read or written where there is nothing. */
    assert_int_equal(ddp_all_reduce(comm, NULL, NULL, 0, DDP_F32, DDP_SUM,
                                    NULL, NULL), 0);
    assert_int_equal(ddp_broadcast(comm, NULL, 0, DDP_F32, 0, NULL, NULL), 0);
    assert_int_equal(ddp_reduce_scatter(comm, NULL, NULL, 0, DDP_F32, DDP_SUM,
                                        NULL, NULL), 0);
    assert_int_equal(ddp_all_gather(comm, NULL, NULL, 0, DDP_F32, NULL, NULL),
                     0);
    assert_int_equal(ddp_queued(comm, 0, NULL), 0);
    assert_int_equal(ddp_wait(comm, NULL), 0);
    assert_int_equal(ddp_barrier(comm, NULL), 0); /* Nothing is broken. */
}

static int join_alone(void **state)
{
    static const char *const names[] = {"RANK", "WORLD_SIZE", "LOCAL_RANK",
                                        "LOCAL_WORLD_SIZE"};

    (void)state;
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
        (void)unsetenv(names[i]);
    return ddp_init(&comm, NULL, NULL);
}

static int leave(void **state)
{
    (void)state;
    ddp_free(comm);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_communicator),
        cmocka_unit_test(test_no_reducer),
        cmocka_unit_test(test_no_buffers),
    };

    return cmocka_run_group_tests_name("ddp_null", tests, join_alone, leave);
}
