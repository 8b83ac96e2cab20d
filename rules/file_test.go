package rules

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A file is created if there is none, replaced if it has the revision that was read, and otherwise
// left alone.
func TestFileWrite(t *testing.T) {
	dir := t.TempDir()
	f := File{Path: filepath.Join(dir, "rules.yaml")}
	ctx := t.Context()
	_, err := f.Next(ctx, "")
	require.ErrorIs(t, err, ErrNotFound)
	_, err = f.Write(ctx, []byte("flow: 1"), "")
	require.EqualError(t, err, f.Path+":1:7: flow: must be a list of rules, not 1")
	_, err = f.Write(ctx, nil, "")
	require.ErrorContains(t, err, "holds no rules")
	_, err = f.Write(ctx, rulesOfSize(1), "something")
	require.ErrorIs(t, err, ErrConflict)
	require.NoFileExists(t, f.Path)

	first, err := f.Write(ctx, rulesOfSize(1), "")
	require.NoError(t, err)
	doc, err := f.Next(ctx, "")
	require.NoError(t, err)
	require.Equal(t, Document{rulesOfSize(1), first}, doc)
	_, err = f.Write(ctx, rulesOfSize(2), "")
	require.ErrorIs(t, err, ErrConflict)
	second, err := f.Write(ctx, rulesOfSize(2), first)
	require.NoError(t, err)
	_, err = f.Write(ctx, rulesOfSize(3), first)
	require.ErrorIs(t, err, ErrConflict)
	doc, err = f.Next(ctx, first)
	require.NoError(t, err)
	require.Equal(t, Document{rulesOfSize(2), second}, doc)

	ended, end := context.WithCancel(ctx)
	end()
	_, err = f.Write(ended, rulesOfSize(4), second)
	require.ErrorIs(t, err, context.Canceled)

	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "no other file is left")
}

// Next waits a second for new content.
func TestFileNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := File{Path: filepath.Join(t.TempDir(), "rules.yaml")}
		write(t, f.Path, rulesOfSize(1))
		doc, err := f.Next(t.Context(), "")
		require.NoError(t, err)
		began := time.Now()
		_, err = f.Next(t.Context(), doc.Revision)
		require.ErrorIs(t, err, ErrUnchanged)
		require.Equal(t, time.Second, time.Since(began))
		time.AfterFunc(time.Second/2, func() { replace(t, f.Path, rulesOfSize(2)) })
		doc, err = f.Next(t.Context(), doc.Revision)
		require.NoError(t, err)
		require.Equal(t, rulesOfSize(2), doc.Data)
	})
}

// Many writers increment a number, each by reading, adding and writing: no increment is lost, and
// readers in between see a whole file.
func TestFileWritersAtOnce(t *testing.T) {
	f := File{Path: filepath.Join(t.TempDir(), "rules.yaml")}
	_, err := f.Write(t.Context(), rulesOfSize(1), "")
	require.NoError(t, err)
	const writers, each = 4, 10
	var running sync.WaitGroup
	for range writers {
		running.Go(func() {
			for done := 0; done < each; {
				doc, err := f.Next(t.Context(), "")
				if !assert.NoError(t, err) {
					return
				}
				set, err := Parse("", doc.Data)
				if !assert.NoError(t, err) || !assert.Positive(t, whole(set)) {
					return
				}
				switch _, err = f.Write(t.Context(), rulesOfSize(whole(set)+1), doc.Revision); {
				case err == nil:
					done++
				case !assert.ErrorIs(t, err, ErrConflict):
					return
				}
			}
		})
	}
	running.Wait()
	set, err := Load(f.Path)
	require.NoError(t, err)
	require.Equal(t, 1+writers*each, whole(set))
}
