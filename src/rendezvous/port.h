/* port: a TCP port for the workers' own rendezvous (MASTER_PORT), and who
 * holds one that is taken. */
#ifndef RENDEZVOUS_PORT_H
#define RENDEZVOUS_PORT_H

#include "base/err.h"

#include <stdbool.h>

#define PORT_WHO_MAX 192 /* Room for what says who holds a port. */

/* Claim *port for this agent's life: it and the n - 1 after it are free, and no
 * other agent of this network namespace has claimed it (an abstract socket
 * name: nothing is bound that a worker would stumble over). A taken one is
 * ERR_RESOURCE and names its holder if it was `asked` for, else a free one is
 * put in *port, and in *ret_taken which one was taken; it is 0 where none was.
 * Holders are looked for where it fails alone: that takes time. */
int port_claim(unsigned *port, unsigned n, bool asked, unsigned *ret_taken,
               struct err *e);

/* Hold a port of 127.0.0.1 for this agent's life on which nobody can listen:
 * bound, and not listening, so that every connection is refused at once.
 * Returns it, or where there is no loopback the number 1: no connection is
 * made there, either. */
unsigned port_hold_dead(void);

/* Claim a name of this network namespace for this agent's life: "barrier" and
 * a port, say. False where another agent has it. */
bool port_claim_name(const char *what, unsigned port);

/* "pid 123 (python)" for the process that listens on `port`, or "". */
void port_holder(unsigned port, char *out, unsigned cap);

/* The same of a port that port_claim() found taken, or "another agent, pid 123
 * (agent), which reserved it for its workers" where nobody listens yet. */
void port_master_holder(unsigned port, char *out, unsigned cap);

#endif
