package server

import (
	"context"
	"regexp"

	"google.golang.org/grpc/metadata"
)

const traceHeader = "traceparent"

// traceParent is the form of the header traceparent of W3C Trace Context, with the trace id.
var traceParent = regexp.MustCompile(`^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}$`)

// traceOf returns the trace id that a caller sent in the metadata traceparent. It is empty if
// there is none, or if it is malformed.
func traceOf(ctx context.Context) string {
	for _, value := range metadata.ValueFromIncomingContext(ctx, traceHeader) {
		if m := traceParent.FindStringSubmatch(value); m != nil && m[1] != "00000000000000000000000000000000" {
			return m[1]
		}
	}
	return ""
}
