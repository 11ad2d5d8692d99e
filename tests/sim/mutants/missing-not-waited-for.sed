# src/rendezvous/barrier_start.c
# A new pod 0 starts a smaller group while missing pods have their lease.
s/^        now_ms >= until)$/        until > 0)/
