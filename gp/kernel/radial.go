package kernel

// Radial is a [Kernel] on dense float64 rows whose gradient with respect to an input
// points along weighted differences,
//
//	∂k(u, v)/∂u_c = slope(u, v) · w_c · (u_c − v_c).
//
// It evaluates one input against many packed rows without allocation. A posterior needs
// that if it learns and predicts one point at a time. Discover it with [AsRadial].
type Radial interface {
	Kernel
	// SlopeWeights returns w for inputs of d coordinates. A weight is 0 where
	// the kernel has no gradient, as in coordinates that code a category.
	SlopeWeights(d int) []float64
	// FillRow sets values[j] = k(u, y_j) for the rows y_j of y, which is
	// len(values)×len(u), row-major.
	FillRow(values, u, y []float64)
	// FillSlopes also sets slopes[j] = slope(u, y_j).
	FillSlopes(values, slopes, u, y []float64)
}

// radialPart is a kernel that is Radial for only some of its parameters.
type radialPart interface{ asRadial() (Radial, bool) }

// AsRadial returns k as a [Radial] if it is one, or is made of one.
func AsRadial(k Kernel) (Radial, bool) {
	if p, ok := k.(radialPart); ok {
		return p.asRadial()
	}
	r, ok := k.(Radial)
	return r, ok
}

func (k *Base) asRadial() (Radial, bool) {
	if k.st.kind != squaredDistance {
		return nil, false
	}
	return radialBase{k}, true
}

// radialBase is a [Base] kernel of the squared distance s, with slope = 2φ'(s).
type radialBase struct{ *Base }

func (k radialBase) SlopeWeights(d int) []float64 {
	w := make([]float64, d)
	for c := range w {
		w[c] = k.st.weights[c%len(k.st.weights)]
	}
	return w
}

func (k radialBase) FillRow(values, u, y []float64) {
	k.st.fillRow(values, u, y)
	k.mapRow(values, 0, nil)
}

func (k radialBase) FillSlopes(values, slopes, u, y []float64) {
	k.st.fillRow(values, u, y)
	for j, s := range values {
		if k.phi.both != nil {
			values[j], slopes[j] = k.phi.both(s)
			continue
		}
		values[j], slopes[j] = k.phi.at(s), k.phi.slope(s)
	}
	for j := range slopes {
		slopes[j] *= 2
	}
}

func (k *Scaled) asRadial() (Radial, bool) {
	r, ok := AsRadial(k.k)
	return radialScaled{k, r}, ok
}

// radialScaled is a·k for a Radial k.
type radialScaled struct {
	*Scaled
	inner Radial
}

func (k radialScaled) SlopeWeights(d int) []float64 { return k.inner.SlopeWeights(d) }

func (k radialScaled) FillRow(values, u, y []float64) {
	k.inner.FillRow(values, u, y)
	for j := range values {
		values[j] *= k.factor
	}
}

func (k radialScaled) FillSlopes(values, slopes, u, y []float64) {
	k.inner.FillSlopes(values, slopes, u, y)
	for j := range values {
		values[j] *= k.factor
		slopes[j] *= k.factor
	}
}
