// Package bo compares optimisers on problems. It measures a study's proposer against random
// search, Sobol' points and the optimisers of other projects, called peers.
//
// A [Comparison] chooses suites, problems, optimisers and seeds. Execute does the runs that
// are missing, and writes each to a file of its own in one step. Report makes tables of the
// existing files. So a comparison can be interrupted, continued, and extended by one
// optimiser at a time. The command line is bench bo.
//
// # Suites
//
//   - bbob: the 24 noiseless functions of BBOB in 2, 5, 10 and 20 dimensions,
//     instance 1 of COCO (package internal/problems/bbob).
//   - bbob-noisy: those with noise that multiplies, as in the noisy BBOB, and with
//     noise that is added.
//   - classic: Branin, Hartmann, Ackley, Levy, Rastrigin; a mixed space with
//     conditions; a design with steps and constraints.
//   - multimodal: functions with many local optima, of three instances each.
//   - generated: problems drawn from numbers, with several basins, a misleading
//     branch, outliers, rough tables, and failures beside the optimum.
//   - limits: problems whose best value lies at the limit of a metric.
//   - table: spaces of which other projects have measured every configuration, on
//     real machines with real noise and failures. A problem looks them up. Without
//     the data directory they are left out, and the result says so.
//
// The problems of each tier were chosen before there were results.
//
// # Extending it
//
// A problem is a [Problem], listed in a [Suite] of [Suites]. An optimiser is a [Contestant]
// of [Contestants]. They do not depend on each other. An optimiser sees only the space,
// values and failures.
//
// # Measures
//
// After n trials a user has the configuration x with the least measured value. Its
// normalised regret is
//
//	(f(x) − f*)/(median f − f*)
//
// with f without noise, f* its least value, and the median over uniform configurations. 0
// is best, and half of all random configurations are better than 1. With noise this measure
// is not enough. Ranks are then also given by the regret of the optimiser's recommendation
// (its own choice if it is a [Recommender]) and of the best x that it tried. Regret counts
// as at most 10 if no trial succeeded. Where a suite's regrets span orders of magnitude,
// means are of log10, of at least 1e-8.
//
//   - Ranks are among the regrets of one problem and seed, and equal ones share their
//     mean. They are averaged over seeds, then over problems. All optimisers of a row
//     are ranked on the same problems and seeds, which all of them have. An optimiser
//     with less than a third of the runs of another is left out, except in duels.
//   - A run is stuck if its regret is above the median regret of random search on the same
//     problem after as many trials.
//   - A problem is won or lost if the signed-rank test of the paired differences
//     over seeds says so at 5 %. Fewer than six seeds cannot decide it. There is no
//     correction for the number of problems. p is of the same test over the
//     problems' mean differences.
//   - The interval against random is of the mean over problems of the mean over
//     seeds. Seeds are resampled within each problem, 4,000 times.
//   - Coverage is the share of outcomes inside the interval that was predicted when the
//     trial was suggested, mean ± 1.96 standard deviations of an outcome for 95 %. All
//     successful trials with a prediction count, from the first one on.
//   - With several workers, a worker asks as soon as its trial has ended. A trial takes
//     between 1/2 and 3/2 units of time, at random, and trials count in the order in which
//     they end.
//   - Seconds of an ask are CPU time, of this process alone or as a peer's process
//     reports it. They include the model events and fits that an ask waits for. With
//     several runs at a time they are wall time, and labelled so.
//
// # Invariants
//
//   - A run follows from problem, optimiser, version and seed to the bit, except for
//     times. It does not depend on anything else in the process.
//   - Noise of a problem comes from a stream of the run's seed, the same for all
//     optimisers. A problem does not depend on the optimiser.
//   - A file is complete or does not exist.
package bo
