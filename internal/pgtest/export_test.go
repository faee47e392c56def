package pgtest

// Name of the template's database.
func Name(t Template) string { return t.name }
