# src/rendezvous/barrier_round.c
# A pod that pod 0 gives up is not told, and takes pod 0 for dead.
/^static void dismiss/,/^}/s/^        bar_send_stop(b, now_ms, p, b->round, why, 0, "");$/        (void)why;/
