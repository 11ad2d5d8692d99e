# src/rendezvous/barrier_challenge.c
# A newcomer gets a rank although the pod that has it answers.
/^void barrier_check_challenge/,/^}/s/rank, p->answered)/rank, false)/
