// Package propose turns a study's history into the next configurations to try.
//
// A [Proposer] sees a [View] of the study and makes suggestions for the trials
// that come next. [New] makes the one that a study names:
//
//   - "sobol", also the default: scrambled Sobol' points, which cover the space
//     more evenly than chance (package internal/sobol). One point a suggestion,
//     in order, from the first. It has no options.
//   - "random": uniform in the unit cube, that is, uniform on each parameter's
//     scale. It has no options.
//   - "grid": every combination of listed values, once. Options are those of
//     [GridOptions].
//
// A model-based proposer goes behind the same interface. What only a model can
// do (recommend a configuration, predict, diagnose, anchor the model in the log)
// will be separate interfaces that a caller asks a Proposer for.
//
// # Determinism
//
// A suggestion is a function of the study's spec, its seed and the trials in the
// View. Nothing else: no clock, no memory that a restart would lose. So n
// suggestions at once are the same as one at a time, and a study that is
// restarted after every event gets the same suggestions, bit for bit. What a
// Proposer keeps in memory is a digest of the View, made again from the next View
// when it is missing.
//
// What a suggestion was drawn with is its Seed: of random, the seed of its stream
// (package internal/stream, by study seed and trial number); of sobol and grid,
// the number of the point or cell. With the spec it is enough to make the
// configuration again. The next point is the one after the last suggested; where
// a study has suggestions from elsewhere too, it tells its own by their Phase,
// [PhaseStart].
//
// # Repetitions
//
// On a space with few configurations, independent points repeat one another. If
// the study already has a configuration, suggested or given by a user, sobol and
// random pass over it and look at the next point, 64 of them at most; where all
// are taken they repeat one, as they do when nothing new is left, for the
// objective may be noisy. A grid passes over whatever the study has, and ends:
// [ErrExhausted]. On spaces too large for repetitions (an unconditional
// continuous parameter suffices) nothing is compared.
//
// # Costs
//
// A suggestion costs O(parameters + conditions), some 0.3 µs a parameter, and a µs
// for a random stream, at any number of trials. The digest of a finite space takes some 40
// bytes a trial, and reads each trial once. A grid is compiled once; a cell is
// found from its number in O(parameters·log values), and nothing is listed but
// the values of single parameters. Conditions on several parents can make
// compiling expensive; it gives up with an error instead of taking more than
// about a second.
package propose
