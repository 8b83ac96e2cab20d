package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/penstock-go/penstock/rules"
)

// errComment means that the parser would have lost or misplaced a comment.
var errComment = errors.New("was not changed: a comment would be lost. " +
	"Put each comment on a line above its key, or at the end of that line")

// formatted returns the formatted text of a file. It fails for a file that can't be loaded, isn't
// native, or would change its meaning.
func (f ruleFile) formatted() ([]byte, error) {
	switch {
	case f.err != nil:
		return nil, f.err
	case f.parsed.Dialect != rules.Native:
		return nil, fmt.Errorf("is a file of %v: convert it with penstock convert first", f.parsed.Dialect)
	}
	format := formatYAML
	if json.Valid(f.data) {
		format = formatJSON
	}
	text, err := format(f.data)
	if err == nil { // a second pass, for commas that the encoder adds before a comment
		text, err = format(text)
	}
	if err != nil {
		return nil, err
	}
	again, err := rules.ParseWith(f.name, text, rules.ParseOptions{})
	if err != nil || !reflect.DeepEqual(again.Set, f.parsed.Set) {
		return nil, errors.New("was not changed: formatting would change its meaning. Please report this, with the file")
	}
	return text, nil
}

// keyOrder is the order of the keys of rules, by family; keys of a list within a rule are under the
// family and the list, such as "hotspot.exceptions".
var keyOrder = orderOfKeys()

func orderOfKeys() map[string][]string {
	order := make(map[string][]string)
	var add func(name string, t reflect.Type)
	add = func(name string, t reflect.Type) {
		for f := range t.Fields() {
			key := keyOf(f)
			order[name] = append(order[name], key)
			if f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Struct {
				add(name+"."+key, f.Type.Elem())
			}
		}
	}
	for f := range reflect.TypeFor[rules.Set]().Fields() {
		key := keyOf(f)
		add(key, f.Type.Elem())
	}
	return order
}

// rank returns the position of a key. The alias regex has the position of match.
func rank(order []string, key string) int {
	if key == "regex" {
		key = "match"
	}
	if i := slices.Index(order, key); i >= 0 {
		return i
	}
	return len(order)
}

// arrange sorts the keys of all rules below n, and removes the styles of the author's editor. name
// is the path of n.
func arrange(n *yaml.Node, name string) {
	switch n.Kind {
	case yaml.DocumentNode:
		arrange(n.Content[0], name)
	case yaml.SequenceNode:
		for _, item := range n.Content {
			arrange(item, name)
			raise(item)
		}
	case yaml.MappingNode:
		pairs := make([][2]*yaml.Node, 0, len(n.Content)/2)
		for i := 0; i < len(n.Content); i += 2 {
			pairs = append(pairs, [2]*yaml.Node{n.Content[i], n.Content[i+1]})
			below := n.Content[i].Value
			if name != "" {
				below = name + "." + below
			}
			arrange(n.Content[i+1], below)
		}
		if order, ok := keyOrder[name]; ok {
			slices.SortStableFunc(pairs, func(a, b [2]*yaml.Node) int {
				return rank(order, a[0].Value) - rank(order, b[0].Value)
			})
		}
		n.Content = n.Content[:0]
		for _, p := range pairs {
			n.Content = append(n.Content, p[0], p[1])
		}
	}
}

// raise moves comments above the first key of an item above the item, since there is no line for them
// between the dash and the key.
func raise(item *yaml.Node) {
	if item.Kind != yaml.MappingNode || len(item.Content) == 0 || item.Style&yaml.FlowStyle != 0 {
		return
	}
	first := item.Content[0]
	for line := range strings.Lines(first.HeadComment) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, emptyMark) {
			continue
		}
		if item.HeadComment != "" {
			item.HeadComment += "\n"
		}
		item.HeadComment += line
	}
	first.HeadComment = ""
}

// emptyMark is the start of a comment that represents an empty line.
const emptyMark = "#penstock-empty-line"

