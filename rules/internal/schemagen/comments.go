package main

import (
	"encoding"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
)

const module = "github.com/penstock-go/penstock/"

// comments holds the comments of types, their fields and their values in the source.
type comments struct {
	root     string
	packages map[string]*pkg // by import path
}

// pkg is the source of one package.
type pkg struct {
	types  map[string]string            // comments of types
	fields map[string]map[string]string // comments of their fields
	values map[string][]value           // the constants of an enumeration, in order
}

type value struct{ name, doc string }

func newComments(root string) *comments {
	return &comments{root, make(map[string]*pkg)}
}

// in returns the source of a package of this module, or nothing for other packages.
func (c *comments) in(path string) *pkg {
	if p, ok := c.packages[path]; ok {
		return p
	}
	p := &pkg{make(map[string]string), make(map[string]map[string]string), make(map[string][]value)}
	c.packages[path] = p
	files, _ := filepath.Glob(filepath.Join(c.root, filepath.FromSlash(strings.TrimPrefix(path, module)), "*.go"))
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			continue // it doesn't build either
		}
		for _, decl := range parsed.Decls {
			if d, ok := decl.(*ast.GenDecl); ok {
				p.read(d)
			}
		}
	}
	return p
}

func (p *pkg) read(d *ast.GenDecl) {
	enum := ""
	for _, s := range d.Specs {
		switch s := s.(type) {
		case *ast.TypeSpec:
			p.types[s.Name.Name] = d.Doc.Text()
			if t, ok := s.Type.(*ast.StructType); ok {
				p.fields[s.Name.Name] = fieldDocs(t)
			}
		case *ast.ValueSpec:
			if d.Tok != token.CONST {
				continue
			}
			if t, ok := s.Type.(*ast.Ident); ok {
				enum = t.Name
			} else if len(s.Values) > 0 {
				enum = ""
			}
			if enum != "" && ast.IsExported(s.Names[0].Name) {
				doc := s.Doc.Text()
				if doc == "" {
					doc = s.Comment.Text()
				}
				p.values[enum] = append(p.values[enum], value{s.Names[0].Name, doc})
			}
		}
	}
}

// fieldDocs returns the comments of fields. A field without a comment gets the previous field's, which
// describes both.
func fieldDocs(t *ast.StructType) map[string]string {
	docs := make(map[string]string)
	last := ""
	for _, f := range t.Fields.List {
		if text := f.Doc.Text(); text != "" {
			last = text
		}
		for _, name := range f.Names {
			docs[name.Name] = last
		}
	}
	return docs
}

// of returns the comment of a field of t, worded for files.
func (c *comments) of(t reflect.Type, field reflect.StructField) string {
	return c.translate(c.in(t.PkgPath()).fields[t.Name()][field.Name], t)
}

// about returns the comment of a rule type: its first sentences, without the examples in Go.
func (c *comments) about(t, rule reflect.Type) string {
	text := c.in(t.PkgPath()).types[t.Name()]
	first, _, _ := strings.Cut(text, "\n\n")
	sentences := strings.SplitAfter(first, ". ")
	for i, s := range sentences { // the last one may lead over to an example
		if strings.HasSuffix(strings.TrimSpace(s), ":") || strings.Contains(s, "are enough") || strings.Contains(s, "is enough") {
			sentences = sentences[:i]
			break
		}
	}
	if len(sentences) == 0 {
		sentences = []string{first}
	}
	text = strings.TrimRight(c.translate(strings.Join(sentences, ""), rule), ".:") + "."
	return strings.Replace(text, t.Name(), "Each", 1)
}

// values returns the comments of the values of an enumeration, by their names in files, or nil if
// there are none.
func (c *comments) values(t reflect.Type, names []string) []string {
	docs := make(map[string]string)
	for i, v := range c.in(t.PkgPath()).values[t.Name()] {
		docs[nameOf(t, i)] = strings.TrimSpace(c.translate(v.doc, t))
	}
	all := make([]string, len(names))
	for i, name := range names {
		v := reflect.New(t)
		_ = v.Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(name)) // it is one of them
		all[i] = docs[name]
		if meant := nameOf(t, int(v.Elem().Uint())); meant != name {
			all[i] = "the same as " + meant
		}
	}
	return all
}

// nameOf returns the name in files of value i of an enumeration.
func nameOf(t reflect.Type, i int) string {
	v := reflect.New(t).Elem()
	v.SetUint(uint64(i))
	text, _ := v.Interface().(encoding.TextMarshaler).MarshalText()
	return string(text)
}

var (
	links   = regexp.MustCompile(`\[([A-Za-z.]+)\]`)
	words   = regexp.MustCompile(`\b(?:[a-z]+\.)?[A-Z][A-Za-z]*\b`)
	places  = regexp.MustCompile(`\bAt\((-?\d+)\)`)
	folding = regexp.MustCompile(`\s+`)
)

// translate rewrites a Go comment for files: fields become their keys, values their names.
func (c *comments) translate(text string, t reflect.Type) string {
	called := make(map[string]string)
	if t.Kind() == reflect.Struct {
		for field := range t.Fields() {
			called[field.Name] = keyOf(field)
			if _, enum := reflect.New(field.Type).Interface().(encoding.TextUnmarshaler); !enum {
				continue
			}
			for i, v := range c.in(field.Type.PkgPath()).values[field.Type.Name()] {
				called[v.name] = nameOf(field.Type, i)
			}
		}
	}
	text = places.ReplaceAllString(links.ReplaceAllString(text, "$1"), "$1")
	text = words.ReplaceAllStringFunc(text, func(word string) string {
		_, name, qualified := strings.Cut(word, ".")
		if !qualified {
			name = word
		}
		if key, ok := called[name]; ok && word != "api.Param" { // which is a function
			return key
		}
		return word
	})
	text = strings.ReplaceAll(text, "The zero value is", "If not written, it is")
	return strings.TrimSpace(folding.ReplaceAllString(text, " "))
}
