/* Whom libddp names where ddp_init comes to nothing, against a peer that the
 * test plays by hand. */
#include "ddp/boot.h"

#include "ddp_fake.h"

#include <time.h>

static void test_rank_0_hangs_while_others_are_missing(void **state)
{
    const struct ddp_frame f = {.kind = DDP_WAITING, .n = 3, .peer = 5};
    struct real r;
    struct fake k;

    (void)state;
    fake_gather(&k, &r, 4 * DDP_BOOT_TICK_MS + SHORT_MS);
    fake_kind(&k.boot, DDP_WELCOME);
    fake_say(&k.boot, &f);
    real_expect(&r, DDP_ETIMEDOUT, 0, "rank 0 at 127.0.0.1:");
    fake_close(&k);
}

/* It has failed, as all have, because of a third one. */
static void test_the_next_rank_is_not_there_any_more(void **state)
{
    const struct ddp_frame fault = {.kind = DDP_FAULT, .code = 4, .rank = 0,
                                    .peer = 7, .text = "rank 7 left"};
    const struct timespec later = {.tv_nsec = 20 * 1000 * 1000};
    struct ddp_frame f = token_table;
    struct real r;
    struct fake k;
    int port, fd;

    (void)state;
    fake_gather(&k, &r, PATIENCE_MS);
    fd = fake_listen(&port);
    ddp_socket_close(&fd);
    f.addr.port = (uint16_t)port;
    fake_kind(&k.boot, DDP_WELCOME);
    fake_say(&k.boot, &f);
    (void)nanosleep(&later, NULL); /* Most likely it is refused by then. */
    fake_say(&k.boot, &fault);
    real_expect(&r, DDP_ESYSTEM, 7, "rank 0 reports: rank 7 left");
    fake_close(&k);
}

static void test_no_go_and_why(void **state)
{
    const struct ddp_frame f = {.kind = DDP_FAULT, .code = 5, .rank = 0,
                                .peer = 3, .text = "bad"};
    const struct timespec later = {.tv_nsec = (SHORT_MS + 50) * 1000 * 1000};
    struct real r;
    struct fake k;

    (void)state;
    fake_gather(&k, &r, SHORT_MS);
    fake_ring(&k);
    (void)nanosleep(&later, NULL); /* Most likely it waits for this by then. */
    fake_say(&k.boot, &f);
    real_expect(&r, DDP_ETIMEDOUT, 3, "rank 0 reports: bad");
    fake_close(&k);
}

/* Rank 1 hangs before it connects to rank 2. */
static void test_who_hangs_while_the_ring_is_made(void **state)
{
    struct ddp_addr at = loopback(0);
    struct real r[3];
    struct ddp_conn c;
    int port, fd = fake_listen(&port);

    (void)state;
    at.port = (uint16_t)port;
    fake_join_at(r, &c, &at, 5 * SHORT_MS);
    real_start(&r[2], 2, 3, r[0].opt.master_port, PATIENCE_MS);
    real_expect(&r[0], DDP_ETIMEDOUT, 1, "the first of them is rank 1");
    real_expect(&r[2], DDP_ETIMEDOUT, 1, "the first of them is rank 1");
    ddp_conn_close(&c);
    ddp_socket_close(&fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rank_0_hangs_while_others_are_missing),
        cmocka_unit_test(test_the_next_rank_is_not_there_any_more),
        cmocka_unit_test(test_no_go_and_why),
        cmocka_unit_test(test_who_hangs_while_the_ring_is_made),
    };

    return cmocka_run_group_tests_name("ddp_late", tests, clear_environment,
                                       NULL);
}
