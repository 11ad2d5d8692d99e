/* option_commands: the commands, and the groups of options; see
 * option_table.h. */
#include "agent/option_table.h"

static const struct opt_command commands[] = {
    {"run", OPT_OWN, CMD_RUN, OPT_RUN, 1, 0, "[options] [--] command [arg ...]",
     "Run the workers of this pod; the default."},
    {"stage", OPT_OWN, CMD_STAGE, OPT_STAGE, 0, 0,
     "--dataset MANIFEST [--source DIR] --stage DIR",
     "Verify and stage a data set; print the finished folder."},
    {"verify", OPT_OWN, CMD_VERIFY, OPT_VERIFY, 1, 2,
     "MANIFEST [DIR] | --structure DIR",
     "Hash a folder against a manifest; one line for each bad file."},
    {"manifest", OPT_OWN, CMD_MANIFEST, OPT_MANIFEST, 1, 1,
     "DIR [-o FILE] [--name NAME] [--unpack] [--format json|sha256sum]",
     "Write a manifest of a folder."},
    {"status", OPT_OWN, CMD_STATUS, OPT_STATUS, 0, 0,
     "[--json] [--watch] [--socket PATH]",
     "Ask the agent that runs in this pod how it is."},
    {"env", OPT_OWN, CMD_ENV, OPT_RUN | OPT_ENV, 0, 0, "[options] [--json]",
     "Print the resolved topology, and where each value is from."},
    {"preflight", OPT_OWN, CMD_PREFLIGHT, OPT_RUN | OPT_PREFLIGHT, 0, 0,
     "[options] [--json]",
     "Check this pod; 0 pass, 10 warn, 20 retryable, 30 fatal."},
    {"fetch", OPT_PASSED, CMD_FETCH, 0, 0, 0, "...",
     "Run agent-fetch, at image build time."},
    {"allreduce", OPT_PASSED, CMD_ALLREDUCE, 0, 0, 0, "...",
     "Run agent-allreduce."},
    {"probe", OPT_PASSED, CMD_PROBE, 0, 0, 0, "...", "Run agent-probe."},
    {"torchrun", OPT_OWN, CMD_TORCHRUN, OPT_TORCHRUN, 1, 0,
     "[torchrun's options] script [arg ...]",
     "The command line of torchrun; also when called torchrun."},
};

const struct opt_command *opt_commands(unsigned *ret_n)
{
    *ret_n = sizeof commands / sizeof commands[0];
    return commands;
}

const char *opt_group_title(enum opt_group group)
{
    static const char *const titles[] = {
        "Job", "Workers", "Data", "Restart and stop", "Output", "Manifest",
        "Status", "Other"};

    return titles[group];
}
