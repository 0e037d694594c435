// Package bench runs experiments: what bench/papers and bench/bo have in common.
// Package bench/products compares products of matrices with those of others.
//
// An [Experiment] is a value: a name, where it comes from, and a function that
// returns a [figure.Result] of tables and plots. papers.All lists them. The command
// line (tuner bench) chooses, runs and writes; nothing here prints. Only the command
// line imports these packages.
//
//	exp, err := papers.Find("fig5.1")
//	result, err := exp.Run(ctx, &bench.Env{Scale: bench.Quick, Seed: 1})
//	result.WriteText(os.Stdout)
//
// # Adding one
//
// Write a function func(ctx, *Env) (*figure.Result, error) in a file of
// bench/papers named after the figure and add a value to All. It takes sizes from Env.Pick(quick, standard,
// full), repeats from Env.Times, random numbers from Env.Rand, and adds rows to
// its tables as it goes. Where it consists of parts that stand on their own (data
// sets, problems), it names them in Experiment.Parts and asks Env.Wants for each.
// It calls Env.Report between pieces of work of a second or so.
//
// # Invariants
//
//   - Results other than times follow from seed, scale, repeats and parts, to the
//     bit, for any number of workers.
//   - When ctx ends, Run returns its error and beside it what is done: tables
//     with fewer rows. The same holds for any other error.
//   - What comes out is what was measured: no number of a paper is in a result
//     unless its column says so.
//
// # Times
//
// A [Stopwatch] takes wall and CPU time of the process. On a machine that does
// other things besides, CPU time is the one to compare.
package bench
