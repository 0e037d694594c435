package sgdrf

// Averaging says which iterates make the model.
type Averaging string

const (
	// AveragingAuto is Tail for more than 10 passes and for the quantile loss, else None.
	AveragingAuto Averaging = ""
	// None takes the last iterate.
	None Averaging = "none"
	// Tail takes the mean of the last half to three quarters of the iterates. After t steps, 2ᵏ ≤
	// t < 2ᵏ⁺¹, these are the iterates after step 2ᵏ⁻¹. At any t it forgets the start.
	Tail Averaging = "tail"
	// All takes the mean of all iterates, after Polyak and Ruppert.
	All Averaging = "all"
)

// average keeps running means of iterates.
type average struct {
	kind       Averaging
	t, restart int
	old, young mean // since 2ᵏ⁻¹ and since 2ᵏ
}

type mean struct {
	n   int
	sum []float64
}

func newAverage(kind Averaging, size int) *average {
	a := &average{kind: kind, restart: 1}
	if kind != None {
		a.old.sum = make([]float64, size)
	}
	if kind == Tail {
		a.young.sum = make([]float64, size)
	}
	return a
}

// add adds the iterate after step t = 1, 2, …
func (a *average) add(w []float64) {
	if a.kind == None {
		return
	}
	a.t++
	a.old.add(w)
	if a.kind == All {
		return
	}
	a.young.add(w)
	if a.t == a.restart { // at t = 2ᵏ, the young mean began after 2ᵏ⁻¹
		a.old, a.young = a.young, a.old
		a.young.n = 0
		a.restart *= 2
	}
}

func (m *mean) add(w []float64) {
	if m.n == 0 {
		clear(m.sum)
	}
	m.n++
	for j, v := range w {
		m.sum[j] += v
	}
}

// of sets dst to the average, where w is the last iterate.
func (a *average) of(dst, w []float64) {
	copy(dst, w)
	if a.kind == None || a.old.n == 0 {
		return
	}
	f := 1 / float64(a.old.n)
	for j, v := range a.old.sum {
		dst[j] = f * v
	}
}
