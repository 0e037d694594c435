package gpu

// NewFactor factors the n×n matrix a, row-major, on the first of the chosen devices. Both
// triangles of a must be set, with equal bits. It overwrites the lower triangle by L. With a perm
// of length n it pivots, as blocked.PivotedCholesky does. Without one it returns nil and a smaller
// rank if a is not positive definite. If the matrix belongs on the CPU or the device failed, done
// is false, and a and perm are unchanged.
func NewFactor(a []float64, n int, tolerance float64, perm []int) (f Factor, rank int, done bool) {
	devices := devices(float64(n)*float64(n)*float64(n)/3, false)
	if len(devices) == 0 || n == 0 {
		return nil, 0, false
	}
	f, rank, err := devices[0].NewFactor(a, n, tolerance, perm)
	if err != nil {
		Warn(err)
		return nil, 0, false
	}
	return f, rank, true
}
