// What the rule editor uses of CodeMirror.
export { EditorState, Compartment } from '@codemirror/state';
export {
  EditorView, keymap, lineNumbers, drawSelection, highlightActiveLine, highlightSpecialChars,
} from '@codemirror/view';
export { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
export { StreamLanguage, syntaxHighlighting, HighlightStyle, bracketMatching } from '@codemirror/language';
export { setDiagnostics, lintGutter, lintKeymap } from '@codemirror/lint';
export { searchKeymap, highlightSelectionMatches } from '@codemirror/search';
export { tags } from '@lezer/highlight';
