# src/rendezvous/barrier_time.c
# A pod that does not come back ends the job, though the others are enough.
s/^    return found && n < need;$/    (void)n, (void)need;\n    return found;/
