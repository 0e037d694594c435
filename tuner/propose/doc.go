// Package propose turns a study's history into the next configurations to try.
//
// A [Proposer] sees a [View] of the study and suggests configurations for the next trials.
// [New] makes the proposer that a study names:
//
//   - "bkb" is a budgeted kernel bandit on mixed and conditional spaces ([BKBOptions]).
//   - "sobol", also for an empty name, takes scrambled Sobol' points in order.
//   - "random" is uniform in the unit cube, that is, on each parameter's scale.
//   - "grid" visits every combination of listed values once ([GridOptions]).
//
// A Proposer with a model is a [Modeler]. bkb begins with the center and Sobol' points. Then a suggestion goes through
// two packages (docs/model.md has their mathematics and costs):
//
//	View ─► model: results ─► model event ─► posteriors
//	                                             │
//	Proposal ◄── acquire: UCB, search, choice ◄──┘
//
// A suggestion is a function of the study's spec, its seed and the trials in the View. So n
// suggestions at once equal n single ones, and a restart changes no bit. What a Proposer keeps
// is a digest of the View. The Seed of a suggestion makes its configuration again, with the
// spec and, for bkb, the log up to the position that it had seen. For random and bkb it seeds a
// stream, for sobol and grid it is the number of the point or cell, and the next one follows the
// last suggested in phase [study.PhaseStart].
//
// sobol and random skip a configuration that the study has, in favour of others with the same
// active parameters, 64 points at most. Then they repeat it, because outcomes may have noise. A
// grid ends with [ErrExhausted]. Apart from bkb a suggestion costs O(parameters + conditions),
// and the digest 40 bytes a trial.
package propose
