package space_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/tuner/space"
)

// hostileSmall are short inputs that have broken YAML and JSON readers.
func hostileSmall() []string {
	return []string{
		"", " ", "\ufeff", "\x00", "\xff", "a: *b", "a: &a [*a]", "<<: {}", "? [a]: b", "!!binary x", "%YAML 1.1\n---\na: 1", "a: 1\n---\nb: 2\n",
		"{", "}", "[", "{\"a\":1,}", "{\"a\":1}{\"b\":2}", "\"\\ud800\"", "{\"a\":1e999999999}", "- - - - - -", "a: !<tag:x,2002:y> z", "a: |\n b\n", "0: {type: int}",
		"#\n- _\n-{", "0: [:!00 \xef", "[[]]: 1", "a: 'b", "\u0085", "a:\u2028b", "parameters: {p: {type: int, low: 1, high: 2, when: {p: 1}}}",
		"parameters: {? a : {type: constant, value: 1}}", "parameters: {a: {type: constant, value: 1}, : 2}",
	}
}

// hostileLarge are inputs at the size limit that cost naive readers most.
func hostileLarge() map[string]string {
	const n = space.MaxFileBytes
	fill := func(s string) string { return strings.Repeat(s, n/len(s)) }
	bomb := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := 1; i < 30; i++ {
		bomb += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	return map[string]string{
		"brackets": fill("["), "braces": fill("{"), "closed brackets": strings.Repeat("[", n/2) + strings.Repeat("]", n/2), "json objects": fill(`{"a":`),
		"dashes": fill("- "), "question marks": fill("? "), "colons": fill("a: "), "block nesting": nested(400), "alias bomb": bomb,
		"commas": "[" + fill("1,")[:n-4] + "1]", "yaml items": fill("- 1\n"), "many keys": numbered(n), "newlines": fill("\n"), "comments": fill("# c\n"), "comment between": "a:\n" + fill(" #\n  - 1\n"),
		"long number": "parameters: {a: {type: constant, value: " + strings.Repeat("9", n-60) + "}}", "long exponent": `{"a":{"type":"float","low":1e` + strings.Repeat("9", n-60) + `}}`,
		"long text": "parameters: {a: {type: constant, value: \"" + strings.Repeat("x", n-60) + "\"}}", "long key": "\"" + strings.Repeat("k", n-10) + "\": 1", "spaces": fill(" ") + "", "tabs": fill("\t"),
		"quotes": fill("\""), "escapes": "\"" + strings.Repeat(`\u0041`, (n-2)/6) + "\"", "block text": "a: |\n" + fill(" x\n"), "anchors": fill("&a "), "tags": fill("! "), "percent": fill("%a b\n"), "documents": fill("---\n"),
		"json strings": `["` + strings.Repeat(`","`, n/3-2) + `"]`, "twin keys": "{" + strings.TrimSuffix(strings.Repeat(`"a":0,"A":0,`, n/12-1), ",") + "}",
		"yaml list at the limit": fillTo("- 1\n", 2), "yaml flow at the limit": "[" + fillTo("a,", 1) + "a]", "yaml flow mapping at the limit": "{" + fillTo("a,", 1) + "a}", "yaml mapping at the limit": fillTo("a: b\n", 2),
		"yaml questions at the limit": "{" + fillTo("? a,", 2) + "}", "yaml pairs at the limit": "[" + fillTo("a: ,", 2) + "a]", "yaml comments at the limit": fillTo("- 1 # c\n", 2), "yaml colons at the limit": "[" + fillTo(":,", 2) + "a]",
		"bad parameters": "parameters:\n" + strings.Repeat(" a: {type: flot}\n", 20000), "too large": fill("x") + "y",
	}
}

// fillTo repeats s, which has the given number of marks, almost to the limit of marks.
func fillTo(s string, marks int) string {
	return strings.Repeat(s, (space.MaxYAMLMarks-10)/marks)
}

func nested(depth int) string {
	var b strings.Builder
	for i := range depth {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

func numbered(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n-40; i++ {
		fmt.Fprintf(&b, "p%d: {type: float}\n", i)
	}
	return b.String()
}

// No input makes the reader panic or allocate more than 64 MB in total.
func TestHostileFiles(t *testing.T) {
	const limit = 64 << 20
	inputs := hostileLarge()
	for i, text := range hostileSmall() {
		inputs[fmt.Sprintf("small %d", i)] = text
	}
	for name, text := range inputs {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, _, err := space.Parse([]byte(text))
			runtime.ReadMemStats(&after)
			used := after.TotalAlloc - before.TotalAlloc
			t.Logf("%d bytes in, %.1f MB allocated", len(text), float64(used)/(1<<20))
			if used > limit {
				t.Errorf("allocated %d MB", used>>20)
			}
			if err == nil {
				if !strings.HasPrefix(name, "small") {
					t.Error("accepted")
				}
			} else if len(space.Faults(err)) == 0 {
				t.Errorf("untyped error: %.200v", err)
			} else if n := len(err.Error()); n > 100_000 {
				t.Errorf("the message has %d bytes", n)
			}
		})
	}
}
