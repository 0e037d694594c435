package study

import "testing"

func TestMeasured(t *testing.T) {
	o := Measured("loss", 1, 3)
	m, ok := o.Metric("loss")
	if o.State != Completed || len(o.Metrics) != 1 || !ok || m.Mean() != 2 {
		t.Errorf("%v", o)
	}
}
