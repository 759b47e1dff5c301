// How the language server is started, apart from VS Code, so that a test can start it in the same way.
const LANGUAGES = ["dotr", "dlog", "lars"];

function serverOptions(settings) {
  const functions = settings.get("functions") || [];
  return {
    command: settings.get("path") || "dotr",
    args: ["lsp", ...functions.flatMap((module) => ["--functions", module])],
  };
}

module.exports = { LANGUAGES, serverOptions };
