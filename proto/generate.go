// Package proto has the wire contract, one directory for each version, and the protocol
// between Katib and its algorithms. The Go code beside each .proto file is generated.
// `go generate ./proto` generates it again, and a test fails when it is stale.
package proto

//go:generate go -C ../tools run ./protogen -grpc proto/tuner/v1/tuner.proto
//go:generate go -C ../tools run ./protogen -grpc proto/katib/katib.proto
