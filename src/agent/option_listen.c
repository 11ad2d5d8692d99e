/* option_listen: the type of option_types.h of an address to listen on. */
#include "agent/option_types.h"

#include "agent/option_table.h"

#include <string.h>

/* Four numbers, or what an IPv6 address is made of; whether it is one is seen
 * when it is bound. */
static bool is_address(const char *s, size_t len, bool bracketed)
{
    if (bracketed)
        return len > 1 && memchr(s, ':', len) != NULL;
    return len > 0 && strspn(s, "0123456789.") >= len &&
           memchr(s, '.', len) != NULL;
}

/* "8080", ":8080", "localhost:8080", "10.0.0.1:8080", "[::1]:8080", "*:8080".
 * Finds the address, without brackets, and the port. */
static bool split(const char *s, const char **addr, size_t *len,
                  const char **port)
{
    const char *colon = strrchr(s, ':'), *end;

    *addr = s;
    *len = 0;
    *port = s;
    if (!colon)
        return true;
    *port = colon + 1;
    *len = (size_t)(colon - s);
    if (s[0] == '[') {
        end = strchr(s, ']');
        *addr = s + 1;
        *len = end ? (size_t)(end - s) - 1 : 0;
        return end && end + 1 == colon && is_address(*addr, *len, true);
    }
    if (*len == 9 && memcmp(s, "localhost", 9) == 0)
        *len = 0; /* Whatever the hosts file says. */
    return *len == 0 || (*len == 1 && s[0] == '*') ||
           is_address(s, *len, false);
}

static int listen_read(const struct opt_value *v, struct options *o,
                       struct err *e)
{
    const char *addr, *port;
    uint64_t n = 0;
    size_t len;

    if (!split(v->text, &addr, &len, &port) || len >= sizeof o->http_addr)
        return opt_fault(v, e, "use PORT (on loopback), ADDR:PORT, "
                         "[IPv6]:PORT or *:PORT, with an address, not a name");
    if (!opt_read_uint(port, strlen(port), 1, 65535, &n))
        return opt_fault(v, e, "a port is a number from 1 to 65535");
    memcpy(o->http_addr, addr, len);
    o->http_addr[len] = '\0';
    o->http_port = (unsigned)n;
    return 0;
}

static void listen_print(const struct opt_row *row, const struct options *o,
                         struct text *t)
{
    (void)row;
    if (o->http_port == 0)
        return;
    text_add(t, strchr(o->http_addr, ':') ? "[%s]:%u" : "%s:%u", o->http_addr,
             o->http_port);
}

const struct opt_type opt_type_listen = {
    .name = "address", .arg = "[ADDR:]PORT", .read = listen_read,
    .print = listen_print};
