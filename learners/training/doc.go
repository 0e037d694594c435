// Package training takes a learner by its name from a table to a model: which
// algorithms there are and what can be set (Algorithms), data split and encoded
// (Prepare), hyper-parameters as named values (Values), and errors in the field's
// measures (Evaluate).
//
//	Table ──Prepare──► Data ──Algorithm.Estimator(Values, Data)──► Estimator.Fit
//	                     │                                              │
//	                     └───────────────── Evaluate ◄── Model ◄────────┘
//
// The command line and whatever tunes the learners go through it, so that a
// hyper-parameter has one name, one default and one range.
//
// # Invariants
//
//   - What is fitted to data, encodings and length scales, sees training rows
//     only.
//   - Equal table, split and values give equal models, to the bit.
package training
