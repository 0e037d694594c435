// Package propose turns a study's history into the next configurations to try.
//
// A [Proposer] sees a [View] of the study and suggests configurations for the next
// trials. [New] makes the proposer that a study names:
//
//   - "bkb" is a budgeted kernel bandit on mixed and conditional spaces, with the
//     options [BKBOptions].
//   - "sobol", also for an empty name, takes scrambled Sobol' points in order (package
//     internal/sobol). They cover the space more evenly than random points.
//   - "random" is uniform in the unit cube, that is, on each parameter's scale.
//   - "grid" visits every combination of listed values once, with [GridOptions].
//
// A caller asks a Proposer for the interfaces that only a model can have: [Anchorer],
// [Recommender], [Predictor], [Forecaster] and [Diagnoser].
//
// # BKB
//
// The first results come from Sobol' points after the center, from the queue or from elsewhere. After
// them a suggestion goes through two packages:
//
//	View ─► model: results ─► model event ─► posteriors
//	                                             │
//	Proposal ◄── acquire: UCB, search, choice ◄──┘
//
// docs/model.md has the mathematics of both, and bench/docs/experiments.md the measured
// alternatives.
//
// # Determinism
//
// A suggestion is a function of the study's spec, its seed and the trials in the View.
// It depends on no clock and on no memory that a restart would lose. So n suggestions
// at once equal n single ones, and a study that is restarted after every event gets
// the same suggestions, bit for bit. A Proposer keeps a digest of the View in memory,
// and makes it again from the next View if it is missing.
//
// The Seed of a suggestion makes its configuration again, with the spec and, for bkb,
// the log up to the position that the suggestion had seen. For random and bkb it is the
// seed of a stream (package internal/stream). For sobol and grid it is the number of
// the point or cell. The next point follows the last suggested one. In a study that also
// has suggestions from elsewhere, the Phase [study.PhaseStart] marks these points.
//
// # Repetitions
//
// On a small space independent points repeat one another. sobol and random skip a
// configuration that the study already has, in favour of others with the same active
// parameters, 64 points at most. Then they repeat it, because the objective may be noisy. So a
// branch of a conditional space with few configurations keeps its share of the trials. A grid
// skips every configuration that the study has, and ends with [ErrExhausted].
//
// # Costs
//
// docs/model.md has the costs of bkb, and bench/docs/benchmarks.md its times. A suggestion of
// the others costs O(parameters + conditions), some 0.3 µs a parameter, and a µs for a
// random stream, at any number of trials. The digest takes some 40 bytes a trial, and reads
// each trial once. A grid is compiled once (package cells).
package propose
