/* offline: see offline.h. */
#include "agent/offline.h"

#include "base/text.h"

#include <string.h>

#define NAME_SPACE 512 /* A host's name and a domain. */

static bool has_entry(const char *list, const char *s, size_t len)
{
    while (*list) {
        size_t n = strcspn(list, ",");

        if (n == len && memcmp(list, s, len) == 0)
            return true;
        list += n + (list[n] == ',');
    }
    return false;
}

static bool add_entry(struct text *t, const char *s, size_t len)
{
    if (len == 0 || has_entry(t->at, s, len))
        return true;
    if (t->len + len + 2 > t->cap)
        return false;
    text_add(t, "%s%.*s", t->len ? "," : "", (int)len, s);
    return true;
}

static bool is_address6(const char *s, size_t len)
{
    const char *colon = memchr(s, ':', len);

    return colon && memchr(colon + 1, ':', len - (size_t)(colon + 1 - s));
}

static bool is_name(const char *s, size_t len)
{
    return !is_address6(s, len) &&
           strspn(s, "0123456789.") < len;
}

/* curl takes "::1" for [::1], Python's urllib does not. */
static bool add_host(struct text *t, const char *s, size_t len)
{
    char both[NAME_SPACE];
    bool ok = add_entry(t, s, len);

    if (*s == '[' || len + 3 > sizeof both || !is_address6(s, len) ||
        memchr(s, '/', len))
        return ok;
    both[0] = '[';
    memcpy(both + 1, s, len);
    both[len + 1] = ']';
    return add_entry(t, both, len + 2) && ok;
}

/* A pod's host name is the first label of its name in DNS. */
static bool add_pod(struct text *t, const char *s, size_t len,
                    const char *domain)
{
    char full[NAME_SPACE];
    bool ok = add_host(t, s, len);

    if (!domain || !is_name(s, len) || memchr(s, '.', len) ||
        len + strlen(domain) >= sizeof full)
        return ok;
    memcpy(full, s, len);
    memcpy(full + len, domain, strlen(domain) + 1);
    return add_entry(t, full, strlen(full)) && ok;
}

/* What follows a `stop` in an entry is not part of its host. */
static bool add_list(struct text *t, const char *list, const char *stop,
                     const char *domain)
{
    bool ok = true;

    while (list && *list) {
        size_t len = strcspn(list, ",");

        ok = add_pod(t, list, strcspn(list, stop), domain) && ok;
        list += len + (list[len] == ',');
    }
    return ok;
}

bool offline_no_proxy(const struct offline_in *in, char *out, size_t cap)
{
    static const char always[] =
        "localhost,127.0.0.1,127.0.0.0/8,::1,.svc,.cluster.local";
    const char *domain = NULL;
    struct text t;
    bool ok;

    text_init(&t, out, cap);
    if (is_name(in->master_addr, strlen(in->master_addr)))
        domain = strchr(in->master_addr, '.');
    ok = add_list(&t, always, ",", NULL);
    ok = add_list(&t, in->service_host, ",", NULL) && ok;
    ok = add_list(&t, in->master_addr, ",", NULL) && ok;
    ok = add_list(&t, in->host, ",", domain) && ok;
    ok = add_list(&t, in->allow, ",", NULL) && ok;
    ok = add_list(&t, in->addresses, ",", NULL) && ok;
    return add_list(&t, in->pods, ",*", domain) && ok;
}
