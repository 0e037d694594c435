// Package optunapb is the storage protocol of Optuna, generated from optuna.proto.
package optunapb
