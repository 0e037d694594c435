// Package propose turns a study's history into the next configurations to try.
//
// A [Proposer] sees a [View] of the study and makes suggestions for the trials
// that come next. [New] makes the one that a study names:
//
//   - "bkb": budgeted kernel bandits on mixed and conditional spaces, see below.
//     Options are those of [BKBOptions].
//   - "sobol", also what an empty name means: scrambled Sobol' points, which cover the
//     space more evenly than chance (package internal/sobol). One point a suggestion,
//     in order, from the first. It has no options.
//   - "random": uniform in the unit cube, that is, uniform on each parameter's
//     scale. It has no options.
//   - "grid": every combination of listed values, once. Options are those of
//     [GridOptions].
//
// What only a model can do is in interfaces that a caller asks a Proposer for:
// [Anchorer], [Recommender], [Predictor], [Forecaster], [Diagnoser].
//
// # BKB
//
// The first results come from a Sobol' design, from the queue or from elsewhere. From
// then on a suggestion goes through two packages and back:
//
//	View ─► model: results ─► model event ─► posteriors
//	                                             │
//	Proposal ◄── acquire: UCB, search, choice ◄──┘
//
// Package [github.com/bkbtuner/bkb/tuner/propose/model] has the results and what a model
// makes of them: targets, fidelity, feasibility, cost, hyper-parameters and inducing
// points. Package [github.com/bkbtuner/bkb/tuner/propose/acquire] has what is chosen by
// it: the search, the trust region, the weighing of costs, duplicates, and the best
// trials. The documentation of each has its mathematics. What alternatives were measured
// is in docs/experiments.md.
//
// # Determinism
//
// A suggestion is a function of the study's spec, its seed and the trials in the
// View. Nothing else counts: no clock, and no memory that a restart would lose. So n
// suggestions at once are the same as one at a time, and a study that is
// restarted after every event gets the same suggestions, bit for bit. What a
// Proposer keeps in memory is a digest of the View. It is made again from the next View
// when it is missing.
//
// The Seed of a suggestion is what it was drawn with: of random and bkb, the seed of its
// stream (package internal/stream, by study seed and trial number); of sobol and grid,
// the number of the point or cell. With the spec, and for bkb the log up to the
// position that the suggestion had seen, it is enough to make the configuration again.
// The next point is the one after the last suggested. Where a study has suggestions from
// elsewhere too, it tells its own by their Phase, [PhaseStart].
//
// # Repetitions
//
// On a space with few configurations, independent points repeat one another. If
// the study already has a configuration, suggested or given by a user, sobol and
// random pass over it and look at the next point, 64 of them at most. Where all
// are taken they repeat one, as they do when nothing new is left, because the
// objective may be noisy. A grid passes over whatever the study has, and ends with
// [ErrExhausted]. On spaces too large for repetitions (an unconditional
// continuous parameter suffices) nothing is compared.
//
// # Costs
//
// With m inducing points and n results, a suggestion of bkb takes O(candidates·m(m + d)),
// a result or a pending trial O(m²), a model event a fit of 160 results and O(n m²), and
// a restart O(n m²). docs/benchmarks.md has the times of asks.
//
// A suggestion of the others costs O(parameters + conditions), some 0.3 µs a
// parameter, and a µs for a random stream, at any number of trials. The digest of a
// finite space takes some 40 bytes a trial, and reads each trial once. A grid is
// compiled once (package cells).
package propose
