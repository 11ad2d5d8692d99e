# src/rendezvous/barrier_past.c
# Pod 0 does not tell how often it was lost.
s/^    m->past.zero_losses = b->zero.n;$/    m->past.zero_losses = 0;/
