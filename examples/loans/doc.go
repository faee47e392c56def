// Package loans has no code: rea.yaml beside it is a catalog for 13,087 real loan applications, with a state machine
// that says what they did, and the tests show that it does.
//
//	rea import loan_applications.ndjson.gz
//	rea catalog check --catalog examples/loans/rea.yaml
//	rea catalog diagram loan --catalog examples/loans/rea.yaml
package loans
