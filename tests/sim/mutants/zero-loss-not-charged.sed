# src/rendezvous/barrier_past.c
# A loss of pod 0 never costs a restart.
s/= z->n < 2 || gap_ms/= true || gap_ms/
