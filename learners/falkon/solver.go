package falkon

import (
	"github.com/bkbtuner/bkb/internal/blocked"
	"github.com/bkbtuner/bkb/internal/gpu"
)

// solver solves triangular systems again and again, with the triangle at the top of a
// factor. The factor may also be on a device. If the device fails, the CPU solves.
type solver struct {
	l        blocked.Matrix[float64] // the triangle
	triangle *blocked.Triangle[float64]
	device   gpu.Factor // or nil
}

func newSolver(l blocked.Matrix[float64], device gpu.Factor) *solver {
	s := &solver{l: l, device: device}
	if device == nil {
		s.triangle = blocked.NewTriangle(l)
	}
	return s
}

// solve overwrites v, with c columns, by L⁻¹v, or by L⁻ᵀv.
func (s *solver) solve(workers int, trans bool, v []float64, c int) {
	if s.device != nil {
		in := append([]float64(nil), v...)
		err := s.device.Solve(v, c, trans)
		if err == nil {
			return
		}
		copy(v, in)
		s.leave(err)
	}
	if s.triangle == nil {
		s.triangle = blocked.NewTriangle(s.l)
	}
	s.triangle.Solve(workers, trans, blocked.New(s.l.Rows, c, v))
}

// leave frees the memory of the device, after an error or at the end.
func (s *solver) leave(err error) {
	if s == nil || s.device == nil {
		return
	}
	if err != nil {
		gpu.Warn(err)
	}
	if err := s.device.Close(); err != nil {
		gpu.Warn(err)
	}
	s.device = nil
}
