# src/rendezvous/barrier_start.c
# A new pod 0 starts a smaller group while missing pods have their lease.
s/^        b->last_zero == 0 || now_ms >= until)$/        b->last_zero == 0 || until > 0)/
