// Package training takes a learner by its name from a table to a model. Algorithms
// lists the algorithms and their hyper-parameters. Prepare splits and encodes data.
// Values are hyper-parameters by name, and Evaluate computes errors in the field's
// measures.
//
//	Table ──Prepare──► Data ──Algorithm.Estimator(Values, Data)──► Estimator.Fit
//	                     │                                              │
//	                     └───────────────── Evaluate ◄── Model ◄────────┘
//
// The command line and the tuner of the learners use it, so that a hyper-parameter has
// one name, one default and one range.
//
// # Invariants
//
//   - Encodings and length scales are fitted to training rows only.
//   - Equal table, split and values give equal models, to the bit.
package training
