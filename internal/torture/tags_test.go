//go:build !planted || !linux

package torture

// buildTags are those that the real binary is built with.
var buildTags []string
