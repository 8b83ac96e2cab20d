package rules

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLoad(t *testing.T) {
	set, err := Load("testdata/set.yaml")
	require.NoError(t, err)
	assert.Equal(t, golden, set)

	dir := t.TempDir()
	link := filepath.Join(dir, "link.json")
	target, err := filepath.Abs("testdata/set.json")
	require.NoError(t, err)
	require.NoError(t, os.Symlink(target, link))
	set, err = Load(link)
	require.NoError(t, err)
	assert.Equal(t, golden, set)
}

func TestLoadRefuses(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "rules.yaml")

	_, err := Load(path)
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = Load(dir)
	require.EqualError(t, err, dir+": is a directory, not a file")

	require.NoError(t, os.WriteFile(path, []byte("flow: 1"), 0o600))
	_, err = Load(path)
	require.EqualError(t, err, path+":1:7: flow: must be a list of rules, not 1")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	_, err = Load(path)
	require.EqualError(t, err, path+":1:1: holds no rules: write `flow: []` to remove every rule")

	require.NoError(t, os.Truncate(path, 10<<30)) // no byte of it is on the disk
	_, err = Load(path)
	require.EqualError(t, err, path+": has 10737418240 bytes or more, the maximum is 1048576")
}
