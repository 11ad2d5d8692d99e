/* structure: what the bytes of a file say, at their edges. */
#include "dataset/structure.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct page {
    const char *path, *head;
    bool good;
};

static const struct page pages[] = {
    {"a", "data", true},
    {"a", "", true},
    {"a", "<!DOCTYPE HTML>", false},
    {"a", " \r\n\t<html>", false},
    {"a", "\xef\xbb\xbf<html>", false},
    {"a", "<htm", true},
    {"a.HTML", "<html>", true},
    {"corpus.txt", "<html>", true},
    {"a", "<?xml ?><note/>", true},
    {"a", "<?xml ?><Error><Code>", false},
    {"a", "<?xml ?><html xmlns", false},
    {"a", "version https://git-lfs.github.com/spec/v1", false},
    {"a.txt", "version https://git-lfs.github.com/spec/v1", false},
    {"a.lfs", "version https://git-lfs.github.com/spec/v1", true},
};

static void no_data_but_a_page(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++) {
        struct structure_view v = {.path = pages[i].path};
        struct structure s = {.kind = NULL};

        v.size = v.n_head = strlen(pages[i].head);
        memcpy(v.head, pages[i].head, v.n_head);
        if (structure_page(&v, &s) != pages[i].good)
            fail_msg("%s: %s", pages[i].path, pages[i].head);
        assert_int_equal(s.fault[0] == '\0', pages[i].good);
    }
}

struct idx {
    const char *path;
    uint8_t head[16];
    size_t n_head;
    uint64_t size;
    const char *fault; /* NULL: no IDX by its name. "": a good one. */
};

static const struct idx idxs[] = {
    {"t-idx1-ubyte", {0, 0, 8, 1, 0, 0, 0, 5}, 8, 13, ""},
    {"t.idx1", {0, 0, 0x0e, 1, 0, 0, 0, 5}, 8, 48, ""},
    {"idx1", {0}, 0, 0, NULL},
    {"aidx1-x", {0}, 0, 0, NULL},
    {"a-idx", {0}, 0, 0, NULL},
    {"a-idx12", {0}, 0, 0, NULL},
    {"b-idx1/a", {0}, 0, 0, NULL},
    {"t-idx1-ubyte.gz", {0x1f, 0x8b}, 2, 2, NULL},
    {"t-idx1-ubyte", {0, 0, 8, 1, 0, 0, 0, 5}, 8, 12,
     "its IDX header asks for 13 bytes, and it has 12: it is cut"},
    {"t-idx1-ubyte", {0, 0, 8, 1, 0, 0, 0, 5}, 8, 14,
     "its IDX header asks for 13 bytes, and it has 14"},
    {"t-idx1-ubyte", {0, 0, 8, 1, 0, 0}, 6, 6,
     "it has no IDX header, as its name says"},
    {"t-idx1-ubyte", {0, 0, 7, 1, 0, 0, 0, 5}, 8, 13,
     "it has no IDX header, as its name says"},
    {"t-idx3-ubyte", {0, 0, 8, 1, 0, 0, 0, 5}, 8, 13,
     "its IDX header says 1 dimension, its name 3"},
    {"t-idx3-ubyte", {0, 0, 8, 3, 255, 255, 255, 255, 255, 255, 255, 255, 255,
                      255, 255, 255}, 16, 16,
     "the sizes in its IDX header are too large"},
};

static void idx_against_its_length(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof idxs / sizeof idxs[0]; i++) {
        struct structure_view v = {.path = idxs[i].path,
                                   .size = idxs[i].size,
                                   .n_head = idxs[i].n_head};
        struct structure s = {.kind = NULL};

        memcpy(v.head, idxs[i].head, sizeof idxs[i].head);
        assert_int_equal(structure_idx(&v, &s),
                         !idxs[i].fault || !idxs[i].fault[0]);
        assert_int_equal(s.kind != NULL, idxs[i].fault != NULL);
        assert_string_equal(s.fault, idxs[i].fault ? idxs[i].fault : "");
    }
}

/* A header with its checksum; numbers as a tar has them. */
static void header(uint8_t *h, const char *name, uint8_t type,
                   const char *size)
{
    unsigned sum = 0;

    memset(h, 0, STRUCTURE_BLOCK);
    memcpy(h, name, strlen(name));
    memcpy(h + 124, size, 12);
    h[156] = type;
    memset(h + 148, ' ', 8);
    for (size_t i = 0; i < STRUCTURE_BLOCK; i++)
        sum += h[i];
    (void)snprintf((char *)h + 148, 8, "%06o", sum);
}

