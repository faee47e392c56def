// Package loans has no code: rea.yaml beside it is a catalog for 13,087 real loan applications, with a state machine
// that says what they did, and the tests show that it does.
//
//	export REA_CATALOG=examples/loans/rea.yaml
//	rea catalog apply                                # from here on the database holds every line to it
//	rea import loan_applications.ndjson.gz
//	rea catalog check
//	rea catalog diagram loan
//	rea run --once                                   # rea_views.loan_state and rea_views.hourly_steps
package loans
