package shown

// labelWidth is the width of a name on a line with other text: it leaves room for ordinary numbers
// on a line of 80 columns.
const labelWidth = 34

// Label is like [Name], but with a width of labelWidth.
func Label(name string) string { return Name(name, labelWidth) }