static void tar_block_by_block(void **state)
{
    uint8_t h[STRUCTURE_BLOCK];
    static const uint8_t zeros[STRUCTURE_BLOCK];
    struct structure_tar t = {.n = 0};
    struct structure s = {.kind = NULL};

    (void)state;
    header(h, "a", '0', "00000001001"); /* 513 bytes. */
    assert_true(structure_tar_block(&t, h, &s));
    assert_int_equal(t.skip, 1024);
    header(h, "d", '5', "00000001001"); /* A folder has no data. */
    assert_true(structure_tar_block(&t, h, &s));
    assert_int_equal(t.n, 2048);
    header(h, "b", '0', "\x80\0\0\0\0\0\0\0\0\0\2\0"); /* Base 256. */
    assert_true(structure_tar_block(&t, h, &s));
    assert_int_equal(t.skip, 512);
    assert_false(structure_tar_end(&t, 2048 + 512, &s));
    assert_string_equal(s.fault,
                        "the tar ends within 'b', at byte 2560: it is cut");
    assert_false(structure_tar_end(&t, 3072, &s));
    assert_true(structure_tar_block(&t, zeros, &s));
    assert_false(structure_tar_end(&t, 3584, &s));
    assert_true(structure_tar_block(&t, zeros, &s));
    assert_true(structure_tar_end(&t, 4096, &s));
    memset(h, 'x', sizeof h);
    assert_true(structure_tar_block(&t, h, &s)); /* After the end: any. */
}

static void tar_that_is_none(void **state)
{
    static const char *const sizes[] = {"0000000000x",
                                        "\xff\xff\xff\xff\xff\xff\xff\xff\xff"
                                        "\xff\xff\xff",
                                        "\x80\xff\xff\xff\xff\xff\xff\xff\xff"
                                        "\xff\xff\xff"};
    uint8_t h[STRUCTURE_BLOCK];

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct structure_tar t = {.n = 0};
        struct structure s = {.kind = NULL};

        header(h, "a", '0', sizes[i]);
        assert_false(structure_tar_block(&t, h, &s));
        assert_string_equal(s.fault, "it is no tar: no header at byte 0");
    }
}

struct tensors {
    const char *text;
    uint64_t data;
    const char *fault;
};

static const struct tensors tensors[] = {
    {"{}", 0, ""},
    {"{\"a\":{\"data_offsets\":[0,4]},\"b\":{\"x\":[[{}]],"
     "\"data_offsets\":[4,9]}}   ", 9, ""},
    {"{\"__metadata__\":{\"data_offsets\":\"x\"}}", 0, ""},
    {"{\"a\":{\"data_offsets\":[0,4]}}", 3,
     "its safetensors header asks for 40 bytes, and it has 39: it is cut"},
    {"{\"a\":{\"data_offsets\":[0,4]}}", 5,
     "its safetensors header asks for 40 bytes, and it has 41"},
    {"{\"a\":{\"data_offsets\":[0,4}}", 4,
     "its safetensors header is damaged: header:1:26: a ']' should come here, "
     "after data_offsets"},
    {"{\"a\":1}", 0, "its safetensors header is damaged: header:1:6: a '{' "
                     "should come here, for a tensor"},
    {"{\"__metadata__\":[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]}", 0,
     "its safetensors header is damaged: header:1:34: too deep"},
};

static void safetensors_against_its_length(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++) {
        size_t len = strlen(tensors[i].text);
        struct structure s = {.kind = NULL};

        assert_int_equal(structure_safetensors(tensors[i].text, len,
                                               8 + len + tensors[i].data, &s),
                         !tensors[i].fault[0]);
        assert_string_equal(s.fault, tensors[i].fault);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_data_but_a_page),
        cmocka_unit_test(idx_against_its_length),
        cmocka_unit_test(tar_block_by_block),
        cmocka_unit_test(tar_that_is_none),
        cmocka_unit_test(safetensors_against_its_length),
    };

    return cmocka_run_group_tests_name("structure", tests, NULL, NULL);
}
