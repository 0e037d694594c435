package learners

import (
	"context"
	"fmt"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners/data"
)

// Check verifies that there is something to learn from. It wants at least one row and
// one target, and validation data of the same kind. It reads nothing.
func Check(train data.Source, o Options) error {
	if train == nil {
		return &DataError{"training data", "there are none"}
	}
	if err := checkSource("training data", train); err != nil {
		return err
	}
	v := o.Validation
	if v == nil {
		return nil
	}
	if err := checkSource("validation data", v); err != nil {
		return err
	}
	if v.Dim() != train.Dim() {
		return &kernel.DimensionError{What: "validation data", Got: v.Dim(), Want: train.Dim()}
	}
	if v.Outputs() != train.Outputs() {
		return &DataError{"validation data", fmt.Sprintf("%d targets in a row, the training data have %d", v.Outputs(), train.Outputs())}
	}
	return nil
}

func checkSource(what string, src data.Source) error {
	switch {
	case src.Len() < 1:
		return &DataError{what, "there is no row"}
	case src.Outputs() < 1:
		return &DataError{what, "there is no target; name a column as target"}
	}
	return nil
}

// Targets returns Y, n×c row-major. It reads src once unless src is in memory. The caller must
// not change the result. A target that is not finite is a *kernel.NonFiniteError.
func Targets(ctx context.Context, src data.Source) ([]float64, error) {
	y, err := data.Targets(ctx, src)
	if err != nil {
		return nil, err
	}
	if len(y) != src.Len()*src.Outputs() {
		return nil, &kernel.ShapeError{In: "learners", What: "y (n×c)", Got: len(y), Want: fmt.Sprintf("n·c = %d·%d", src.Len(), src.Outputs())}
	}
	return y, checkFinite("y", y, max(src.Outputs(), 1))
}

// InMemory is data.Load with a check of the targets, as in Targets.
func InMemory(ctx context.Context, src data.Source) (*data.Memory, error) {
	if _, err := Targets(ctx, src); err != nil {
		return nil, err
	}
	return data.Load(ctx, src)
}
