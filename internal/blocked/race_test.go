//go:build race

package blocked

const raceEnabled = true
