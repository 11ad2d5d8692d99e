# src/rendezvous/barrier_past.c
# A loss of pod 0 counts once for each pod that reports it.
s/^        n++;$/        n = (n > b->zero.n ? n : b->zero.n) + 1;/
