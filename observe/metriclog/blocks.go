package metriclog

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/slots"
)

// Blocks is a slot that counts refusals for the block log, by second, resource, rule, caller and
// refused value. It is safe for concurrent use, by one engine and one Log. [Chain] has it; in
// another chain put it after the slot log.
//
// Counting a refusal never waits: if all of its shards are in use, or 6,000 kinds of refusals occurred
// within a second, it counts under [node.OverflowName]. Without a Log that reads them, at most that
// many kinds are kept. The zero value is ready to use.
type Blocks struct {
	shards   [blockShards]blockShard
	unlisted atomic.Int64 // units for which there was no room
}

// Chain returns the standard chain with a Blocks slot. A Guard with this chain has a block log in
// addition to its metric log:
//
//	guard, err := api.New(api.Config{Chain: metriclog.Chain()})
//	...
//	log, err := metriclog.Start(guard, metriclog.Config{App: "shop"})
func Chain() *slots.Chain { return slots.Default().With(new(Blocks), slots.After("log")) }

// blocksOf returns the slot in the chain of a Guard, or nil if there is none.
func blocksOf(g *api.Guard) *Blocks {
	for _, s := range g.Config().Chain.Slots() {
		if b, ok := s.(*Blocks); ok {
			return b
		}
	}
	return nil
}

const (
	blockShards = 8
	maxBlocks   = 6_000
)

type blockShard struct {
	mu     sync.Mutex
	counts map[blockKey]int64
	spare  map[blockKey]int64 // empty, swapped in when counts is taken
	_      [40]byte           // fills a cache line
}

// blockKey is a line of the block log without its count.
type blockKey struct {
	second                        int64 // since 1970
	kind                          core.Kind
	resource, whose, origin, rule string
	value                         argument.Value
}

// Name returns "blockLog".
func (*Blocks) Name() string { return "blockLog" }

// Blocked counts the refusal.
func (b *Blocks) Blocked(c slots.Call, e *core.BlockError) {
	key := blockKey{
		second: c.Now().Unix(), kind: e.Kind,
		resource: c.Resource(), whose: e.Origin, origin: c.Origin(), rule: e.Rule, value: e.Value,
	}
	lane := c.Lane()
	for i := range uint32(blockShards) {
		s := &b.shards[(lane+i)%blockShards]
		if s.mu.TryLock() {
			ok := s.addLocked(key, c.Units())
			s.mu.Unlock()
			if !ok {
				break
			}
			return
		}
	}
	b.unlisted.Add(c.Units())
}

// addLocked counts a refusal, and reports whether there was room. Values may use half of the room,
// since callers choose them; beyond that, refusals are counted without the value.
func (s *blockShard) addLocked(key blockKey, n int64) bool {
	const most = maxBlocks / blockShards
	_, ok := s.counts[key]
	if !ok && len(s.counts) >= most/2 && !key.value.IsNone() {
		key.value = argument.Value{}
		_, ok = s.counts[key]
	}
	if !ok && len(s.counts) >= most {
		return false
	}
	if s.counts == nil {
		s.counts = make(map[blockKey]int64)
	}
	s.counts[key] += n
	return true
}

// take moves the counts into sums.
func (s *blockShard) take(sums map[blockKey]int64) {
	s.mu.Lock()
	counts := s.counts
	s.counts, s.spare = s.spare, nil
	s.mu.Unlock()
	for key, n := range counts {
		sums[key] += n
	}
	clear(counts)
	s.mu.Lock()
	s.spare = counts
	s.mu.Unlock()
}

// exceptions are Sentinel's names for the kinds of refusals.
var exceptions = map[core.Kind]string{
	core.KindAuthority: "AuthorityException", core.KindSystem: "SystemBlockException", core.KindHotspot: "ParamFlowException",
	core.KindFlow: "FlowException", core.KindBreaker: "DegradeException",
	// These have no counterpart there.
	core.KindIsolation: "IsolationException", core.KindAdaptive: "AdaptiveException", core.KindOutlier: "OutlierException",
	core.KindCustom: "BlockException", core.KindNone: "BlockException",
}

// blockFile is the current file of the block log.
type blockFile struct {
	path     string
	from     *Blocks
	maxBytes int64
	maxFiles int
	location *time.Location
	touched  func(what, path string) // reports that another process has touched a file

	file *os.File
	size int64
	sums map[blockKey]int64 // taken and not written yet
}

