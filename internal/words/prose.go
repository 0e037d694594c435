package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// count is what the sentences of a path have.
type count struct {
	sentences, words int
	marks, odd       int    // sentences with a semicolon or colon, and with odd words
	example          string // a sentence with odd words
}

func (c *count) add(o count) {
	c.sentences += o.sentences
	c.words += o.words
	c.marks += o.marks
	c.odd += o.odd
}

func (c count) share(n int) float64 { return 100 * float64(n) / float64(max(c.sentences, 1)) }

// measure counts the sentences of the Markdown files, of the comments of each Go
// package, and of the help texts of cmd (under PACKAGE/help).
func measure(root fs.FS) (map[string]count, error) {
	counts := map[string]count{}
	add := func(path, text string) {
		c := counts[path]
		c.read(text)
		if c.sentences > 0 {
			counts[path] = c
		}
	}
	err := fs.WalkDir(root, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			if base := e.Name(); name != "." && (base == "testdata" || base == "dist" || strings.HasPrefix(base, ".")) {
				return fs.SkipDir
			}
			return nil
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		switch path.Ext(name) {
		case ".md":
			add(name, markdownProse(string(text)))
		case ".go":
			return goProse(name, text, add)
		}
		return nil
	})
	return counts, err
}

var (
	fence    = regexp.MustCompile("(?s)```.*?```")
	comment  = regexp.MustCompile(`(?s)<!--.*?-->`)
	codeSpan = regexp.MustCompile("`[^`]*`")
	link     = regexp.MustCompile(`\]\([^)]*\)`)
	address  = regexp.MustCompile(`\w+://\S*[^\s.,;:)]`)
	target   = regexp.MustCompile(`^\[[^\]]*\]:`) // of a link, in a line of its own
	item     = regexp.MustCompile(`^ {0,3}([-*]|\d+\.) `)
	// The dots in "pkg.Name" and "1.5" end no sentence, as no space follows.
	sentence = regexp.MustCompile(`[.!?]["')\]*_]*\s+`)
	mark     = regexp.MustCompile(`[;:](\s|$)`)
	odd      = regexp.MustCompile(`(?i)\b(whoever|whatever|whichever|nobody|but for|what is|what was|comes? to nothing|signs? of life|told of|hears? of|goes? on from|gone on from|gives? back the room)\b`)
)

// markdownProse takes code, tables, headings and indented blocks out of a page. Each
// item of a list is a paragraph.
func markdownProse(text string) string {
	text = comment.ReplaceAllString(fence.ReplaceAllString(text, ""), "")
	var out []string
	blank, list := true, false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.TrimSpace(line) == "":
			blank = true
			out = append(out, "")
			continue
		case strings.HasPrefix(line, "|"), strings.HasPrefix(line, "#"), target.MatchString(line), strings.HasPrefix(line, "---"):
			out = append(out, "")
		case item.MatchString(line):
			list = true
			out = append(out, "", item.ReplaceAllString(line, ""))
		case strings.HasPrefix(line, "    ") && blank && !list:
		case strings.HasPrefix(line, "    ") && len(out) > 0 && out[len(out)-1] == "": // goes on
		default:
			list = list && strings.HasPrefix(line, " ")
			out = append(out, line)
		}
		blank = false
	}
	return strings.Join(out, "\n")
}

// goProse adds the comments of a Go file, and the help texts of commands.
func goProse(name string, text []byte, add func(path, text string)) error {
	file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments)
	if err != nil {
		return err
	}
	if ast.IsGenerated(file) {
		return nil
	}
	dir := path.Dir(name)
	for _, group := range file.Comments {
		add(dir, flowing(group.Text()))
	}
	if !strings.HasPrefix(dir, "cmd/") || strings.HasSuffix(name, "_test.go") {
		return nil
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && (key.Name == "Long" || key.Name == "Short") {
				add(dir+"/help", flowing(literals(n.Value)))
			}
		case *ast.CallExpr:
			f, ok := n.Fun.(*ast.SelectorExpr)
			if ok && (strings.HasSuffix(f.Sel.Name, "Var") || strings.HasSuffix(f.Sel.Name, "VarP")) && len(n.Args) > 3 {
				add(dir+"/help", literals(n.Args[len(n.Args)-1]))
			}
		}
		return true
	})
	return nil
}

// literals joins the strings of an expression.
func literals(e ast.Expr) string {
	var b strings.Builder
	ast.Inspect(e, func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
			if s, err := strconv.Unquote(l.Value); err == nil {
				b.WriteString(s)
			}
		}
		return true
	})
	return b.String()
}

// flowing leaves out the paragraphs with indented lines, which are tables and code.
func flowing(text string) string {
	var out []string
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		if !strings.HasPrefix(paragraph, " ") && !strings.HasPrefix(paragraph, "\t") && !strings.Contains(paragraph, "\n ") && !strings.Contains(paragraph, "\n\t") {
			out = append(out, paragraph)
		}
	}
	return strings.Join(out, "\n\n")
}

// read counts the sentences of paragraphs.
func (c *count) read(text string) {
	text = codeSpan.ReplaceAllString(text, "code")
	text = address.ReplaceAllString(link.ReplaceAllString(text, "]"), "link")
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		for s := range split(strings.Join(strings.Fields(paragraph), " ")) {
			words := strings.Fields(s)
			if len(words) < 2 {
				continue
			}
			c.sentences++
			c.words += len(words)
			if mark.MatchString(s) {
				c.marks++
			}
			if odd.MatchString(s) {
				c.odd++
				c.example = s
			}
		}
	}
}

// split yields the sentences of a paragraph.
func split(paragraph string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for paragraph != "" {
			end := len(paragraph)
			if at := sentence.FindStringIndex(paragraph); at != nil {
				end = at[1]
			}
			if !yield(strings.TrimSpace(paragraph[:end])) {
				return
			}
			paragraph = paragraph[end:]
		}
	}
}
