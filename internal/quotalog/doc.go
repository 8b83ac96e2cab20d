// Package quotalog keeps the use of quotas over restarts, in a file.
//
// # Marks
//
// The log doesn't write every unit. It writes a mark of a key, above its use, and the key takes units
// up to its latest mark that is on the disk. A key that comes near its mark asks for the next one,
// which a goroutine writes; a key at its mark is refused until then. After a crash a key has used at
// most its mark, and is charged with it. So, whenever the process ends:
//
//	units taken in all lives of the process <= units charged <= limit
//
// A key without a mark may take a few units, the slack of its book, so that the first call of a key
// doesn't wait for the disk. The slack itself is on the disk before a key takes any of it. After a
// crash, a key without a mark is charged with the slack, in periods that began before the log was
// opened again, and then takes nothing before its first mark: so the slack is taken once, however
// often the process crashes.
//
// [Log.Close] writes the exact uses. A key that goes on from there may take the slack beyond it, as a
// crash would charge it.
//
// Too much is charged only after a crash: up to three times the [Margin] of the limit for a key, the units of a
// call that was refused at its mark, and units that its calls gave back since the mark was written.
//
// # The file
//
// It begins with a line of text. Records follow, each with its length and checksum; the latest record
// of a key counts. A file that has grown to twice its size is written anew, beside the old one, and
// renamed. Bytes that are no record are passed over: records that were on the disk before a crash
// are whole, and nobody has relied on the others.
package quotalog
