# src/rendezvous/barrier_start.c
# A new pod 0 starts a smaller group while missing pods have their lease.
s/^    uint64_t until = bar_missing_until(b);$/    uint64_t until = 0;/
