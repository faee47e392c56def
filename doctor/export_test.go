package doctor

// Open looks for transactions that are older than a limit.
var Open = open
