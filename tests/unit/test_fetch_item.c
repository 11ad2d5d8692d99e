/* Tests of fetch/item: which URL is next, and when a file is given up. */
#include "fetch/item.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define RETRIES 2

static struct item_host hosts[3];
static struct item_url urls[3];
static struct item it;
static uint64_t now;

/* A file with three URLs of three hosts. */
static int begin(void **state)
{
    (void)state;
    memset(hosts, 0, sizeof hosts);
    memset(urls, 0, sizeof urls);
    for (unsigned i = 0; i < 3; i++)
        urls[i].host = i;
    it = (struct item){.urls = urls, .n_urls = 3};
    now = 1000;
    return 0;
}

/* The URL that is tried now. */
static unsigned next(void)
{
    assert_int_equal(item_next(&it, hosts, now), 0);
    return it.url;
}

static void end_at(enum item_outcome outcome, uint64_t offset)
{
    struct item_result r = {.outcome = outcome, .offset = offset};

    item_ended(&it, hosts, &r, RETRIES, 0, now);
}

static void test_in_order_of_health(void **state)
{
    (void)state;
    assert_int_equal(next(), 0);
    end_at(ITEM_AGAIN, 0);
    assert_int_equal(next(), 1); /* At once. */
    end_at(ITEM_NO_FILE, 0);
    assert_int_equal(next(), 2);
    end_at(ITEM_AGAIN, 0);
    /* None may be tried now; the first one is ready first. */
    assert_int_equal(item_next(&it, hosts, now), 1000 + ITEM_BACKOFF_MIN_MS);
    now += ITEM_BACKOFF_MIN_MS;
    assert_int_equal(next(), 0);
    end_at(ITEM_DONE, 10);
    assert_int_equal(hosts[0].failures, 0);
}

/* A host that fails for other files is left for one that does not. */
static void test_health_of_hosts(void **state)
{
    (void)state;
    hosts[0].failures = 3;
    hosts[1].failures = 1;
    assert_int_equal(next(), 2);
    hosts[2].failures = 3;
    assert_int_equal(next(), 1);
}

static void test_given_up(void **state)
{
    uint64_t before = 0, wait;

    (void)state;
    it.n_urls = 1;
    for (unsigned i = 0; i < RETRIES; i++) {
        assert_int_equal(next(), 0);
        end_at(ITEM_AGAIN, 0);
        wait = item_next(&it, hosts, now) - now;
        assert_true(wait > before);
        before = wait;
        now += wait;
    }
    assert_int_equal(next(), 0);
    end_at(ITEM_AGAIN, 0);
    assert_true(item_next(&it, hosts, now) == UINT64_MAX);
    assert_int_equal(item_class(&it), ERR_RESOURCE);
}

/* What gets on, be it slowly, is not given up. */
static void test_progress_counts(void **state)
{
    (void)state;
    it.n_urls = 1;
    for (unsigned i = 1; i < 20; i++) {
        assert_int_equal(next(), 0);
        end_at(ITEM_AGAIN, (uint64_t)i * ITEM_PROGRESS_MIN);
        now += ITEM_BACKOFF_MIN_MS;
    }
    /* But not the same bytes again and again. */
    for (unsigned i = 0; i < RETRIES; i++) {
        end_at(ITEM_AGAIN, 10 * ITEM_PROGRESS_MIN);
        now += ITEM_BACKOFF_MAX_MS;
    }
    assert_true(item_next(&it, hosts, now) == UINT64_MAX);
}

static void test_retry_after(void **state)
{
    struct item_result r = {.outcome = ITEM_AGAIN, .retry_after_ms = 7000};

    (void)state;
    it.n_urls = 1;
    assert_int_equal(next(), 0);
    item_ended(&it, hosts, &r, RETRIES, 0, now);
    assert_int_equal(item_next(&it, hosts, now), now + 7000);
    now += 7000;
    assert_int_equal(next(), 0);
    r.retry_after_ms = UINT64_MAX;
    item_ended(&it, hosts, &r, RETRIES, 0, now);
    assert_int_equal(item_next(&it, hosts, now),
                     now + ITEM_RETRY_AFTER_MAX_MS);
}

static void test_backoff_is_bounded(void **state)
{
    (void)state;
    it.n_urls = 1;
    for (unsigned i = 0; i < 100; i++) {
        struct item_result r = {.outcome = ITEM_AGAIN};
        uint64_t wait;

        assert_int_equal(next(), 0);
        item_ended(&it, hosts, &r, 1000, i * 7919, now);
        wait = item_next(&it, hosts, now) - now;
        assert_in_range(wait, ITEM_BACKOFF_MIN_MS * 3 / 4, ITEM_BACKOFF_MAX_MS);
        now += wait;
    }
}

static void test_mismatch(void **state)
{
    (void)state;
    it.n_urls = 2;
    assert_int_equal(next(), 0);
    end_at(ITEM_MISMATCH, 0);
    assert_true(urls[0].no_range);
    assert_int_equal(next(), 1); /* Another one first. */
    end_at(ITEM_NO_FILE, 0);
    assert_int_equal(next(), 0);
    end_at(ITEM_MISMATCH, 0);
    assert_true(item_next(&it, hosts, now) == UINT64_MAX);
    assert_int_equal(item_class(&it), ERR_DATA);
}

static void test_no_range(void **state)
{
    (void)state;
    it.n_urls = 1;
    assert_int_equal(next(), 0);
    end_at(ITEM_NO_RANGE, 5);
    assert_int_equal(next(), 0); /* From the start, and at once. */
    assert_true(urls[0].no_range);
    end_at(ITEM_NO_RANGE, 0);
    assert_true(item_next(&it, hosts, now) == UINT64_MAX);
    assert_int_equal(item_class(&it), ERR_DATA);
}

static void test_classes(void **state)
{
    static const struct {
        enum item_outcome a, b;
        enum err_class want;
    } cases[] = {
        {ITEM_NO_FILE, ITEM_NO_FILE, ERR_NODATA},
        {ITEM_NO_FILE, ITEM_NO_DATA, ERR_DATA},
        {ITEM_NO_DATA, ITEM_NO_FILE, ERR_DATA},
    };

    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        (void)begin(state);
        it.n_urls = 2;
        assert_int_equal(next(), 0);
        end_at(cases[i].a, 0);
        assert_int_equal(next(), 1);
        end_at(cases[i].b, 0);
        assert_true(item_next(&it, hosts, now) == UINT64_MAX);
        assert_int_equal(item_class(&it), cases[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_in_order_of_health, begin),
        cmocka_unit_test_setup(test_health_of_hosts, begin),
        cmocka_unit_test_setup(test_given_up, begin),
        cmocka_unit_test_setup(test_progress_counts, begin),
        cmocka_unit_test_setup(test_retry_after, begin),
        cmocka_unit_test_setup(test_backoff_is_bounded, begin),
        cmocka_unit_test_setup(test_mismatch, begin),
        cmocka_unit_test_setup(test_no_range, begin),
        cmocka_unit_test_setup(test_classes, begin),
    };

    return cmocka_run_group_tests_name("fetch_item", tests, NULL, NULL);
}
