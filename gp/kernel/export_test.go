package kernel

import "encoding/json"

// OnDevice reports whether products run on a device and not on the CPU.
func (o *Operator) OnDevice() bool { return o.gpu != nil }

// Precision returns the precision in which dense rows are evaluated.
func (o *Operator) Precision() Precision { return o.precision }

// Rows returns n.
func (o *Operator) Rows() int { return o.n }

// Marshal returns k's Spec as JSON.
func Marshal(k Kernel) ([]byte, error) { return json.Marshal(k.Spec()) }

// Unmarshal is the inverse of Marshal.
func Unmarshal(data []byte, resolve Resolver) (Kernel, error) {
	var spec Spec
	if err := json.Unmarshal(data, &spec); err != nil {
		return nil, err
	}
	return New(spec, resolve)
}
