# src/agent/pod_link.c
# A pod 0 that was told to stop is taken for lost.
/^static void on_stop/,/^}/s/^        p->past.round_open = false;$/        (void)of_round;/
