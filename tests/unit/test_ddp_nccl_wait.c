/* Tests of how libddp waits for what goes on on a stream. */
#include "ddp/clock.h"
#include "ddp/nccl_parts.h"

#include "ddp_fixture.h"

#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NAPS 20   /* After these it is over. */
#define PART 400u /* No sleep is longer than this part of the time before. */

static uint64_t since_ns;
static unsigned naps, long_naps;
static int slack_ns; /* The kernel may end a sleep so much later. */

int nanosleep(const struct timespec *t, struct timespec *left)
{
    uint64_t ns = (uint64_t)t->tv_sec * 1000000000u + (uint64_t)t->tv_nsec;

    naps++;
    long_naps += ns > (ddp_now_ns() - since_ns) / PART;
    slack_ns = prctl(PR_GET_TIMERSLACK);
    return (int)syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, t, left);
}

static int is_over(struct ddp_nccl *n, int *ret)
{
    (void)n;
    (void)ret;
    return naps >= NAPS;
}

/* A step of a training waits so for the last reduction: what it oversleeps is
 * time of the GPU. */
static void test_it_does_not_oversleep(void **state)
{
    const struct ddp_request q = {.what = DDP_ALL_REDUCE};
    struct ddp_comm *c = calloc(1, sizeof *c);
    struct ddp_nccl *n = calloc(1, sizeof *n);
    int slack = prctl(PR_GET_TIMERSLACK);
    struct ddp_error err;
    struct ddp_watch w;

    (void)state;
    assert_non_null(c);
    assert_non_null(n);
    c->size = 1;
    c->timeout_ms = 60000;
    since_ns = ddp_now_ns();
    ddp_watch_begin(&w, c, &q, &err);
    assert_int_equal(ddp_nccl_wait(n, &w, "NCCL", is_over), 0);
    assert_int_equal(long_naps, 0);
    assert_true(slack_ns <= 1000);
    assert_int_equal(prctl(PR_GET_TIMERSLACK), slack); /* As it was. */
    free(n);
    free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_does_not_oversleep),
    };

    return cmocka_run_group_tests_name("ddp_nccl_wait", tests, NULL, NULL);
}
