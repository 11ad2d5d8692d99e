# src/rendezvous/barrier_policy.c
# Failures of different ranks count as the same.
s/b->same.n > 0 && b->same.rank == who &&/b->same.n > 0 \&\&/
