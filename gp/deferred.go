package gp

import (
	"math"
	"slices"
	"sync"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// deferred holds rank-one updates that are not yet applied to some panels of arms. If
// only the arm with the largest UCB is needed, most panels never need them. Let V and w
// be those at the start of the list, and w' the current one. An arm's mean has moved by
// zᵀ(w' − w), so that by Cauchy and Schwarz
//
//	UCB ≤ max μ̃ + b·max σ̃ + D·max √(zᵀV⁻¹z),  D = ‖w' − w‖_V,
//
// with the panel's numbers at the start. There zᵀV⁻¹z = σ̃² − res, and σ̃² only shrinks. If that
// is not enough, the means m + zᵀw' of a panel cost one product. They are valid later with D the
// sum of |e|√(z_kᵀV⁻¹z_k) over the updates k since. Late updates have the bits of immediate ones.
type deferred struct {
	mu     sync.Mutex // for readers, which bring panels up to date
	list   []rankOne
	drift  []float64  // D of the first k updates
	seen   []int      // the number of updates made, for every panel
	top    []panelTop // as settle or look found them, as of update at
	at     []int
	first  []panelTop // as they were when the list began
	began  system     // L_V and w at the start
	moved  []float64  // scratch
	winner int        // the arm found last
	hot    []int      // panels that may have the best arm
}

// rankOne is an update μ̃ += e·g, σ̃² −= shrink·g², with g = zᵀh.
type rankOne struct {
	h         []float64 // padded
	e, shrink float64
}

// panelTop has the largest numbers of a panel, as stored in it.
type panelTop struct{ mean, sd, known float64 }

// forget drops the updates when arms are computed from scratch.
func (d *deferred) forget() { d.list = d.list[:0] }

// begin prepares for updates of a system with which the arms are up to date.
func (a *arms) begin(sys system) {
	d := &a.deferred
	if len(d.list) > 0 {
		return
	}
	panels := (len(a.mean) + lanes - 1) / lanes
	d.drift = append(d.drift[:0], 0)
	d.seen, d.at, d.top = make([]int, panels), make([]int, panels), make([]panelTop, panels)
	for p := range d.top {
		a.remember(p)
	}
	d.first = slices.Clone(d.top)
	d.began = system{sys.l.clone(), slices.Clone(sys.w)}
	d.moved = make([]float64, len(sys.w))
}

// later records an update. length is √(z_kᵀV⁻¹z_k).
func (a *arms) later(h []float64, e, shrink, length float64) {
	d := &a.deferred
	u := rankOne{make([]float64, a.padded), e, shrink}
	copy(u.h, h)
	d.list = append(d.list, u)
	d.drift = append(d.drift, d.drift[len(d.drift)-1]+math.Abs(e)*length)
}

// distance returns ‖w − w₀‖_V = ‖L_Vᵀ(w − w₀)‖, where w₀ is the w at the start.
func (d *deferred) distance(w []float64) float64 {
	clear(d.moved)
	for i, v := range d.began.w {
		axpy(w[i]-v, d.began.l.row(i), d.moved[:i+1])
	}
	return norm(d.moved)
}

// remember records the largest numbers of a panel.
func (a *arms) remember(p int) {
	t := panelTop{mean: math.Inf(-1)}
	for i := p * lanes; i < min((p+1)*lanes, len(a.mean)); i++ {
		v := a.variance[i]
		t.mean, t.sd, t.known = max(t.mean, a.mean[i]), max(t.sd, v), max(t.known, v-a.res[i]+knownSlack*a.prior[i])
	}
	t.sd, t.known = math.Sqrt(t.sd), math.Sqrt(t.known)
	a.deferred.top[p] = t
}

// settle makes the updates that a panel lacks.
func (a *arms) settle(p int) {
	d := &a.deferred
	from := d.seen[p]
	if from == len(d.list) {
		return
	}
	i0, i1 := p*lanes, min((p+1)*lanes, len(a.mean))
	var g [lanes]float64
	for _, u := range d.list[from:] {
		panelProducts(g[:i1-i0], u.h, a.panels(i0, i1))
		a.add(g[:i1-i0], i0, u.e, u.shrink)
	}
	d.seen[p], d.at[p] = len(d.list), len(d.list)
	a.remember(p)
}

// look records the current means of a panel, given w, padded.
func (a *arms) look(p int, w []float64) {
	d := &a.deferred
	i0, i1 := p*lanes, min((p+1)*lanes, len(a.mean))
	var g [lanes]float64
	panelProducts(g[:i1-i0], w, a.panels(i0, i1))
	most := math.Inf(-1)
	for _, v := range g[:i1-i0] {
		most = max(most, a.m0+v)
	}
	d.top[p].mean, d.at[p] = most, len(d.list)
}

// settleAll makes all updates, for all arms.
func (a *arms) settleAll(workers int) {
	d := &a.deferred
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.list) == 0 {
		return
	}
	_ = forBlocks(len(d.seen), armBlock/lanes, workers, func(p0, p1 int, _ *kernel.Scratch) error {
		for p := p0; p < p1; p++ {
			a.settle(p)
		}
		return nil
	})
	d.forget()
}

// boundSlack and knownSlack allow for rounding, of bounds and of σ̃² in units of the
// prior variance.
const (
	boundSlack = 1e-7
	knownSlack = 1e-12
)

// maxUCB returns the arm with the largest μ̃ + b·σ̃, the lowest of equals.
func (a *arms) maxUCB(b float64, w []float64, workers int) int {
	d := &a.deferred
	d.mu.Lock()
	defer d.mu.Unlock()
	arm, best := 0, math.Inf(-1)
	look := func(p int) {
		for i := p * lanes; i < min((p+1)*lanes, len(a.mean)); i++ {
			m, v := a.mean[i], a.variance[i]
			if d := best - m; d >= 0 && b*b*v < d*d*(1-1e-12) {
				continue // without taking the root
			}
			if u := m + b*math.Sqrt(v); u > best || u == best && i < arm {
				arm, best = i, u
			}
		}
	}
	if len(d.list) == 0 {
		for p := range (len(a.mean) + lanes - 1) / lanes {
			look(p)
		}
		d.winner = arm
		return arm
	}
	a.settle(d.winner / lanes)
	look(d.winner / lanes)
	copy(a.h, w)
	distance, drift := d.distance(w), d.drift[len(d.list)]
	hot := d.hot[:0]
	for p, t := range d.first {
		if t.bound(b, distance) >= best && d.top[p].bound(b, drift-d.drift[d.at[p]]) >= best {
			hot = append(hot, p)
		}
	}
	floor := best
	_ = forBlocks(len(hot), hotBlock, workers, func(i0, i1 int, _ *kernel.Scratch) error {
		for _, p := range hot[i0:i1] {
			if d.seen[p]+1 < len(d.list) {
				if a.look(p, a.h); d.top[p].bound(b, 0) < floor {
					continue
				}
			}
			a.settle(p)
		}
		return nil
	})
	for _, p := range hot {
		if d.seen[p] == len(d.list) {
			look(p)
		}
	}
	d.winner, d.hot = arm, hot
	return arm
}

// hotBlock is the number of panels of one task.
const hotBlock = 64

// bound returns the largest UCB that an arm of the panel can have after means
// have moved by d times its known standard deviation.
func (t panelTop) bound(b, d float64) float64 {
	spread := b*t.sd + d*t.known
	return t.mean + spread + boundSlack*(math.Abs(t.mean)+spread)
}
