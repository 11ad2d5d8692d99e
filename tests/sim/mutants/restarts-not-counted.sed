# src/rendezvous/barrier_policy.c
# A restart of the job is not counted.
/^    b->n_restarts++;$/d
