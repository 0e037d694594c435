// Package changepb is the generated code of change.proto, the schema of the stored changes
// of a study of Optuna. Only package optuna uses it.
package changepb

//go:generate go -C ../../../.. run ./internal/protogen tuner/optuna/internal/changepb/change.proto
