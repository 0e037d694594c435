package sketch

import (
	"math"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/gpu"
)

// UseDevice lets Gram run on a device of the process (docs/gpu.md) for dense batches of at
// most rows, if there is one and so many batches are worth it. The map must have linear
// features or cosines. Call Close at the end.
func (o *FeatureOperator) UseDevice(rows, batches int) {
	m, ok := o.phi.(*dense)
	if !ok || m.wave == rectify || rows < 1 || batches < 1 {
		return
	}
	p := gpu.Problem{Function: gpu.Function{Statistic: gpu.Dot, Profile: gpu.Power, P0: 1, Exponent: 1, Factor: m.factor}, Batches: batches}
	unit, copies := 1.0, 1
	p.Y = gpu.Rows{N: m.Features(), D: m.Dim()}
	if m.wave != plain {
		p.Function.Profile, unit, p.Y.Phase = gpu.Cosine, 0.5/math.Pi, make([]float64, m.Features())
	}
	if m.wave == pairs {
		copies = 2
	}
	for j := range p.Y.Phase {
		switch {
		case m.wave == cosines:
			p.Y.Phase[j] = m.phase[j] * unit
		case j%2 == 1:
			p.Y.Phase[j] = -0.25 // a sine
		}
	}
	p.Y.Row = func(dst []float64, j int) {
		for c := range dst {
			dst[c] = m.wt[c*m.rows+j/copies] * unit
		}
	}
	p.X = gpu.Rows{N: rows, D: m.Dim(), Row: func(dst []float64, _ int) { clear(dst) }}
	device, err := gpu.NewMatrix(p)
	if err != nil {
		gpu.Warn(err)
		return
	}
	o.device, o.deviceRows = device, rows
}

// Close frees the memory of UseDevice. The operator goes on on the CPU.
func (o *FeatureOperator) Close() { o.leaveDevice(nil) }

func (o *FeatureOperator) leaveDevice(err error) {
	if o.device == nil {
		return
	}
	if err != nil {
		gpu.Warn(err)
	}
	if err := o.device.Close(); err != nil {
		gpu.Warn(err)
	}
	o.device = nil
}

// deviceBatch returns the rows of a batch for the device, or false if they are not dense.
func deviceBatch(x kernel.Rows) (gpu.Rows, bool) {
	switch x := x.(type) {
	case *kernel.Points[float64]:
		return gpu.Rows{N: x.Len(), D: x.Dim(), Row: func(dst []float64, i int) { copy(dst, x.Row(i)) }}, true
	case *kernel.Points[float32]:
		return gpu.Rows{N: x.Len(), D: x.Dim(), Row: func(dst []float64, i int) {
			for c, v := range x.Row(i) {
				dst[c] = float64(v)
			}
		}}, true
	}
	return gpu.Rows{}, false
}

// gramOnDevice is Gram. done is false if the CPU has to do all of it.
func (o *FeatureOperator) gramOnDevice(b *batch) (done bool, err error) {
	x, ok := deviceBatch(b.x)
	if o.device == nil || !ok || x.N > o.deviceRows || x.N == 0 {
		return false, nil
	}
	if err := o.fast.checkRows(b.x); err != nil {
		return true, err
	}
	t, acc := make([]float64, x.N*b.c), make([]float64, o.m*b.c)
	err = o.device.SetX(x)
	if err == nil {
		err = o.device.Apply(t, b.w, b.c)
	}
	if err != nil {
		o.leaveDevice(err)
		return false, nil
	}
	b.f(0, t)
	if err := o.device.ApplyT(acc, t, b.c); err != nil {
		o.leaveDevice(err)
		return true, o.run(&batch{x: b.x, c: b.c, t: t, dst: b.dst})
	}
	copy(b.dst, acc)
	return true, nil
}
