//go:build !race

package blocked

const raceEnabled = false
