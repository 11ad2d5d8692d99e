# src/rendezvous/barrier_round.c
# A restart of the job is not counted.
/^    b->n_restarts++;$/d
