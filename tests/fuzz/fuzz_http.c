/* fuzz_http: any bytes as a request: the end of the head is found at the same
 * place in pieces, and a page only comes with 200; and as an answer. */
#include "fuzz/fuzz.h"

#include "agent/http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *s = (const char *)data;
    struct http_request r = {.page = HTTP_NONE};
    struct http_reply reply;
    size_t head = http_head_len(s, size, 0), found = 0, before = 0;

    fuzz_require(head <= size);
    for (size_t at = 1; at <= size && !found; at++) {
        found = http_head_len(s, at, before);
        before = at;
    }
    fuzz_require(found == head);
    if (head > 0) {
        int status = http_parse(s, head, &r);

        fuzz_require(status == 200 || status == 400 || status == 404 ||
                     status == 405 || status == 505);
        fuzz_require((r.page != HTTP_NONE) == (status == 200));
    }
    if (http_read_reply(s, size, &reply))
        fuzz_require(reply.len < size && reply.body + reply.len == s + size);
    return 0;
}
