package rules

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// readYAML returns the root of the only document in data, or nil after reporting an error.
func (d *decoder) readYAML(data []byte) *yaml.Node {
	if !d.checkYAML(data) {
		return nil
	}
	data, ok := d.asYAML11(data)
	if !ok {
		return nil
	}
	docs, err := documents(bytes.NewReader(data))
	switch {
	case err != nil:
		d.addSyntax(data, err)
	case len(docs) == 0:
		d.add(place{1, 1}, "", "%s", noRules)
	case len(docs) > 1 && d.isOtherFile(docs[0].Content[0]):
	case len(docs) > 1:
		d.add(placeOf(docs[1]), "", "a second document: a rule file has one")
	default:
		return docs[0].Content[0]
	}
	return nil
}

// asYAML11 returns data with another version in its %YAML directive, if it has one of 1.2 or the
// like. The parser knows the name of 1.1 only, and the values that the two read differently are
// refused in rule files anyway.
func (d *decoder) asYAML11(data []byte) (as []byte, ok bool) {
	at := yamlVersion.FindSubmatchIndex(data)
	if at == nil {
		return data, true
	}
	version, minor := string(data[at[2]:at[3]]), at[2]+len("1.")
	if !strings.HasPrefix(version, "1.") || at[3]-minor != 1 {
		d.add(placeAt(data, at[2]-len("%YAML ")), "", "is YAML %s, which is not supported: remove this line, or write %%YAML 1.2", clip(version))
		return nil, false
	}
	as = bytes.Clone(data)
	as[minor] = '1'
	return as, true
}

// yamlVersion finds the version in the directive, before which there are only other directives,
// comments and empty lines.
var yamlVersion = regexp.MustCompile(`\A(?:[ \t]*(?:[#%].*)?\r?\n)*%YAML[ \t]+(\d+\.\d+)[ \t]*(?:#.*)?\r?\n`)

// documents returns the first two documents, or fewer if there are fewer.
func documents(r io.Reader) (docs []*yaml.Node, err error) {
	defer func() {
		// The parser panics on some malformed input (mikefarah/yq#2481), and a rule file must not
		// be able to stop the program.
		if p := recover(); p != nil {
			err = fmt.Errorf("yaml: the parser failed: %v", p)
		}
	}()
	dec := yaml.NewDecoder(r)
	for len(docs) < 2 {
		var doc yaml.Node
		if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		docs = append(docs, &doc)
	}
	return docs, nil
}

// checkYAML reports characters that YAML forbids and files with so many items that parsing them
// would take a hundred times their size. Its count bounds the nodes, since each needs a line, a dash,
// a comma or an opening bracket. Comments count too.
func (d *decoder) checkYAML(data []byte) (ok bool) {
	items, last := 0, rune(0)
	for i, r := range string(data) {
		switch {
		case r == '\n' && last == '\r':
		case strings.ContainsRune("\n\r\u0085\u2028\u2029,[{?#", r), last == '-' && (r == ' ' || r == '\t'):
			items++
		case r < ' ' && r != '\t', r >= 0x7F && r < 0xA0, r == 0xFEFF, r == 0xFFFE, r == 0xFFFF:
			d.add(placeAt(data, i), "", "the control character %U is not allowed", r)
			return false
		}
		last = r
	}
	if items > maxItems {
		d.add(place{}, "", "has %d lines, commas, brackets and so on, the maximum is %d", items, maxItems)
		return false
	}
	return true
}

var (
	yamlLine     = regexp.MustCompile(`^line (\d+): `)
	unknownAlias = regexp.MustCompile(`^unknown anchor '(.*)' referenced`)
)

// addSyntax reports err, a syntax error in data. The parser has no columns: the place is the start
// of the line's text, or the tab that it stumbled over.
func (d *decoder) addSyntax(data []byte, err error) {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if strings.Contains(text, "found a tab character ") || strings.HasSuffix(text, "found character that cannot start any token") {
		if at, ok := tabReached(data); ok {
			d.add(at, "", "is not YAML: a tab, where YAML allows only spaces: replace it")
			return
		}
	}
	line := 0
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1])
		text = text[len(m[0]):]
	}
	if alias := unknownAlias.FindStringSubmatch(text); alias != nil {
		line = placeAt(data, bytes.Index(data, []byte("*"+alias[1]))).line
	}
	// A scanner error names the line at fault. A parser error names one before the construct at
	// fault, so the line that parsing reached is better.
	if line == 0 || strings.HasPrefix(text, "did not find expected ") {
		line = lineReached(data)
	}
	lines := strings.SplitAfter(string(data), "\n")
	line = min(line, len(lines))
	indent := len(lines[line-1]) - len(strings.TrimLeft(lines[line-1], " \t"))
	d.add(place{line, indent + 1}, "", "is not YAML: %s", text)
}

// lineReached returns the line at which the parser stops reading data.
func lineReached(data []byte) int {
	return 1 + bytes.Count(data[:max(reached(data)-1, 0)], []byte("\n"))
}

// tabReached returns the position of the tab at which the parser stops, or of the first of several
// in a row. The line that its error names may be an earlier one.
func tabReached(data []byte) (at place, ok bool) {
	const ahead = 4 // bytes that the parser reads ahead before it decides on a token
	read := reached(data)
	tab := bytes.LastIndexByte(data[:read], '\t')
	if tab < read-ahead || isReserved(bytes.TrimLeft(data[tab+1:], " ")) {
		return at, false
	}
	for tab > 0 && data[tab-1] == '\t' {
		tab--
	}
	return placeAt(data, tab), true
}

// isReserved reports whether text begins with a character that can't start a token either.
func isReserved(text []byte) bool { return len(text) > 0 && strings.IndexByte("@`%", text[0]) >= 0 }

// reached returns how many bytes of data the parser has read when it stops.
func reached(data []byte) int {
	r := bytes.NewReader(data)
	_, _ = documents(byteReader{r})
	return len(data) - r.Len()
}

// byteReader hands out single bytes, so that its source shows how far a reader
// came.
type byteReader struct{ *bytes.Reader }

func (b byteReader) Read(p []byte) (int, error) {
	return b.Reader.Read(p[:min(len(p), 1)])
}
