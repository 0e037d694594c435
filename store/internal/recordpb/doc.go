// Package recordpb is the generated code of record.proto, the schema of stored
// records. Only package store uses it.
package recordpb

//go:generate go -C ../../../tools run ./protogen -fast store/internal/recordpb/record.proto
