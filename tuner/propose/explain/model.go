package explain

import (
	"context"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/tuner/propose/model"
	"github.com/bkbtuner/bkb/tuner/space"
)

// BasePoints is the number of base points of [Model].
const BasePoints = 1024

// Model returns the Sobol' indices of the mean of an objective by a model, one for each
// coordinate of the space. The mean is that of the model's targets. In the objective's unit
// a few bad configurations would decide the variance of an objective with a long tail. Coordinates are independent and uniform, and those of inactive
// parameters have no effect.
func Model(ctx context.Context, f *model.Frozen, sp *space.Space, objective int) ([]Share, error) {
	const seed = 1
	sp = sp.Free()
	return Sobol(ctx, sp.Dim(), BasePoints, seed, func(rows [][]float64) ([]float64, error) {
		x := kernel.NewPoints[float64](len(rows), sp.Dim(), nil)
		for i, u := range rows {
			copy(x.Row(i), u)
			if err := sp.Snap(x.Row(i)); err != nil {
				return nil, err
			}
		}
		return f.Targets(objective, x), nil
	})
}
