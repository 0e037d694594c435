// Package bo compares optimisers on problems: what a study's proposer is worth,
// beside random search, Sobol' points and the peers.
//
// A [Comparison] chooses suites, problems, optimisers and seeds. Execute does the
// runs that are not there yet, each a file of its own that is written whole; Report
// makes tables of the files that are there. So a comparison may be interrupted,
// go on, and grow by an optimiser at a time. The command line is tuner bench bo.
//
// # Suites
//
//   - bbob: the 24 noiseless functions of BBOB in 2, 5, 10 and 20 dimensions,
//     instance 1 of COCO (package internal/problems/bbob).
//   - bbob-noisy: those with noise that multiplies, as in the noisy BBOB, and with
//     noise that is added.
//   - classic: Branin, Hartmann, Ackley, Levy, Rastrigin; a mixed space with
//     conditions; a design with steps and constraints.
//   - table: spaces of which others have measured every configuration, on real
//     machines with real noise and failures; a problem looks them up. Where the
//     folder of data is not there they are left out, and the result says so.
//
// The problems of each tier were chosen before there were results.
//
// # Adding to it
//
// A problem is a [Problem], listed in a [Suite] of [Suites]. An optimiser is a
// [Contestant] of [Contestants]. Neither knows of the other: an optimiser sees
// the space, values and failures.
//
// # What is measured
//
// After n trials a user has the configuration x with the least measured value.
// Its normalised regret is
//
//	(f(x) − f*)/(median f − f*)
//
// f without noise, f* its least value, and the median over uniform
// configurations: 0 is best, 1 what half of all random configurations are better
// than. With noise that is not all there is to say: ranks are also given by the
// regret of what the optimiser recommends (its own choice if it is a [Recommender])
// and of the best x that it tried. Regret counts as at most 10 where nothing succeeded. Where a suite's regrets
// span orders of magnitude, means are of log10, of at least 1e-8.
//
//   - Ranks are among the regrets of one problem and seed; equal ones share their
//     mean. They are averaged over seeds, then over problems. All optimisers of a
//     row are ranked on the same problems and seeds: those that all have. So whoever
//     has less than a third of the runs that another has is left out, but for duels.
//   - A problem is won or lost if the signed-rank test of the paired differences
//     over seeds says so at 5 %; fewer than six seeds cannot. There is no
//     correction for the number of problems. p is of the same test over the
//     problems' mean differences.
//   - The interval against random is of the mean over problems of the mean over
//     seeds; seeds are drawn anew within each problem, 4,000 times.
//   - Seconds of an ask are CPU time, of the process alone or as a peer's process
//     tells; model events and fits that an ask waits for are in it. With several
//     runs at a time they are wall time, and said to be.
//
// # Invariants
//
//   - A run follows from problem, optimiser, version and seed to the bit, but for
//     times; nothing else in the process matters to it.
//   - Noise of a problem comes from a stream of the run's seed, the same for all
//     optimisers; a problem never sees who asks.
//   - A file is there whole or not at all.
package bo
