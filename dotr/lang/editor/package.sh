#!/usr/bin/env bash
# Package the extension for VS Code: package.sh OUT.vsix. It needs node and a registry of its packages.
set -euo pipefail
output=$(realpath -m "${1:?the file to write, such as dotr.vsix}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
here=$(cd "$(dirname "$0")" && pwd)
cp "$here"/*.js "$here"/*.json "$here"/README.md "$work"
cp "${LICENSE:-$here/../../../LICENSE}" "$work/LICENSE" 2> /dev/null || true
cd "$work"
npm install --silent --omit=dev --no-audit --no-fund
npx --yes @vscode/vsce@3 package --allow-missing-repository --skip-license --out "$output"