// formatYAML formats a YAML file. The parser keeps comments and drops empty lines, so these pass
// through it as artificial comments.
func formatYAML(data []byte) ([]byte, error) {
	data = bytes.ReplaceAll(bytes.TrimPrefix(data, []byte("\uFEFF")), []byte("\r\n"), []byte("\n"))
	before := comments(data)
	mark := emptyMark
	for bytes.Contains(data, []byte(mark)) {
		mark += "-"
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(markEmpty(data, mark), &doc); err != nil {
		return nil, err
	}
	arrange(&doc, "")
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := errors.Join(enc.Encode(&doc), enc.Close()); err != nil {
		return nil, err
	}
	text := align(unmark(out.Bytes(), mark))
	if !slices.Equal(before, comments(text)) {
		return nil, errComment
	}
	return text, nil
}

// markEmpty replaces every run of empty lines with a comment, indented like the next line, except
// in multi-line texts.
func markEmpty(data []byte, mark string) []byte {
	within := textLines(data)
	lines := strings.Split(strings.TrimRight(string(data), "\n \t"), "\n")
	var out []string
	for i, line := range lines {
		switch {
		case strings.TrimSpace(line) != "" || within[i+1]:
			out = append(out, line)
		case len(out) > 0 && strings.TrimSpace(out[len(out)-1]) != mark:
			next := i + 1
			for strings.TrimSpace(lines[next]) == "" { // the last line isn't empty
				next++
			}
			out = append(out, lines[next][:indentOf(lines[next])]+mark)
		}
	}
	return []byte(strings.Join(out, "\n") + "\n")
}

func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// textLines returns the line numbers, starting at 1, that belong to multi-line texts.
func textLines(data []byte) map[int]bool {
	within := make(map[int]bool)
	var doc yaml.Node
	if yaml.Unmarshal(data, &doc) != nil {
		return within
	}
	var scalars []*yaml.Node
	var walk func(n *yaml.Node)
	walk = func(n *yaml.Node) {
		if n.Kind == yaml.ScalarNode {
			scalars = append(scalars, n)
		}
		for _, child := range n.Content {
			walk(child)
		}
	}
	walk(&doc)
	for i, n := range scalars {
		if !strings.Contains(n.Value, "\n") && n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 {
			continue
		}
		last := bytes.Count(data, []byte("\n")) + 2
		if i+1 < len(scalars) {
			last = scalars[i+1].Line
		}
		for line := n.Line; line < last; line++ {
			within[line] = true
		}
	}
	return within
}

// opens reports whether a line is a key whose value is on the following lines.
func opens(line string) bool {
	if at := commentAt(line); at >= 0 {
		line = strings.TrimRight(line[:at], " ")
	}
	return strings.HasSuffix(line, ":")
}

// unmark turns the comments back into empty lines, except at the beginning or end of a list or of the
// file, and never two in a row.
func unmark(text []byte, mark string) []byte {
	within := textLines(text)
	var out []string
	for i, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		if within[i+1] {
			out = append(out, line)
			continue
		}
		line = strings.TrimRight(line, " ")
		if strings.TrimSpace(line) == mark {
			line = ""
		}
		if line != "" || len(out) > 0 && out[len(out)-1] != "" && !opens(out[len(out)-1]) {
			out = append(out, line)
		}
	}
	return []byte(strings.TrimRight(strings.Join(out, "\n"), "\n") + "\n")
}

// align aligns end-of-line comments of consecutive lines.
func align(text []byte) []byte {
	lines, within := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n"), textLines(text)
	for i := 0; i < len(lines); {
		j, width := i, 0
		for ; j < len(lines) && !within[j+1]; j++ {
			at := commentAt(lines[j])
			if at <= 0 || strings.TrimSpace(lines[j][:at]) == "" {
				break
			}
			width = max(width, len([]rune(strings.TrimRight(lines[j][:at], " "))))
		}
		for k := i; k < j; k++ {
			at := commentAt(lines[k])
			code := strings.TrimRight(lines[k][:at], " ")
			lines[k] = code + strings.Repeat(" ", width-len([]rune(code))+2) + lines[k][at:]
		}
		i = max(j, i+1)
	}
	return []byte(strings.Join(lines, "\n") + "\n")
}

// commentAt returns the offset of a line's comment, or -1. It treats a line of a multi-line text
// like any other.
func commentAt(line string) int {
	quote := byte(0)
	for i := 0; i < len(line); i++ {
		switch ch := line[i]; {
		case quote == '"' && ch == '\\':
			i++
		case quote != 0:
			if ch == quote {
				quote = 0
			}
		case (ch == '"' || ch == '\'') && (i == 0 || strings.IndexByte(" [{,:", line[i-1]) >= 0):
			quote = ch
		case ch == '#' && (i == 0 || line[i-1] == ' ' || line[i-1] == '\t'):
			return i
		}
	}
	return -1
}

// comments returns the comments of a file, sorted.
func comments(data []byte) (all []string) {
	for line := range strings.Lines(string(data)) {
		line = strings.TrimRight(line, " \t\r\n")
		if at := commentAt(line); at >= 0 {
			all = append(all, line[at:])
		}
	}
	slices.Sort(all)
	return all
}

// formatJSON formats a JSON file.
func formatJSON(data []byte) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var compact bytes.Buffer
	if err := arrangeJSON(&compact, dec, ""); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, compact.Bytes(), "", "  "); err != nil {
		return nil, err
	}
	return append(out.Bytes(), '\n'), nil
}

// arrangeJSON writes the next value, with the keys of rules in order.
func arrangeJSON(out *bytes.Buffer, dec *json.Decoder, name string) error {
	token, err := dec.Token()
	if err != nil {
		return err
	}
	switch token {
	case json.Delim('['):
		out.WriteByte('[')
		for first := true; dec.More(); first = false {
			if !first {
				out.WriteByte(',')
			}
			if err := arrangeJSON(out, dec, name); err != nil {
				return err
			}
		}
		out.WriteByte(']')
		_, err = dec.Token()
		return err
	case json.Delim('{'):
		var keys []string
		values := make(map[string]string)
		for dec.More() {
			token, err := dec.Token()
			if err != nil {
				return err
			}
			key := token.(string)
			below := key
			if name != "" {
				below = name + "." + key
			}
			var value bytes.Buffer
			if err := arrangeJSON(&value, dec, below); err != nil {
				return err
			}
			keys, values[key] = append(keys, key), value.String()
		}
		if order, ok := keyOrder[name]; ok {
			slices.SortStableFunc(keys, func(a, b string) int { return rank(order, a) - rank(order, b) })
		}
		out.WriteByte('{')
		for i, key := range keys {
			if i > 0 {
				out.WriteByte(',')
			}
			if err := writeScalar(out, key); err != nil {
				return err
			}
			out.WriteString(":" + values[key])
		}
		out.WriteByte('}')
		_, err = dec.Token()
		return err
	}
	return writeScalar(out, token)
}

func writeScalar(out *bytes.Buffer, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	out.Write(bytes.TrimRight(b.Bytes(), "\n"))
	return err
}
