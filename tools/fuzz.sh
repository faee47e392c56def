#!/usr/bin/env bash
# Runs each fuzz test of the module for the given time: go test takes only one at a time.
set -euo pipefail
fuzztime=${1:-30s}

for package in $(go list ./...); do
	list=$(go test -list '^Fuzz' "$package")
	for target in $(grep '^Fuzz' <<<"$list" || true); do
		echo "== $package $target"
		go test "$package" -run '^$' -fuzz "^$target\$" -fuzztime "$fuzztime"
	done
done
