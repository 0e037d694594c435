package runner

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Command is a command line with placeholders, parsed.
type Command struct {
	study string
	args  []template
	env   map[string]string // parameter → name of its variable
}

// template is one argument, which has literal text and placeholders in turn.
type template []piece

type piece struct {
	text        string
	placeholder bool
}

// The placeholders that are not parameters. A parameter of the same name wins.
const (
	placeTrial = "trial"
	placeEpoch = "epoch"
	placeStudy = "study"
	placeArgs  = "args"
)

// ParseCommand reads a command for the trials of a study in a space. It refuses
// placeholders that are neither parameters nor known otherwise.
func ParseCommand(studyName string, sp *space.Space, args []string) (*Command, error) {
	c := &Command{study: studyName}
	for i, arg := range args {
		t, err := parseTemplate(arg)
		if err != nil {
			return nil, err
		}
		program := interpreter(args[:i])
		for _, p := range t {
			if err := cmp.Or(checkPlaceholder(sp, p, t.alone() != ""), checkCode(sp, p, program)); err != nil {
				return nil, fmt.Errorf("%.80q: %w", arg, err)
			}
		}
		c.args = append(c.args, t)
	}
	var err error
	c.env, err = variables(sp)
	return c, err
}

func parseTemplate(arg string) (template, error) {
	var t template
	var text strings.Builder
	for i := 0; i < len(arg); i++ {
		switch b := arg[i]; {
		case b != '{' && b != '}':
			text.WriteByte(b)
		case i+1 < len(arg) && arg[i+1] == b:
			text.WriteByte(b)
			i++
		case b == '}':
			return nil, fmt.Errorf("%.80q: there is a } without a {; write }} for the brace itself", arg)
		default:
			end := strings.IndexByte(arg[i:], '}')
			if end < 0 {
				return nil, fmt.Errorf("%.80q: there is a { without a }; write {{ for the brace itself", arg)
			}
			t = append(t, piece{text: text.String()}, piece{arg[i+1 : i+end], true})
			text.Reset()
			i += end
		}
	}
	return append(t, piece{text: text.String()}), nil
}

func checkPlaceholder(sp *space.Space, p piece, alone bool) error {
	if !p.placeholder {
		return nil
	}
	if _, ok := sp.Lookup(p.text); ok {
		return nil
	}
	switch p.text {
	case placeTrial, placeEpoch, placeStudy:
		return nil
	case placeArgs:
		if alone {
			return nil
		}
		return fmt.Errorf("{%s} stands for several arguments, so it must be an argument of its own", placeArgs)
	}
	var names []string
	for _, q := range sp.Parameters() {
		names = append(names, q.Name)
	}
	return fmt.Errorf("there is no parameter %q; there are %s, and trial, epoch, study, args. Write {{ and }} for braces themselves",
		p.text, strings.Join(names, ", "))
}

