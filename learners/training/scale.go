package training

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/learners/data"
)

// scaleRows is the number of rows for the median of distances, which is within a few per cent
// of that of all.
const scaleRows = 1000

// MedianDistance returns the median Euclidean distance between two different rows, for
// up to 1000 rows of src drawn by seed. It is the usual length scale to start from. It
// is 1 where at least half of the pairs are equal, or n = 1.
func MedianDistance(ctx context.Context, src kernel.Source, seed uint64) (float64, error) {
	return medianDistance(ctx, src, data.NewCopies(nil, src.Len()), seed)
}

// medianDistance is MedianDistance of copies of the rows.
func medianDistance(ctx context.Context, src kernel.Source, copies *data.Copies, seed uint64) (float64, error) {
	n := copies.Len()
	order := stream.NewPermutation(seed, uint64(n))
	idx := make([]int, min(n, scaleRows))
	for i := range idx {
		idx[i] = copies.Row(int(order.At(uint64(i))))
	}
	slices.Sort(idx)
	rows, err := kernel.Select(ctx, src, idx)
	if err != nil {
		return 0, err
	}
	inner, err := kernel.NewLinear(1)
	if err != nil {
		return 0, err
	}
	g, err := kernel.Gramian(inner, rows)
	if err != nil {
		return 0, err
	}
	m := len(idx)
	squares := make([]float64, 0, m*(m-1)/2)
	for i := range m {
		for j := range i {
			squares = append(squares, max(g[i*m+i]+g[j*m+j]-2*g[i*m+j], 0))
		}
	}
	if len(squares) == 0 {
		return 1, nil
	}
	median := math.Sqrt(medianOf(squares))
	// Equal rows leave distances of rounding size, which are not a scale.
	if largest := math.Sqrt(slices.Max(squares)); median <= 1e-6*largest || median == 0 {
		return 1, nil
	}
	return median, nil
}

// spreadRows is the largest number of rows for the spread of targets.
const spreadRows = 100_000

// spread returns the median of |y − median y| over the first rows, times 1.4826, or 1 if
// it is 0. Medians are of each output, and the mean over outputs counts. weights are those of
// the rows, or nil.
func spread(ctx context.Context, src data.Source, weights []float64) (float64, error) {
	pairs, err := src.OpenPairs(ctx)
	if err != nil {
		return 0, err
	}
	defer pairs.Close()
	c := src.Outputs()
	columns := make([][]float64, c)
	var block *data.Block
	for left := min(src.Len(), spreadRows); left > 0 && c > 0; left -= block.X.Len() {
		if block, err = pairs.Next(ctx, min(left, scaleRows), block); err != nil {
			return 0, err
		}
		for i, y := range block.Y {
			columns[i%c] = append(columns[i%c], y)
		}
	}
	sum := 0.0
	for _, y := range columns {
		middle := weightedMedian(y, weights)
		for i, v := range y {
			y[i] = math.Abs(v - middle)
		}
		sum += weightedMedian(y, weights) / float64(c)
	}
	if !(sum > 0) {
		return 1, nil
	}
	return 1.4826 * sum, nil
}

// weightedMedian returns the smallest number of y up to which the weights have more than half
// of their sum. Without weights it sorts y.
func weightedMedian(y, weights []float64) float64 {
	if weights == nil {
		return medianOf(y)
	}
	order, half := make([]int, len(y)), 0.0
	for i := range order {
		order[i] = i
		half += weights[i] / 2
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(y[i], y[j]) })
	sum := 0.0
	for _, i := range order {
		if sum += weights[i]; sum > half {
			return y[i]
		}
	}
	return y[order[len(order)-1]]
}

// medianOf returns the median of y, which it sorts.
func medianOf(y []float64) float64 {
	slices.Sort(y)
	return y[len(y)/2]
}
