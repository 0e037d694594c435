// Package runner runs a command as the trials of a study. It asks a [tuner.Service], in the
// process or over the wire, runs the command with the configuration, reads the result from
// the output, and tells it.
//
// # The command
//
// A [Command] is a list of arguments with placeholders. {lr} is the value of parameter lr,
// {trial} the number of the trial, and {args} all parameters as --name=value. {{ and }}
// are braces. An argument that names an inactive parameter is left out, and so is an
// option right before one that has nothing but the placeholder. The environment has
// TUNER_STUDY, TUNER_TRIAL, TUNER_EPOCH, TUNER_LEASE (such as 5m0s), TUNER_CONFIG (JSON)
// and a TUNER_PARAM_NAME for each active parameter, with its name in capitals and _ for
// each character that is not a letter or digit.
//
// # The output
//
// Lines of stdout that name an objective count. All others are only logged. A line has
// words name=value (numbers as package metric reads them) or one JSON object, also indented,
// whose keys may be any names. Colours are ignored.
//
//	step=3 loss=0.51             an intermediate value for a pruner
//	loss=0.31 accuracy=0.9       a result, of which the last one counts
//	{"loss": 0.31}               the same as JSON, also with NaN and Infinity
//	infeasible=out of memory     the configuration cannot work, with the reason
//
// A command that exits with 0 and printed no result has the values of its last step. Exit
// code 66 means infeasible. Exit code 14, which tuner report --exit-code uses, means that
// the command was told to stop, so the trial is pruned. Any other code except 0 is a
// failure, whose message is the last line of stderr. If a command exits with 0 and printed
// no objective value, the run asks the service whether the trial should have stopped. If
// so, it is pruned too. If not, and no trial of the study has completed, the run ends.
//
// # Failures
//
// A trial is held under a lease, which is renewed every third of its length and at least every
// minute. The lease is short by default ([DefaultLease]), so that another worker soon gets the
// trial of a dead machine. When the service says that a trial should stop, or that another worker
// has it, its process group gets SIGTERM and after a time of grace SIGKILL.
//
// When the context ends, the run asks for no more trials and kills running commands. Their
// trials keep running with the workers of this run. A run with the same [Options.Worker]
// gets them back first and starts their commands again, so no trial is lost or doubled. A
// run that resumes after the leases have ended gets them as retries, if the study has any.
//
// A call is sent again with the same request id if the service was unreachable or the
// outcome is unknown.
package runner
