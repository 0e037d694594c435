// Package experiment runs experiments. It has the common parts of bench/papers and bench/bo.
// Package bench/products compares products of matrices with those of other libraries.
//
// An [Experiment] is a value with a name, a source, and a function that returns a
// [report.Result] of tables and plots. papers.All lists them. The command line chooses, runs
// and writes. This package prints nothing.
//
//	exp, err := papers.Find("fig5.1")
//	result, err := exp.Run(ctx, &experiment.Env{Scale: experiment.Quick, Seed: 1})
//	result.WriteText(os.Stdout, 80)
//
// # Adding an experiment
//
// Write a function func(ctx, *Env) (*report.Result, error) in a file of bench/papers named
// after the figure and add a value to All. It takes sizes from Env.Pick(quick, standard,
// full), repeats from Env.Times, random numbers from Env.Rand, and adds rows to its tables
// as it proceeds. If it consists of independent parts (data sets, problems), it names them
// in Experiment.Parts and asks Env.Wants for each. It calls Env.Report between pieces of
// work of a second or so.
//
// # Invariants
//
//   - Results other than times follow from seed, scale, repeats and parts, to the
//     bit, for any number of workers.
//   - When ctx ends, Run returns its error together with the partial result, whose
//     tables have fewer rows. The same holds for any other error.
//   - All numbers are measured. A number of a paper is in a result only if its
//     column says so.
//
// # Times
//
// A [Stopwatch] measures wall and CPU time of the process. On a machine that runs other
// programs, compare CPU times.
package experiment
