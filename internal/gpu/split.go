package gpu

import (
	"errors"
	"slices"
	"sync"
)

// unit is the number of rows of X that stay together, so that the bits of Kv do not depend
// on the number of devices.
const unit = 128

// Wanted reports whether NewMatrix would use a device for p. It reads the sizes of p only.
func Wanted(p Problem) bool { return len(problemDevices(p)) > 0 }

// problemDevices returns the devices for p, none if it belongs on the CPU.
func problemDevices(p Problem) []Device {
	if p.X.N == 0 || p.Y.N == 0 || p.Y.D == 0 {
		return nil
	}
	work := float64(p.X.N) * float64(p.Y.N) * float64(2*p.Y.D+10)
	if p.Batches > 0 {
		if work < leastBatch {
			work = 0
		}
		work *= float64(p.Batches)
	}
	devices := devices(work, p.Single)
	if p.Batches > 0 && len(devices) > 1 {
		devices = devices[:1]
	}
	return devices[:min(len(devices), units(p))]
}

func units(p Problem) int { return (p.X.N + unit - 1) / unit }

// NewMatrix returns K on the chosen devices. It returns nil if the problem belongs on the CPU.
func NewMatrix(p Problem) (Matrix, error) {
	devices, units := problemDevices(p), units(p)
	switch len(devices) {
	case 0:
		return nil, nil
	case 1:
		return devices[0].NewMatrix(p)
	}
	s := &split{n: p.X.N, m: p.Y.N}
	for i, d := range devices {
		from, to := units*i/len(devices)*unit, min(units*(i+1)/len(devices)*unit, p.X.N)
		part := p
		part.X = p.X.Slice(from, to)
		m, err := d.NewMatrix(part)
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		s.parts, s.from = append(s.parts, m), append(s.from, from)
	}
	s.from = append(s.from, p.X.N)
	return s, nil
}

// NewGramian returns K(X, X) on the first of the chosen devices, which has the factors too. It
// returns nil if the problem belongs on the CPU.
func NewGramian(p Problem) (Gramian, error) {
	devices := problemDevices(p)
	if len(devices) == 0 {
		return nil, nil
	}
	return devices[0].NewGramian(p)
}

// split is a matrix by rows on several devices.
type split struct {
	n, m  int
	parts []Matrix
	from  []int // first rows, and n
}

// each runs f for all parts at once.
func (s *split) each(f func(i int, m Matrix) error) error {
	errs := make([]error, len(s.parts))
	var group sync.WaitGroup
	for i, m := range s.parts {
		group.Go(func() { errs[i] = f(i, m) })
	}
	group.Wait()
	return errors.Join(errs...)
}

func (s *split) Apply(dst, v []float64, c int) error {
	return s.each(func(i int, m Matrix) error { return m.Apply(dst[s.from[i]*c:s.from[i+1]*c], v, c) })
}

func (s *split) ApplyT(dst, u []float64, c int) error {
	return s.sum(dst, func(part []float64, i int, m Matrix) error {
		return m.ApplyT(part, u[s.from[i]*c:s.from[i+1]*c], c)
	})
}

func (s *split) Gram(dst, v []float64, c int) error {
	return s.sum(dst, func(part []float64, _ int, m Matrix) error { return m.Gram(part, v, c) })
}

// sum adds what f sets for each part, in the order of the devices.
func (s *split) sum(dst []float64, f func(part []float64, i int, m Matrix) error) error {
	parts := make([][]float64, len(s.parts))
	err := s.each(func(i int, m Matrix) error {
		parts[i] = make([]float64, len(dst))
		return f(parts[i], i, m)
	})
	if err != nil {
		return err
	}
	copy(dst, parts[0])
	for _, part := range parts[1:] {
		for j, v := range part {
			dst[j] += v
		}
	}
	return nil
}

func (s *split) SetX(Rows) error { panic("gpu: precondition: batches are on one device") }

func (s *split) Stored() bool {
	return !slices.ContainsFunc(s.parts, func(m Matrix) bool { return !m.Stored() })
}

func (s *split) Close() error {
	return s.each(func(_ int, m Matrix) error { return m.Close() })
}
