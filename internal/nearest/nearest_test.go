package nearest

import "testing"

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b        string
		limit, want int
	}{
		{"", "", 1, 0},
		{"", "abc", 9, 3},
		{"abc", "", 9, 3},
		{"kitten", "sitting", 9, 3},
		{"kitten", "sitting", 3, 3},
		{"kitten", "sitting", 2, 2},
		{"dgiits", "digits", 9, 2},
		{"abc", "abc", 0, 0},
		{"a", "abcdef", 3, 3},
	} {
		for _, pair := range [][2]string{{c.a, c.b}, {c.b, c.a}} {
			if got := Distance(pair[0], pair[1], c.limit); got != c.want {
				t.Errorf("from %q to %q, limit %d: %d, want %d", pair[0], pair[1], c.limit, got, c.want)
			}
		}
	}
}

func TestName(t *testing.T) {
	names := []string{"width", "with", "depth", "train", "trials"}
	for _, c := range []struct {
		s     string
		limit int
		want  string
	}{
		{"wdth", 3, "width"}, // the first of two at distance 1
		{"withh", 3, "with"},
		{"dept", 2, "depth"},
		{"trails", 3, "trials"}, // swapped, and train is as near by Distance
		{"rtials", 2, "trials"},
		{"trialt", 2, "trials"},
		{"tilars", 3, ""},
		{"dept", 1, ""},
		{"height", 3, ""},
	} {
		if got := Name(c.s, names, c.limit); got != c.want {
			t.Errorf("%q, limit %d: %q, want %q", c.s, c.limit, got, c.want)
		}
	}
	if got := Name("a", nil, 3); got != "" {
		t.Errorf("of no names: %q", got)
	}
}
