// Package runner runs a command as the trials of a study. It asks a [tuner.Service], in the
// process or over the wire, runs the command with the configuration, reads the result from
// the output, and tells it.
//
// # The command
//
// tuner help commands has the placeholders of a [Command], its environment, the lines of its
// output and its exit codes. An argument that names an inactive parameter is left out, and so is
// an option right before one that has nothing but the placeholder. TUNER_PARAM_NAME has the name
// of a parameter in capitals, with _ for each character that is not a letter or digit.
//
// Lines of stdout that name an objective count. All others are only logged. A line has words
// name=value (numbers as package metric reads them) or one JSON object, also indented, whose keys
// may be any names. Colours are ignored. A command that exits with 0 and printed no result has
// the values of its last step. Without these the run asks the service whether the trial should
// have stopped. If so, it is pruned. If not, and no trial of the study has completed, the run
// ends.
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
