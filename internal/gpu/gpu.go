package gpu

import (
	"errors"
	"fmt"
)

// Statistic is the number of a pair of rows that a [Profile] maps to k.
type Statistic int

// These are the statistics.
const (
	Squared   Statistic = iota // Σ (x − y)²
	Manhattan                  // Σ |x − y|
	Dot                        // Σ x·y
)

// Profile is a function of a statistic s.
type Profile int

// These are the profiles.
const (
	Decay    Profile = iota // 2^−s
	Matern12                // e^−a with a = √s
	Matern32                // (1 + a)·e^−a
	Matern52                // (1 + a + a²/3)·e^−a
	Power                   // (P0·s + P1)^Exponent
	Cosine                  // cos(2π(s + phase)), of Dot
)

// Function is k(x, y) = Factor·φ(s(x, y)).
type Function struct {
	Statistic Statistic
	Profile   Profile
	P0, P1    float64
	Exponent  int
	Factor    float64
	// Expand computes squared distances as |x|² + |y|² − 2x·y. Reach, if it is not 0, is the
	// largest |x|² for which it does. Panels with a row beyond it have direct differences.
	Expand bool
	Reach  float64
}

// Rows are n inputs of d coordinates. Row sets dst to one of them, and may run concurrently.
type Rows struct {
	N, D  int
	Row   func(dst []float64, i int)
	Phase []float64 // of Cosine, one for each row, or nil for 0
}

// Slice returns rows from ≤ i < to.
func (r Rows) Slice(from, to int) Rows {
	out := Rows{N: to - from, D: r.D, Row: func(dst []float64, i int) { r.Row(dst, from+i) }}
	if r.Phase != nil {
		out.Phase = r.Phase[from:to]
	}
	return out
}

// Problem is a kernel matrix K = K(X, Y) to be multiplied with.
type Problem struct {
	Function Function
	Single   bool // float32 instead of float64
	X, Y     Rows
	// Batches, if it is not 0, says that X is the first of so many batches of at most as
	// many rows, see Matrix.SetX. They stay on one device.
	Batches int
}

// Matrix is K on one or more devices. Vectors are row-major, with c columns. Calls take
// turns on a device.
type Matrix interface {
	// Apply sets dst = K·v, n×c.
	Apply(dst, v []float64, c int) error
	// ApplyT sets dst = Kᵀ·u, M×c.
	ApplyT(dst, u []float64, c int) error
	// Gram sets dst = KᵀK·v, M×c.
	Gram(dst, v []float64, c int) error
	// SetX replaces X, in a matrix of batches. It panics if there are more rows than at first.
	SetX(x Rows) error
	// Stored reports whether K is in memory and not computed for each product.
	Stored() bool
	// Close frees the memory on the device. A closed matrix must not be used.
	Close() error
}

// Gramian is K(X, X) in float64 on a device.
type Gramian interface {
	// Fill sets dst to K, n×n. What does not fit on the device is computed a few rows at a time.
	Fill(dst []float64) error
	// Stored reports whether K fits, which Factor needs.
	Stored() bool
	// Factor factors K with another diagonal, as NewFactor does, and sets the lower triangle
	// of l, n×n, if there is a factor. K is lost.
	Factor(l, diagonal []float64, tolerance float64, perm []int) (Factor, int, error)
	// Close frees the memory on the device that no factor has taken.
	Close() error
}

// Factor is a lower triangular or trapezoidal factor L on a device, in float64. Its first
// rows, as many as its rank, are a triangle T.
type Factor interface {
	// Solve overwrites v, with c columns, by T⁻¹v, or by T⁻ᵀv.
	Solve(v []float64, c int, trans bool) error
	// Gram factors λI + Lᵀdiag(w)L, with w for each row of L, and sets the lower triangle
	// of g, row-major of the order of the rank. It returns nil if there is no factor.
	Gram(g, w []float64, lambda float64) (Factor, error)
	// Close frees the memory on the device. A closed factor must not be used.
	Close() error
}

// Info describes a device.
type Info struct {
	Name          string // such as "cuda:0"
	Model         string
	Driver        string // version
	Capability    string // such as "9.0"
	Memory, Free  int64  // bytes
	Held          int64  // bytes of the matrices and factors of this process
	SlowerFloat64 int    // speed of float32 over that of float64
}

// Device is a GPU.
type Device interface {
	// Properties returns the Info without Memory, Free and Held. It does not wait for the device.
	Properties() Info
	Info() (Info, error)
	NewMatrix(p Problem) (Matrix, error)
	NewGramian(p Problem) (Gramian, error)
	// NewFactor factors as the function of the same name does.
	NewFactor(a []float64, n int, tolerance float64, perm []int) (Factor, int, error)
}

// Backend finds devices.
type Backend interface {
	// Count returns the number of devices. It is a [*DriverError] if there is no driver
	// or it cannot be used.
	Count() (int, error)
	// Open returns a device, the same for the same number.
	Open(number int) (Device, error)
}

// DriverError says why the driver cannot be used.
type DriverError struct {
	Reason string
	// Absent says that this machine has no driver or no device, which is not a fault.
	Absent bool
}

func (e *DriverError) Error() string { return e.Reason }

// MemoryError says that a device has too little memory.
type MemoryError struct {
	Device     string
	What       string // what the memory is for
	Need, Free int64  // bytes
}

func (e *MemoryError) Error() string {
	return fmt.Sprintf("%s has %s free, and %s needs %s", e.Device, Gigabytes(e.Free), e.What, Gigabytes(e.Need))
}

// Gigabytes is a number of bytes as text.
func Gigabytes(bytes int64) string {
	if bytes < 1e9 {
		return fmt.Sprintf("%.4g MB", float64(bytes)/1e6)
	}
	return fmt.Sprintf("%.4g GB", float64(bytes)/1e9)
}

// DeviceError is a failed call of a driver.
type DeviceError struct {
	Device string
	Call   string
	Err    error
}

func (e *DeviceError) Error() string {
	return fmt.Sprintf("%s failed in %s: %v", e.Device, e.Call, e.Err)
}

// Unwrap returns the driver's error.
func (e *DeviceError) Unwrap() error { return e.Err }

// ErrLost is wrapped by the errors of a device that can no longer be used.
var ErrLost = errors.New("the device is lost")
