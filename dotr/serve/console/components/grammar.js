// A TextMate grammar, which the editors have, as a tokenizer for CodeMirror's StreamLanguage.

const SCOPES = [
  ['comment', 'comment'], ['string', 'string'], ['constant.numeric', 'number'], ['constant.other.iri', 'url'],
  ['constant', 'atom'], ['keyword.operator', 'operator'], ['keyword', 'keyword'], ['support', 'keyword'],
  ['storage', 'keyword'], ['variable', 'variableName'], ['entity.name.function', 'className'],
  ['entity', 'typeName'], ['punctuation', 'punctuation'],
];

const style = (scope) => SCOPES.find(([name]) => (scope ?? '').startsWith(name))?.[1] ?? null;

/** A sticky regular expression; where the browser knows no `(?i:…)`, all of it ignores case. */
function sticky(source) {
  try {
    return new RegExp(source, 'y');
  } catch {
    return new RegExp(source.replaceAll('(?i:', '(?:'), 'iy');
  }
}

/** What `StreamLanguage.define` takes. */
export function tokenizer(grammar) {
  const compiled = (patterns) => (patterns ?? []).filter((one) => one.match || one.begin).map((one) => ({
    match: one.match ? sticky(one.match) : null,
    begin: one.begin ? sticky(one.begin) : null,
    end: one.end ? sticky(one.end) : null,
    style: style(one.name),
    inner: one.begin ? compiled(one.patterns) : [],
  }));
  const top = compiled(grammar.patterns);
  const take = (regex, stream) => {
    regex.lastIndex = stream.pos;
    const found = regex.exec(stream.string);
    if (!found || !found[0].length) return false;
    stream.pos += found[0].length;
    return true;
  };
  return {
    name: grammar.name,
    languageData: { commentTokens: { line: '#' } },
    startState: () => ({ inside: null }),
    copyState: (state) => ({ ...state }),
    token(stream, state) {
      if (state.inside) {
        const { inside } = state;
        while (!stream.eol()) {
          if (take(inside.end, stream)) { state.inside = null; break; }
          if (!inside.inner.some((one) => one.match && take(one.match, stream))) stream.next();
        }
        return inside.style;
      }
      for (const one of top) {
        if (one.match && take(one.match, stream)) return one.style;
        if (one.begin && take(one.begin, stream)) { state.inside = one; return one.style; }
      }
      stream.next();
      return null;
    },
  };
}
