// Package tunerv1 is version 1 of the wire contract, generated from
// tuner.proto, which documents it.
package tunerv1
