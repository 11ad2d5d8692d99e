# src/rendezvous/barrier_start.c
# Pod 0 counts time in which it stood still as waited.
/^void bar_woken/,/^}/s/^    late = now_ms - b->wake_ms;$/    late = 0;/
