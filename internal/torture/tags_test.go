//go:build !planted

package torture

// buildTags are those that the real binary is built with.
var buildTags []string
