// Package runner runs a command as the trials of a study: it asks a
// [Service], in the process or over the wire, runs the command with the
// configuration it got, reads the result from the output, and tells it.
//
// # The command
//
// A [Command] is a list of arguments with placeholders: {lr} is the value of
// parameter lr, {trial} the trial's number, {args} all parameters as
// --name=value; {{ and }} are braces. An argument that names a parameter which
// is inactive in a trial is left out, and so is an option right before one that
// is nothing but the placeholder. The environment has TUNER_STUDY, TUNER_TRIAL,
// TUNER_EPOCH, TUNER_LEASE (as 5m0s), TUNER_CONFIG (JSON) and a TUNER_PARAM_NAME for
// each active parameter, its name in capitals and with _ for each character that is no
// letter or digit.
//
// # What it prints
//
// Lines of stdout that name an objective count; all others are only logged.
// Words name=value (numbers as package metric reads them) and JSON objects on
// one line mean the same:
//
//	step=3 loss=0.51             an intermediate value, which a pruner may look at
//	loss=0.31 accuracy=0.9       a result; of several the last one counts
//	{"loss": 0.31}               the same, as JSON; NaN and Infinity are understood
//	infeasible=out of memory     the configuration cannot work, with the reason
//
// A command that exits with 0 and printed no result has the values of its last
// step. Exit status 66 means infeasible; 14, which tuner report --exit-code ends
// with, means that the command was told to stop: the trial is pruned. Any other
// status except 0 is a failure, whose message is the last line of stderr. If a
// command exits with 0 and printed no objective value, the run asks the service
// whether the trial should have stopped; if so it is pruned too.
//
// # Failures
//
// A trial is held under a lease, which is renewed every third of its length and at
// least every minute. The lease is short by default ([DefaultLease]), so that another
// worker soon gets the trial of a machine that died.
// When the service says that a trial should stop, or that another worker has it,
// its process group gets SIGTERM and after a time of grace SIGKILL.
//
// When the context ends, the run asks for no more trials and kills running commands.
// Their trials stay as they are: running, with this run's workers. A run with
// the same [Options.Worker] gets them back first and starts their commands anew,
// so no trial is lost or doubled. A run that resumes after the leases have ended
// gets them as retries, if the study has any.
//
// Calls that failed because the service could not be reached, or may have
// happened, are sent again with the same request id.
package runner
