package learners

// Loss names a loss of an output f and its target y, with the residual r = y − f.
type Loss string

// These are the losses.
const (
	// SquaredLoss is r², which the mean of y given x minimises.
	SquaredLoss Loss = ""
	// HuberLoss is r²/2 for |r| ≤ δ, and δ(|r| − δ/2) beyond. Outliers weigh less than
	// in the squared loss.
	HuberLoss Loss = "huber"
	// QuantileLoss is τr for r ≥ 0, and (τ − 1)r below. The τ-quantile of y given x
	// minimises it. It is also called the pinball loss.
	QuantileLoss Loss = "quantile"
)
