# src/rendezvous/barrier_round.c
# The first loss of a pod costs a restart.
/^static void count_loss/,/^}/s/p->n_losses > 0 &&/p->n_losses > 0 ||/
