package data

// These are the means and standard deviations of the features of SUSYLike before scaling.
// They are closed forms where possible, otherwise means over 3 million rows, accurate to
// 0.002.
var (
	susyMean = [18]float64{
		2, 0, 0, 1, 0, 0, 1.5, 0,
		-0.4464, 2.7118, 1.9086, 0, 1.0041, 1.2525, 1.4940, 0, 0, 0.8215,
	}
	susyScale = [18]float64{
		1.4142, 1, 1.8138, 0.8944, 1.0296, 1.8138, 1.2247, 1.8138,
		0.5954, 2.3443, 1.5321, 1.3687, 1.0040, 0.5133, 1.2726, 0.7071, 0.7071, 0.6206,
	}
)
