# src/supervise/supervisor.c
# Who ignores TERM is never killed.
/^        signal_all(s, SIGKILL);$/d
