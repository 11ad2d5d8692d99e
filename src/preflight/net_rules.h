/* net_rules: which interface NCCL and Gloo take, by their variables. Pure. */
#ifndef PREFLIGHT_NET_RULES_H
#define PREFLIGHT_NET_RULES_H

#include <stdbool.h>
#include <stddef.h>

#define NET_IF_MAX 64
#define NET_NAME_MAX 16 /* IF_NAMESIZE. */

struct net_if {
    char name[NET_NAME_MAX];
    bool is_loopback, is_up; /* In the order of the system. */
};

struct net_list {
    struct net_if at[NET_IF_MAX];
    unsigned n;
};

/* A spec of NCCL: prefixes with commas; "=" before them: whole names; "^":
 * all but these. */
bool net_matches(const char *spec, const char *name);

/* The same for NCCL_IB_HCA: "mlx5_0:1"; with 0 the port is not compared. */
bool net_hca_matches(const char *spec, const char *device, unsigned port);

/* What NCCL would meet the others by; NULL: nothing. `spec` may be NULL. */
const struct net_if *net_choice(const struct net_list *l, const char *spec);

const struct net_if *net_find(const struct net_list *l, const char *name,
                              size_t len);

/* The first word of a Gloo list, names with commas, that is no interface; its
 * length is 0 where all are. */
const char *net_unknown(const struct net_list *l, const char *list,
                        size_t *ret_len);

/* "eth0, lo" */
void net_names(const struct net_list *l, char *out, size_t cap);

#endif
