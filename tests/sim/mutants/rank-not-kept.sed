# src/rendezvous/barrier_rank.c
# A new pod 0 gives the ranks of pods that come later to new ones for good.
s/^        if (gives_way(b, p, m))$/        if (false \&\& gives_way(b, p, m))/
