package bo

// Suites returns the suites, in the order of reports.
func Suites() []Suite {
	return []Suite{noiseless, noisy, classic, multimodal, generated, limits, tables, many}
}
