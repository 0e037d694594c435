// Package katibpb is what Katib's controller says to a suggestion service and to an early
// stopping service, generated from katib.proto.
package katibpb
