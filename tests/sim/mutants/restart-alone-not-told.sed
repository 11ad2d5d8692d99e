# src/rendezvous/barrier_again.c
# That a worker alone was started again is told to its pod only.
s/^        if (&b->peers\[i\] != asks)$/        if (\&b->peers[i] == NULL \&\& asks)/
