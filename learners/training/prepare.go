package training

import (
	"context"
	"fmt"
	"slices"

	"github.com/bkbtuner/bkb/learners/data"
)

// Split says how the rows of a table are divided.
type Split struct {
	// Validation and Test are shares of the rows in [0, 1). The rest is for training.
	Validation, Test float64
	Seed             uint64
}

// Table holds rows that an encoding turns into a source. Type Table of package
// learners/dataset, which reads files, implements it.
type Table interface {
	// Len returns the number of rows.
	Len() int
	// FitEncoding returns the encoding fitted to the training rows. rows are indices
	// that increase, and nil means all rows.
	FitEncoding(ctx context.Context, rows []int, o data.EncodingOptions) (*data.Encoding, error)
	// Encode returns all rows as inputs and targets.
	Encode(ctx context.Context, e *data.Encoding) (data.Source, error)
	// Weights returns the weights of the rows, above 0, or nil if all count alike.
	Weights() []float64
}

// Data is a table after split and encoding.
type Data struct {
	Encoding *data.Encoding
	// Train is never nil. Validation and Test are nil if their share is 0.
	Train, Validation, Test data.Source
	// Weights, ValidationWeights and TestWeights are the weights of their rows, or nil if
	// all rows count alike.
	Weights, ValidationWeights, TestWeights []float64

	all     data.Source
	weights []float64 // of all
	known   []int     // rows of all that train and validate
}

// Known returns the rows of Train and Validation together, in the encoding of the training rows.
func (d *Data) Known() (data.Source, error) {
	if d.Validation == nil {
		return d.Train, nil
	}
	return data.Subset(d.all, d.known)
}

// KnownWeights returns the weights of the rows of Known, or nil if all count alike.
func (d *Data) KnownWeights() []float64 {
	if d.Validation == nil {
		return d.Weights
	}
	return data.Pick(d.weights, d.known)
}

// Prepare divides the rows of a table, with classes in equal shares. A row takes its whole
// weight along, so that no copy of it is in another part. It fits an encoding to the training
// rows and applies it to all.
func Prepare(ctx context.Context, t Table, s Split, o data.EncodingOptions) (*Data, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	rows, err := s.deal(ctx, t, o)
	if err != nil {
		return nil, err
	}
	e, err := t.FitEncoding(ctx, rows[0], o)
	if err != nil {
		return nil, err
	}
	all, err := t.Encode(ctx, e)
	if err != nil {
		return nil, err
	}
	d := &Data{Encoding: e, Train: all, Weights: t.Weights()}
	if rows[0] == nil {
		return d, nil
	}
	return d, d.divide(rows)
}

// divide takes some of the training rows for training, validation and test. No rows leave a part as
// it is.
func (d *Data) divide(rows [3][]int) (err error) {
	d.all, d.weights, d.known = d.Train, d.Weights, slices.Sorted(slices.Values(slices.Concat(rows[0], rows[1])))
	for i, part := range []struct {
		to      *data.Source
		weights *[]float64
	}{{&d.Train, &d.Weights}, {&d.Validation, &d.ValidationWeights}, {&d.Test, &d.TestWeights}} {
		if rows[i] == nil {
			continue
		}
		if *part.to, err = data.Subset(d.all, rows[i]); err != nil {
			return err
		}
		*part.weights = data.Pick(d.weights, rows[i])
	}
	return nil
}

// held returns the data with a tenth of the training rows for validation.
func (d *Data) held(seed uint64) (*Data, error) {
	parts, err := data.Split(d.Train.Len(), nil, seed, 0.9, 0.1)
	if err != nil {
		return nil, err
	}
	out := *d
	return &out, out.divide([3][]int{parts[0], parts[1], nil})
}

func (s Split) validate() error {
	switch {
	case !(s.Validation >= 0 && s.Validation < 1):
		return fmt.Errorf("the share of validation rows is %v, must be in [0, 1)", s.Validation)
	case !(s.Test >= 0 && s.Test < 1):
		return fmt.Errorf("the share of test rows is %v, must be in [0, 1)", s.Test)
	case !(s.Validation+s.Test < 1):
		return fmt.Errorf("the shares of validation and test rows, %v and %v, leave none for training", s.Validation, s.Test)
	}
	return nil
}

// deal returns the rows for training, validation and test. They are nil if their share is 0,
// and all are if nothing is held out.
func (s Split) deal(ctx context.Context, t Table, o data.EncodingOptions) (rows [3][]int, err error) {
	if s.Validation == 0 && s.Test == 0 {
		return rows, nil
	}
	classes, err := classesOf(ctx, t, o)
	if err != nil {
		return rows, err
	}
	shares := [3]float64{1 - s.Validation - s.Test, s.Validation, s.Test}
	parts, err := data.Split(t.Len(), classes, s.Seed, slices.DeleteFunc(slices.Clone(shares[:]), func(x float64) bool { return x == 0 })...)
	if err != nil {
		return rows, err
	}
	for i, share := range shares {
		if share > 0 {
			rows[i], parts = parts[0], parts[1:]
		}
	}
	return rows, nil
}

// classesOf returns the class of each row, or nil if the targets are not classes.
func classesOf(ctx context.Context, t Table, o data.EncodingOptions) ([]int, error) {
	e, err := t.FitEncoding(ctx, nil, o)
	if err != nil {
		return nil, err
	}
	if e.Task != data.Classification {
		return nil, nil
	}
	all, err := t.Encode(ctx, e)
	if err != nil {
		return nil, err
	}
	y, err := data.Targets(ctx, all)
	if err != nil {
		return nil, err
	}
	return data.Classes(y, e.Outputs()), nil
}
