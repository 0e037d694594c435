package kernel

// OnDevice reports whether products run on a device and not on the CPU.
func (o *Operator) OnDevice() bool { return o.gpu != nil }
