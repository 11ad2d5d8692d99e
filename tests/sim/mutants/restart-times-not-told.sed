# src/rendezvous/barrier_past.c
# A new pod 0 does not know when the restarts were.
/^static void tell_restarts/,/^}/s/^    if (b->cfg.restart_period_ms == 0)$/    if (true)/
