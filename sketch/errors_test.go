package sketch

import "testing"

// Messages name the object and the place.
func TestErrorMessages(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{parameterError("BLESS", "Step", 0.5, "≥ 1.01"), "sketch: BLESS: Step is 0.5, want ≥ 1.01"},
		{&EmptyError{What: "source"}, "sketch: source is empty"},
		{&FactorizationError{Size: 7, Jitter: 1e-6}, "sketch: kernel matrix of 7 points is not positive definite, even with 1e-06 added to its diagonal"},
		{&FeatureError{Map: ReLU, Reason: "none"}, "sketch: relu features: none"},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