// flush writes the refusals before a second.
func (f *blockFile) flush(before int64) error {
	if f.sums == nil {
		f.sums = make(map[blockKey]int64)
	}
	for i := range f.from.shards {
		f.from.shards[i].take(f.sums)
	}
	if n := f.from.unlisted.Swap(0); n > 0 {
		f.sums[blockKey{second: before - 1, resource: node.OverflowName}] += n
	}
	var keys []blockKey
	for key := range f.sums {
		if key.second < before {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b blockKey) int {
		return cmp.Or(cmp.Compare(a.second, b.second), strings.Compare(a.resource, b.resource), cmp.Compare(a.kind, b.kind),
			strings.Compare(a.rule, b.rule), strings.Compare(a.whose, b.whose), strings.Compare(a.origin, b.origin), strings.Compare(a.value.String(), b.value.String()))
	})
	var lines []byte
	for _, key := range keys {
		lines = append(key.append(lines, f.location, f.sums[key]), '\n')
		delete(f.sums, key)
	}
	if len(lines) == 0 {
		return nil
	}
	return f.write(lines)
}

// append appends the line for n refusals, without its end.
func (k *blockKey) append(b []byte, location *time.Location, n int64) []byte {
	b = time.Unix(k.second, 0).In(location).AppendFormat(b, time.DateTime)
	b = append(b, "|1|"...)
	for i, part := range [...]string{k.resource, exceptions[k.kind], cmp.Or(k.whose, "default"), k.origin, k.rule} {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, cleanOf(part, ",|")...)
	}
	if !k.value.IsNone() {
		b = append(append(b, ','), cleanOf(k.value.String(), ",|")...)
	}
	return strconv.AppendInt(append(b, separator), n, 10)
}

// write appends lines in one write, to a new file if this one would become too large. If that
// fails, the lines are lost, and no part of them remains.
func (f *blockFile) write(lines []byte) error {
	if f.file != nil { // other processes may write to it, remove it, or truncate it
		size, there := sizeOf(f.file)
		if f.size = size; !there {
			f.touched("removed or renamed", f.path)
			_ = f.close()
		}
	}
	if f.file != nil && f.size > 0 && f.size+int64(len(lines)) > f.maxBytes {
		_ = f.close()
		if err := f.shift(); err != nil {
			return err
		}
	}
	if f.file == nil {
		if err := f.open(); err != nil {
			return err
		}
	}
	if _, err := f.file.Write(lines); err != nil {
		return errors.Join(err, f.file.Truncate(f.size), f.close())
	}
	f.size += int64(len(lines))
	return nil
}

// open opens the existing file or creates one, and removes a partial line left by a crash.
func (f *blockFile) open() (err error) {
	if f.file, err = openOwn(f.path); err != nil {
		return err
	}
	f.size, err = wholeLines(f.file)
	if err == nil {
		err = f.file.Truncate(f.size)
	}
	if err != nil {
		return errors.Join(err, f.close())
	}
	return nil
}

// openOwn opens a file for appending, or creates it. It follows no link and opens no device,
// regardless of what other processes put there in the meantime: a file that it creates did not exist,
// and an existing file is written to only if it is the regular file that was checked.
func openOwn(path string) (*os.File, error) {
	seen, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o644)
	}
	if err != nil {
		return nil, err
	}
	if !seen.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file: %v", path, seen.Mode())
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	if opened, err := file.Stat(); err != nil || !os.SameFile(seen, opened) {
		return nil, errors.Join(fmt.Errorf("%s was replaced during opening", path), err, file.Close())
	}
	return file, nil
}

// wholeLines returns the offset after the last complete line of a file.
func wholeLines(f *os.File) (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	var b [4096]byte
	for end := info.Size(); end > 0; {
		part := b[:min(end, int64(len(b)))]
		if _, err := f.ReadAt(part, end-int64(len(part))); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(part, '\n'); i >= 0 {
			return end - int64(len(part)) + int64(i) + 1, nil
		}
		end -= int64(len(part))
	}
	return 0, nil
}

// shift renames each file to the next number, and removes the oldest.
func (f *blockFile) shift() error {
	name := func(i int) string {
		if i == 0 {
			return f.path
		}
		return f.path + "." + strconv.Itoa(i)
	}
	if f.maxFiles == 1 {
		return os.Remove(f.path)
	}
	for i := f.maxFiles - 2; i >= 0; i-- {
		if err := os.Rename(name(i), name(i+1)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (f *blockFile) close() error {
	if f.file == nil {
		return nil
	}
	err := f.file.Close()
	f.file = nil
	return err
}
