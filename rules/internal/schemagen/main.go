// Schemagen writes the JSON Schema of native rule files: the one that package rules embeds, and the
// copy that is published with the documentation. `go generate ./rules` runs it.
//
// Keys, types, names of enumerations and required fields are read off the rules' structs, as the
// loader reads them; descriptions are the comments of their fields, reworded for files. The
// ranges, and the fields that go together, are in the tables of this package; internal/proof/schema
// checks the whole against the loader.
package main

import (
	"log"
	"os"
	"path/filepath"
)

// copies are the files that hold the schema, below the root of the module.
var copies = []string{"rules/schema.json", "docs/rules.schema.json"}

func main() {
	log.SetFlags(0)
	root, err := moduleRoot()
	if err != nil {
		log.Fatal(err)
	}
	schema, err := generate(root)
	if err != nil {
		log.Fatal(err)
	}
	for _, name := range copies {
		if err := os.WriteFile(filepath.Join(root, name), schema, 0o644); err != nil {
			log.Fatal(err)
		}
	}
}

// moduleRoot returns the folder of go.mod, above the working directory.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		if _, missing := os.Stat(filepath.Join(dir, "go.mod")); missing == nil {
			return dir, nil
		}
		if filepath.Dir(dir) == dir {
			return "", os.ErrNotExist
		}
		dir = filepath.Dir(dir)
	}
	return "", err
}
