// Package proto holds the wire contract, one folder a version. The Go code
// beside each .proto file is generated: `go generate ./proto` makes it anew, and
// a test fails when it is stale.
package proto

//go:generate go -C .. run ./internal/protogen -grpc proto/tuner/v1/tuner.proto
