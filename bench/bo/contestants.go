package bo

import "slices"

// Contestants returns all there are, in the order of reports.
func Contestants() []Contestant { return slices.Concat(ours, baselines, peers) }
