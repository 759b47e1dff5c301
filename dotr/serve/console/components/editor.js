// A text editor with diagnostics under the line: CodeMirror, which is loaded when an editor is first opened.
// It lives in a shadow root: its styles are style sheets made by script, which need no exception of the page's
// Content-Security-Policy there.
import { html, useEffect, useRef } from '../vendor/preact.js';
import { tokenizer } from './grammar.js';

const LOADED = new Map();

async function language(CM, grammar) {
  if (!LOADED.has(grammar.name)) LOADED.set(grammar.name, CM.StreamLanguage.define(tokenizer(grammar)));
  return LOADED.get(grammar.name);
}

/** Begins with `text`, and is its own from then on; another key makes another one. `grammar`: a TextMate grammar;
 * `diagnostics`: [{severity, range, message, hint, notes}]; `run`: keys → functions. */
export function Editor({ text, grammar, diagnostics, onChange, run = {}, label }) {
  const box = useRef(null);
  const own = useRef({});
  own.current.onChange = onChange;
  own.current.run = run;

  useEffect(() => {
    let gone = false;
    (async () => {
      const CM = await import('../vendor/codemirror.js');
      const spoken = await language(CM, grammar);
      if (gone) return;
      const root = box.current.shadowRoot ?? box.current.attachShadow({ mode: 'open' });
      const keys = Object.keys(own.current.run).map((key) => ({ key, preventDefault: true, run: () => { own.current.run[key](); return true; } }));
      const view = new CM.EditorView({
        root,
        parent: root,
        state: CM.EditorState.create({
          doc: text,
          extensions: [
            CM.lineNumbers(), CM.highlightSpecialChars(), CM.history(), CM.drawSelection(), CM.highlightActiveLine(),
            CM.bracketMatching(), CM.highlightSelectionMatches(), CM.lintGutter(), spoken, colours(CM), theme(CM),
            CM.EditorView.contentAttributes.of({ 'aria-label': label, spellcheck: 'false' }), CM.EditorView.lineWrapping,
            CM.keymap.of([...keys, ...CM.defaultKeymap, ...CM.historyKeymap, ...CM.searchKeymap, ...CM.lintKeymap]),
            CM.EditorView.domEventHandlers({ beforeinput: replace }),
            CM.EditorView.updateListener.of((change) => { if (change.docChanged) own.current.onChange(change.state.doc.toString()); }),
          ],
        }),
      });
      Object.assign(own.current, { view, CM });
      mark(own.current, own.current.diagnostics ?? []);
    })();
    return () => { gone = true; own.current.view?.destroy(); own.current.view = null; };
  }, [grammar]);

  useEffect(() => {
    own.current.diagnostics = diagnostics;
    mark(own.current, diagnostics);
  }, [diagnostics]);
  return html`<div class="editor" ref=${box} />`;
}

/** Typing over a selection: done here, as the browser would keep its looks by inline styles. */
function replace(event, view) {
  if (event.inputType !== 'insertText' || event.data === null || view.state.selection.main.empty) return false;
  event.preventDefault();
  view.dispatch(view.state.replaceSelection(event.data), { scrollIntoView: true, userEvent: 'input.type' });
  return true;
}

function mark({ view, CM }, diagnostics) {
  if (!view) return;
  const { doc } = view.state;
  const at = ({ line, column }) => {
    const own = doc.line(Math.min(Math.max(1, line), doc.lines));
    return Math.min(own.to, own.from + Math.max(0, column - 1));
  };
  const found = diagnostics.filter((one) => one.range).map((one) => {
    const from = at(one.range.start);
    const to = Math.max(at(one.range.end), Math.min(from + 1, doc.length));
    return { from, to, severity: one.severity === 'error' ? 'error' : 'warning', source: one.code, message: [one.message, ...(one.notes ?? []), one.hint].filter(Boolean).join('\n') };
  });
  view.dispatch(CM.setDiagnostics(view.state, found.map((one) => (one.from > one.to ? { ...one, to: one.from } : one))));
}

function colours(CM) {
  const { tags } = CM;
  const of = (tag, color, more = {}) => ({ tag, color: `var(--${color})`, ...more });
  return CM.syntaxHighlighting(CM.HighlightStyle.define([
    of(tags.keyword, 'accent', { fontWeight: '600' }), of(tags.comment, 'muted', { fontStyle: 'italic' }), of(tags.string, 'good'),
    of(tags.number, 'good'), of(tags.url, 'c2'), of(tags.variableName, 'c3'), of(tags.typeName, 'text'), of(tags.className, 'c1'),
    of(tags.operator, 'muted'), of(tags.atom, 'c7'), of(tags.punctuation, 'muted'),
  ]));
}

function theme(CM) {
  return CM.EditorView.theme({
    '&': { color: 'var(--text)', backgroundColor: 'var(--card)', fontSize: '13px', maxHeight: '60vh' },
    '&.cm-focused': { outline: '2px solid var(--accent)' },
    '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.6', overflow: 'auto', minHeight: '240px' },
    '.cm-content': { caretColor: 'var(--text)', padding: '10px 0' },
    '.cm-cursor': { borderLeftColor: 'var(--text)' },
    '.cm-gutters': { backgroundColor: 'var(--sunk)', color: 'var(--muted)', border: 'none' },
    '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'transparent' },
    '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': { backgroundColor: 'var(--brush)' },
    '.cm-tooltip': { backgroundColor: 'var(--card)', color: 'var(--text)', border: '1px solid var(--line)', borderRadius: '6px' },
    '.cm-diagnostic': { whiteSpace: 'pre-wrap', padding: '6px 10px' },
    '.cm-panels': { backgroundColor: 'var(--sunk)', color: 'var(--text)' },
    '.cm-lint-marker-error': { content: '"●"', color: 'var(--bad)' },
    '.cm-lint-marker-warning': { content: '"●"', color: 'var(--warn)' },
    '.cm-lintRange-error': { backgroundImage: 'none', textDecoration: 'underline wavy var(--bad)', textDecorationSkipInk: 'none' },
    '.cm-lintRange-warning': { backgroundImage: 'none', textDecoration: 'underline wavy var(--warn)', textDecorationSkipInk: 'none' },
  });
}
