package rules

import (
	"fmt"
	"io"
	"os"
)

// Load reads the rule file at path; see [Parse] for its format. Symbolic links are followed.
// Anything but a regular file is refused without waiting for it, and so is a file that every user
// of the system can write: any such user could stop the service, or open it. (A file that a group
// can write is read: editors leave such files under the usual umask 002.) If files don't have such
// modes, or the file system is mounted read-only, this isn't checked.
//
// Load returns errors of the file system as package os does, and errors of the content as Parse does.
func Load(path string) (Set, error) {
	p, err := LoadWith(path, ParseOptions{})
	return p.Set, err
}

// LoadWith is like [Load], but takes options; see [ParseWith].
func LoadWith(path string, opts ParseOptions) (Parsed, error) {
	data, _, err := readFile(path, MaxFileSize, trust{all: opts.AllowWritable})
	if err != nil {
		return Parsed{}, err
	}
	return ParseWith(path, data, opts)
}

// readFile returns the content of the regular file at path, up to a maximum size.
func readFile(path string, most int64, who trust) ([]byte, os.FileInfo, error) {
	// Opening a device can already have effects, so check its type first.
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	if err := checkFile(path, info, most, who); err != nil {
		return nil, nil, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	// The path may lead elsewhere by now; openFlags has kept a pipe from blocking.
	if info, err = f.Stat(); err != nil {
		return nil, nil, err
	}
	if err := checkFile(path, info, most, who); err != nil {
		return nil, nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, most+1)) // it may have grown
	if err != nil {
		return nil, nil, err
	}
	if int64(len(data)) > most {
		return nil, nil, tooLarge(path, int64(len(data)), most)
	}
	return data, info, nil
}

func checkFile(path string, info os.FileInfo, most int64, who trust) error {
	switch {
	case info.IsDir():
		return &FileError{File: path, Problem: "is a directory, not a file"}
	case !info.Mode().IsRegular():
		return &FileError{File: path, Problem: "is not a regular file"}
	case info.Size() > most:
		return tooLarge(path, info.Size(), most)
	}
	return who.check(path, info, "write it")
}

func tooLarge(path string, size, most int64) error {
	return &FileError{File: path, Problem: fmt.Sprintf("has %d bytes or more, the maximum is %d", size, most)}
}
