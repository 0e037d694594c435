package kernel

import (
	"fmt"
	"math"
)

// Spec describes a kernel by name and parameters. It is a plain value that can be
// stored as JSON. [New] builds an equal kernel from it. JSON keeps numbers to the bit.
//
// Built-in names are those of [Families], and scaled, which has one part.
type Spec struct {
	Name         string             `json:"name"`
	LengthScales []float64          `json:"length_scales,omitempty"`
	Params       map[string]float64 `json:"params,omitempty"`
	Parts        []Spec             `json:"parts,omitempty"`
}

// Resolver builds kernels that are not built in from a Spec with a known Name.
type Resolver func(Spec) (Kernel, error)

// maxNesting limits the depth of a Spec that New accepts.
const maxNesting = 64

// New builds the kernel that spec describes. Names that are not built in go to resolve, which may
// be nil. Its errors are [*SpecError], [*ParameterError], [*ShapeError] and those of resolve.
func New(spec Spec, resolve Resolver) (Kernel, error) {
	return build(spec, resolve, 0)
}

func build(spec Spec, resolve Resolver, depth int) (Kernel, error) {
	if depth > maxNesting {
		return nil, &SpecError{Name: spec.Name, Reason: "nested too deeply"}
	}
	if spec.Name == "scaled" {
		return buildScaled(spec, resolve, depth)
	}
	if f, ok := FamilyNamed(spec.Name); ok {
		return buildBase(f, spec)
	}
	if resolve == nil {
		return nil, &SpecError{Name: spec.Name, Reason: "unknown name and no resolver"}
	}
	return resolve(spec)
}

func buildBase(f Family, spec Spec) (Kernel, error) {
	p := params{spec: spec}
	k, err := f.build(&p, spec.LengthScales)
	if p.err != nil {
		return nil, p.err
	}
	return orNil(k, err)
}

// params reads the parameters of a Spec and keeps the first error.
type params struct {
	spec Spec
	err  error
}

func (p *params) number(name string) float64 {
	v, ok := p.spec.Params[name]
	if !ok && p.err == nil {
		p.err = &SpecError{Name: p.spec.Name, Reason: "parameter " + name + " is missing"}
	}
	return v
}

func (p *params) integer(name string) int {
	v := p.number(name)
	if (v != math.Trunc(v) || math.Abs(v) > math.MaxInt32) && p.err == nil {
		p.err = parameterError(p.spec.Name, name, v, "an integer")
		return 0
	}
	return int(v)
}

func buildScaled(spec Spec, resolve Resolver, depth int) (Kernel, error) {
	if len(spec.Parts) != 1 {
		return nil, &SpecError{Name: spec.Name, Reason: fmt.Sprintf("it has %d parts, want 1", len(spec.Parts))}
	}
	k, err := build(spec.Parts[0], resolve, depth+1)
	if err != nil {
		return nil, err
	}
	p := params{spec: spec}
	factor := p.number("factor")
	if p.err != nil {
		return nil, p.err
	}
	return orNil(NewScaled(factor, k))
}

// orNil turns a typed nil pointer beside an error into a nil Kernel.
func orNil[K Kernel](k K, err error) (Kernel, error) {
	if err != nil {
		return nil, err
	}
	return k, nil
}