// checkFileNames refuses placeholders for values that lead to another folder.
func (c *Command) checkFileNames(sp *space.Space) error {
	for _, p := range c.args[0] {
		q, ok := sp.Lookup(p.text)
		if !ok || !p.placeholder {
			continue
		}
		for _, v := range q.Values {
			if text := v.String(); strings.ContainsAny(text, `/\`) || strings.Trim(text, ".") == "" {
				return fmt.Errorf("parameter %q has the value %q, and a name of a file has no / or \\ and is not of dots alone; use {trial}", q.Name, text)
			}
		}
	}
	return nil
}

var (
	interpreters = regexp.MustCompile(`^(ssh|[gmn]?awk|(ba|da|z|k|a|fi)?sh|python[0-9.]*|perl|ruby|node|php|lua|julia|R|Rscript)(\.exe)?$`)
	codeOption   = regexp.MustCompile(`^(-[a-zA-Z]*[ceEpr][a-zA-Z]*|--(eval|print|command))$`)
	valueOption  = regexp.MustCompile(`^([-+][a-zA-Z]*[oOWXF]|--rcfile|--init-file)$`)
)

// interpreter names the program that reads the argument after these as code, or is empty.
func interpreter(before []string) string {
	for i, arg := range before {
		if name := filepath.Base(arg); interpreters.MatchString(name) && codeFollows(name, before[i+1:]) {
			return name
		}
	}
	return ""
}

// codeFollows tells whether an interpreter reads the argument after these as code.
func codeFollows(name string, args []string) bool {
	if strings.HasPrefix(name, "ssh") {
		return true
	}
	code := strings.Contains(name, "awk")
	for i, arg := range args {
		switch {
		case i > 0 && valueOption.MatchString(args[i-1]):
		case codeOption.MatchString(arg):
			code = true
		case !strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "+"):
			return false // this was the code, or a file with it
		}
	}
	return code
}

// checkCode refuses values that could run as code.
func checkCode(sp *space.Space, p piece, program string) error {
	q, ok := sp.Lookup(p.text)
	if !ok || !p.placeholder || program == "" {
		return nil
	}
	for _, v := range q.Values {
		if text := v.String(); strings.ContainsAny(text, "$`\\\"';|&<>(){}\n") {
			return fmt.Errorf("parameter %q has the value %q, which %s may run as code; read it from the environment variable %s instead", q.Name, text, program, Variable(q.Name))
		}
	}
	return nil
}

// variables names the environment variable of each parameter.
func variables(sp *space.Space) (map[string]string, error) {
	env, taken := make(map[string]string), make(map[string]string)
	for _, p := range sp.Parameters() {
		v := Variable(p.Name)
		if other, ok := taken[v]; ok {
			return nil, fmt.Errorf("parameters %q and %q would both be the environment variable %s; rename one", other, p.Name, v)
		}
		env[p.Name], taken[v] = v, p.Name
	}
	return env, nil
}

// CheckVariables refuses a space in which the names of two parameters make the
// same environment variable.
func CheckVariables(sp *space.Space) error {
	_, err := variables(sp)
	return err
}

// Variable is the environment variable that holds the named parameter.
func Variable(parameter string) string {
	return "TUNER_PARAM_" + strings.Map(func(r rune) rune {
		if r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return unicode.ToUpper(r)
		}
		return '_'
	}, parameter)
}

// Arguments returns the command line of a trial.
func (c *Command) Arguments(t study.Trial) []string {
	var out []string
	for _, tmpl := range c.args {
		if tmpl.alone() == placeArgs {
			if _, isParameter := c.env[placeArgs]; !isParameter {
				out = append(out, Flags(t.Config)...)
				continue
			}
		}
		text, ok := c.fill(tmpl, t)
		switch last := len(out) - 1; {
		case ok:
			out = append(out, text)
		case tmpl.alone() != "" && last > 0 && strings.HasPrefix(out[last], "-"):
			out = out[:last] // the option whose value it would have been
		}
	}
	return out
}

// alone returns the placeholder of an argument that has nothing else, or "".
func (t template) alone() string {
	if len(t) == 3 && t[0].text == "" && t[2].text == "" {
		return t[1].text
	}
	return ""
}

// fill replaces the placeholders. ok is false if a parameter is inactive.
func (c *Command) fill(tmpl template, t study.Trial) (text string, ok bool) {
	for _, p := range tmpl {
		if !p.placeholder {
			text += p.text
			continue
		}
		v, ok := t.Config.Get(p.text)
		_, isParameter := c.env[p.text]
		switch {
		case ok:
			text += v.String()
		case isParameter:
			return "", false
		case p.text == placeTrial:
			text += strconv.Itoa(t.Number)
		case p.text == placeEpoch:
			text += strconv.Itoa(t.Epoch)
		case p.text == placeStudy:
			text += c.study
		}
	}
	return text, true
}

// Flags writes a configuration as --name=value.
func Flags(c space.Config) []string {
	out := make([]string, 0, c.Len())
	for name, v := range c.All() {
		out = append(out, "--"+name+"="+v.String())
	}
	return out
}

// Environment returns the variables of a trial.
func (c *Command) Environment(t study.Trial) []string {
	env := []string{
		"TUNER_STUDY=" + c.study,
		"TUNER_TRIAL=" + strconv.Itoa(t.Number),
		"TUNER_EPOCH=" + strconv.Itoa(t.Epoch),
	}
	if text, err := t.Config.MarshalJSON(); err == nil {
		env = append(env, "TUNER_CONFIG="+string(text))
	}
	for name, v := range t.Config.All() {
		if text := v.String(); !strings.ContainsRune(text, 0) {
			env = append(env, c.env[name]+"="+text)
		}
	}
	return env
}
