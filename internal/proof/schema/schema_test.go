package schema

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/rules"
)

func TestMain(m *testing.M) { books.Main(m) }

// compiled returns the schema, ready to validate.
func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(rules.Schema()))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource(rules.SchemaURL, doc))
	s, err := c.Compile(rules.SchemaURL)
	require.NoError(t, err)
	return s
}

// instance parses a document for the validator.
func instance(t *testing.T, text []byte) any {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err, "%s", text)
	return doc
}

// fromYAML does the same for YAML. Not every YAML document is valid JSON.
func fromYAML(t *testing.T, text []byte) (doc any, err error) {
	t.Helper()
	var any any
	if err := yaml.Unmarshal(text, &any); err != nil {
		return nil, err
	}
	written, err := json.Marshal(any)
	if err != nil {
		return nil, err
	}
	return instance(t, written), nil
}

// The schema is itself valid.
func TestIsASchema(t *testing.T) {
	meta, err := jsonschema.NewCompiler().Compile("http://json-schema.org/draft-07/schema#")
	require.NoError(t, err)
	require.NoError(t, meta.Validate(instance(t, rules.Schema())))
}

// Every rule file that users may copy is valid, and names the schema in its first line, by an
// address that works from any location.
func TestExamples(t *testing.T) {
	schema := compiled(t)
	found := 0
	for _, folder := range []string{"examples", "adapters", "cmd/penstock/starter.yaml"} {
		require.NoError(t, filepath.WalkDir(filepath.Join("..", "..", "..", folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.Contains("*.yaml *.yml", "*"+filepath.Ext(path)) || filepath.Ext(path) == "" {
				return err
			}
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			found++
			first, _, _ := strings.Cut(string(text), "\n")
			assert.Equal(t, "# yaml-language-server: $schema="+rules.SchemaURL, first, path)
			doc, err := fromYAML(t, text)
			require.NoError(t, err, path)
			assert.NoError(t, schema.Validate(doc), path)
			_, err = rules.Parse(path, text)
			assert.NoError(t, err)
			return nil
		}))
	}
	assert.GreaterOrEqual(t, found, 3)
}

var fence = regexp.MustCompile("(?ms)^```([^\n]*)\n(.*?)^```$")

// Rule files shown on pages are valid.
func TestFilesThatPagesShow(t *testing.T) {
	schema := compiled(t)
	pages, err := filepath.Glob("../../../docs/*.md")
	require.NoError(t, err)
	families, err := filepath.Glob("../../../docs/rules/*.md")
	require.NoError(t, err)
	shown := 0
	for _, page := range append(append(pages, families...), "../../../README.md") {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, m := range fence.FindAllSubmatch(text, -1) {
			if string(m[1]) != "yaml" {
				continue
			}
			if _, err := rules.Parse("r.yaml", m[2]); err != nil { // not a rule file
				continue
			}
			shown++
			doc, err := fromYAML(t, m[2])
			require.NoError(t, err, "%s: %s", page, m[2])
			assert.NoError(t, schema.Validate(doc), "%s: %s", page, m[2])
		}
	}
	assert.Greater(t, shown, 30)
}

// Checks the files that the loader's own tests read.
func TestFilesOfTheLoadersTests(t *testing.T) {
	schema := compiled(t)
	for _, path := range []string{"../../../rules/testdata/set.yaml", "../../../rules/testdata/dialects/native.yaml"} {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		doc, err := fromYAML(t, text)
		require.NoError(t, err)
		assert.NoError(t, schema.Validate(doc), path)
	}
}

// The schema doesn't describe Sentinel's files; such a file must declare its dialect.
func TestDialects(t *testing.T) {
	schema := compiled(t)
	for text, valid := range map[string]bool{
		`{"dialect": "native", "flow": []}`:                        true,
		`{"dialect": "detect", "flow": []}`:                        true,
		`{"dialect": "sentinel-go", "flow-rules": [{"count": 1}]}`: true,
		`{"dialect": "sentinel", "flow": []}`:                      false,
		`{"dialect": 1, "flow": []}`:                               false,
		`{"dialect": "native"}`:                                    false,
		`{}`:                                                       false,
		`[]`:                                                       true,
		`[{}]`:                                                     false,
		`{"flow": {}}`:                                             false,
		`{"flow": null}`:                                           false,
	} {
		err := schema.Validate(instance(t, []byte(text)))
		assert.Equal(t, valid, err == nil, "%s: %v", text, err)
		if !strings.Contains(text, "sentinel-go") {
			_, err = rules.Parse("r.json", []byte(text))
			assert.Equal(t, valid, err == nil, "%s: %v", text, err)
		}
	}
}
