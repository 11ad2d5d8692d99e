# src/rendezvous/barrier_door.c
# Pod 0 challenges all with one nonce, so that a proof can be told again.
s/++b->n_nonces/1/
