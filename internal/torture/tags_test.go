//go:build !planted || !linux

package torture

// buildTags are the tags of the real binary.
var buildTags []string
