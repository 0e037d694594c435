package wire

import (
	"regexp"
	"strings"
)

// TraceHeader is the metadata of a call with its W3C Trace Context.
const TraceHeader = "traceparent"

var traceParent = regexp.MustCompile(`^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}$`)

// TraceID returns the trace id of a traceparent. It is empty if the traceparent is malformed.
func TraceID(traceparent string) string {
	m := traceParent.FindStringSubmatch(traceparent)
	if m == nil || strings.Trim(m[1], "0") == "" {
		return ""
	}
	return m[1]
}
