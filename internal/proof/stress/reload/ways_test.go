package reload

import (
	"fmt"
	"os"
	"path/filepath"
)

// way rewrites the file at path. Each leaves it in a state that any other can rewrite.
type way struct {
	name    string
	rewrite func(path string, data []byte) error
	halves  bool // for a while, path holds half a file that looks complete
}

var ways = []way{
	{name: "in place, in two writes", halves: true, rewrite: func(path string, data []byte) error {
		return inTwo(path, data, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	}},
	{name: "over the old text, in two writes", halves: true, rewrite: func(path string, data []byte) error {
		return inTwo(path, data, os.O_WRONLY|os.O_CREATE)
	}},
	{name: "rename", rewrite: rename},
	{name: "truncation, then in place", rewrite: func(path string, data []byte) error {
		return each(
			func() error { return os.Truncate(path, 0) },
			func() error { return os.WriteFile(path, data, 0o600) })
	}},
	{name: "deletion, then creation", rewrite: func(path string, data []byte) error {
		return each(
			func() error { return os.Remove(path) },
			func() error { return os.WriteFile(path, data, 0o600) })
	}},
	{name: "moved away, then creation", rewrite: func(path string, data []byte) error {
		return each(
			func() error { return os.Rename(path, path+"~") },
			func() error { return os.WriteFile(path, data, 0o600) })
	}},
	{name: "directory removed and re-created", rewrite: func(path string, data []byte) error {
		return each(
			func() error { return os.RemoveAll(filepath.Dir(path)) },
			func() error { return os.Mkdir(filepath.Dir(path), 0o700) },
			func() error { return os.WriteFile(path, data, 0o600) })
	}},
	{name: "directory swapped", rewrite: func(path string, data []byte) error {
		dir := filepath.Dir(path)
		next, last := dir+".next", dir+".last"
		return each(
			func() error { return os.RemoveAll(last) },
			func() error { return os.Mkdir(next, 0o700) },
			func() error { return os.WriteFile(filepath.Join(next, filepath.Base(path)), data, 0o600) },
			func() error { return os.Rename(dir, last) },
			func() error { return os.Rename(next, dir) })
	}},
	{name: "symbolic link swapped, as in a Kubernetes volume", rewrite: func(path string, data []byte) error {
		dir := filepath.Dir(path)
		next, err := os.MkdirTemp(dir, "..v")
		if err != nil {
			return err
		}
		old, _ := os.Readlink(filepath.Join(dir, "..data")) // none at first
		return each(
			func() error { return os.WriteFile(filepath.Join(next, "rules.yaml"), data, 0o600) },
			func() error { return os.Symlink(filepath.Base(next), filepath.Join(dir, "..data_tmp")) },
			func() error { return os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")) },
			func() error {
				if target, _ := os.Readlink(path); target == "..data/rules.yaml" {
					return nil
				}
				return each( // another way has made a file of it
					func() error { return os.Symlink("..data/rules.yaml", path+".link") },
					func() error { return os.Rename(path+".link", path) })
			},
			func() error {
				if old == "" {
					return nil
				}
				return os.RemoveAll(filepath.Join(dir, old))
			})
	}},
	{name: "mode changed", rewrite: func(path string, data []byte) error {
		return each(
			func() error { return os.Chmod(path, 0o602) }, // which is refused
			func() error { return os.Chmod(path, 0o640) },
			func() error { return rename(path, data) },
			func() error { return os.Chmod(path, 0o400) },
			func() error { return os.Chmod(path, 0o600) })
	}},
}

func rename(path string, data []byte) error {
	return each(
		func() error { return os.WriteFile(path+".tmp", data, 0o600) },
		func() error { return os.Rename(path+".tmp", path) })
}

// inTwo writes the halves of a version one after the other. Each half is a rule file by itself, or
// keeps the other half valid.
func inTwo(path string, data []byte, flags int) error {
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return err
	}
	cut := half(data)
	return each(
		func() error { _, err := f.WriteAt(data[:cut], 0); return err },
		func() error { _, err := f.WriteAt(data[cut:], int64(cut)); return err },
		f.Close)
}

func each(steps ...func() error) error {
	for i, step := range steps {
		if err := step(); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	return nil
}
