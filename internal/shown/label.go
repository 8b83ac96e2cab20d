package shown

// labelWidth is what a name gets in a line with more than the name: it leaves room for ordinary
// figures on a line of 80 columns.
const labelWidth = 34

// Label is [Name] in that many columns.
func Label(name string) string { return Name(name, labelWidth) }
