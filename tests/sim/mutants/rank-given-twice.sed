# src/rendezvous/barrier_rank.c
# By arrival, a rank is given that another pod has.
s/^        if (p->state == PEER_UNSEEN)$/        if (p->state <= PEER_STAGING)/
